"""A browser demo of Kimi K2.5 served by vLLM."""

__version__ = "0.1.0"
