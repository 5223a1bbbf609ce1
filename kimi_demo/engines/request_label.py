"""Whose request this is, told to a vLLM server as X-Request-Id, so that the lines of its log can be joined to the run that caused them.

A context variable, since between a run and its requests lie the rounds of tool conversations and repeated questions, which need not know.
"""

from contextvars import ContextVar
from itertools import count

REQUEST_LABEL: ContextVar[str] = ContextVar("request_label", default="")
"""The id of the run that the current task works for: 32 hex digits; "" outside of runs."""

_numbers = count(1)


def request_headers() -> dict[str, str]:
    """The header of one request; {} outside of runs. Each has a number of its own: a server may take equal ids for one request."""
    label = REQUEST_LABEL.get()
    return {"X-Request-Id": f"{label}-{next(_numbers)}"} if label else {}
