"""JSON that a model wrote, as it is shown: with line breaks, or on one line; numbers exactly as written. Pure."""

import json

SHOWN_LIMIT = 20_000
"""Characters of arguments or of a result that are shown; the model gets all of it."""
BRIEF_LIMIT = 160


def pretty(arguments: str) -> str:
    """JSON arguments with line breaks; anything else, and what is too long to be shown whole, as it came."""
    if len(arguments) > SHOWN_LIMIT:
        return arguments
    try:
        return _dump(_read(arguments), 0)
    except (ValueError, RecursionError):
        return arguments


def brief(arguments: str) -> str:
    """An object as the arguments of a call, a=1, b="x", on one short line; anything else as it came."""
    if len(arguments) <= SHOWN_LIMIT:
        try:
            value = _read(arguments or "{}")
            if isinstance(value, dict):
                arguments = ", ".join(f"{name}={_flat(item)}" for name, item in value.items())
        except (ValueError, RecursionError):
            pass
    return one_line(arguments)


def one_line(text: str) -> str:
    line = " ".join(text[: 4 * BRIEF_LIMIT].split())
    return line if len(line) <= BRIEF_LIMIT and len(text) <= 4 * BRIEF_LIMIT else line[: BRIEF_LIMIT - 1] + "…"


def clipped(text: str) -> str:
    """`text` up to the limit of what is shown, with how much is left out."""
    return text if len(text) <= SHOWN_LIMIT else f"{text[:SHOWN_LIMIT]}\n… (+{len(text) - SHOWN_LIMIT:,})"


class _AsWritten(str):
    """A JSON number in its own spelling."""


def _read(text: str) -> object:
    value: object = json.loads(text, parse_float=_AsWritten, parse_int=_AsWritten, parse_constant=_AsWritten)
    return value


def _flat(value: object) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(name, ensure_ascii=False)}: {_flat(item)}" for name, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_flat, value)) + "]"
    return str(value) if isinstance(value, _AsWritten) else json.dumps(value, ensure_ascii=False)


def _dump(value: object, depth: int) -> str:
    inner, outer = "  " * (depth + 1), "  " * depth
    if isinstance(value, dict) and value:
        items = ",\n".join(f"{inner}{json.dumps(name, ensure_ascii=False)}: {_dump(item, depth + 1)}" for name, item in value.items())
        return f"{{\n{items}\n{outer}}}"
    if isinstance(value, list) and value:
        items = ",\n".join(inner + _dump(item, depth + 1) for item in value)
        return f"[\n{items}\n{outer}]"
    return _flat(value)
