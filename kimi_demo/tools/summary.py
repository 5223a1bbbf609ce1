"""A finished tool conversation in the shape of the `/tools` endpoint. Pure."""

import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from kimi_demo.dialect.events import Timed
from kimi_demo.dialect.reply import Call, Reply, rounds
from kimi_demo.tools.arguments import MOST_DEPTH, as_plain_json

MOST_EXACT = 2**63  # beyond it JSON writers and readers fail (orjson), or give another number (JavaScript, long before)


@dataclass(frozen=True)
class CallSummary:
    """arguments: the object, or the raw text if it is no JSON object, or holds what not every JSON program can carry."""

    id: str
    name: str
    arguments: dict[str, Any] | str
    result: str | None
    error: str | None


@dataclass(frozen=True)
class RoundSummary:
    """reasoning: "" when nothing was thought."""

    reasoning: str
    calls: list[CallSummary]


def summary(entries: Iterable[Timed]) -> dict[str, Any]:
    """{"rounds": [{reasoning, calls: [{id, name, arguments, result, error}]}], "answer"}; the answer is the last round's text."""
    replies = rounds(entries)
    return {"rounds": [asdict(_round(reply)) for reply in replies], "answer": replies[-1].answer if replies else ""}


def _round(reply: Reply) -> RoundSummary:
    return RoundSummary(reply.thought, [_call(call) for call in reply.calls])


def _call(call: Call) -> CallSummary:
    plain = as_plain_json(call.arguments)
    arguments = call.arguments if plain is None or not _carried(plain) else plain
    return CallSummary(call.id, call.name, arguments, call.result, call.error)


def _carried(value: object, levels: int = MOST_DEPTH) -> bool:
    """Whether every JSON library can carry the value."""
    match value:
        case dict() | list():
            below = [*value.keys(), *value.values()] if isinstance(value, dict) else value
            return levels > 0 and all(_carried(item, levels - 1) for item in below)
        case int():
            return -MOST_EXACT <= value < MOST_EXACT
        case float():
            return math.isfinite(value)
        case str():
            return value.isascii() or not any("\ud800" <= character <= "\udfff" for character in value)
        case _:
            return True
