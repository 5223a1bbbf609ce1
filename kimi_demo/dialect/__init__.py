"""What Kimi speaks: events, replies, sampling, conversations. Pure; no I/O, no gradio, no vllm, no openai."""
