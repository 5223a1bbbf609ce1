"""The rehearsal model: a tiny stand-in that speaks Kimi's dialect, so that real vLLM runs without a GPU."""
