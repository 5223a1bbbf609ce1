"""What vLLM's /metrics says: one reading, and the history that rates and percentiles come from. Pure."""
