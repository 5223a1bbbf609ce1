"""Events → what the browser shows, as pure functions and small state machines. No I/O, no gradio."""
