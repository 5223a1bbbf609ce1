"""Moonshot's verifier data (JSON lines of chat requests) sent to any server, with the metrics of its K2 Vendor Verifier."""
