"""A line of vLLM's log, taken apart for showing. Pure."""

import re
from dataclasses import dataclass
from typing import Literal

Level = Literal["debug", "info", "warning", "error"]
LEVELS: tuple[Level, ...] = ("debug", "info", "warning", "error")

_PROCESS = re.compile(r"^\((?P<process>[\w:.-]+(?: [\w:.-]+)*?)(?: pid=\d+)?\) ")
_HEAD = re.compile(r"^(?P<level>DEBUG|INFO|WARNING|ERROR|CRITICAL) (?P<time>\d\d-\d\d \d\d:\d\d:\d\d) (?P<place>\[[^\]]*\]) ")
_UVICORN = re.compile(r"^(?P<level>DEBUG|INFO|WARNING|ERROR|CRITICAL): +")
_TRACE = re.compile(r"^Traceback |^\s+File \"|^(?:[\w.]+\.)?\w+(?:Error|Exception)(?::|$)")
_WARNS = re.compile(r"Warning: ")
REQUEST = re.compile(r"\b(?:chatcmpl|cmpl)-(?P<label>[0-9a-f]{32})(?:-\d+)*")
"""The id that vLLM gives a request: our own label behind its prefix (`request_label`)."""

_LEVELS: dict[str, Level] = {"DEBUG": "debug", "INFO": "info", "WARNING": "warning", "ERROR": "error", "CRITICAL": "error"}


@dataclass(frozen=True)
class Line:
    """number: counts the lines of a server's life, from 1. process: which of vLLM's wrote it; time: as it wrote it ("11-30 19:42:01").

    request: the run that caused it, 32 hex digits.
    """

    number: int
    level: Level
    text: str
    process: str = ""
    time: str = ""
    request: str | None = None


def parse(number: int, raw: str, before: Level = "info") -> Line:
    """before: the level of the line before, which a line without one of its own goes on with (the rest of a stack trace)."""
    process, time, text, level = "", "", raw, None
    if found := _PROCESS.match(text):
        process, text = found["process"], text[found.end() :]
    if found := _HEAD.match(text):
        level, time, text = _LEVELS[found["level"]], found["time"], f"{found['place']} {text[found.end() :]}"
    elif found := _UVICORN.match(text):
        level, text = _LEVELS[found["level"]], text[found.end() :]
    elif _TRACE.match(text):
        level = "error"
    elif _WARNS.search(text):
        level = "warning"
    elif not text.startswith((" ", "\t")):
        before = "info"
    request = REQUEST.search(text)
    return Line(number, level or before, text, process, time, request["label"] if request else None)
