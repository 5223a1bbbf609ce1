"""Measuring the rehearsal model through vLLM, on questions that it was never trained on."""
