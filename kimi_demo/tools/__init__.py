"""Typed functions that a model may call, and the rounds of a conversation that uses them."""
