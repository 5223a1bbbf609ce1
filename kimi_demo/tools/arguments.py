"""A tool call's arguments: from the JSON text that the model wrote to exact Python values."""

import json
from decimal import Decimal, InvalidOperation
from typing import Any, NoReturn

MOST_BYTES = 1_000_000
MOST_DIGITS = 50_000  # of one integer: Python's conversions are quadratic, and a million digits would hold up everything for minutes
MOST_DEPTH = 32
EXCERPT_CHARS = 60


class ArgumentsError(ValueError):
    """Says in words, to a model and to a person, what is wrong with arguments."""


def parse(raw: str) -> dict[str, Any]:
    """The arguments as a dict: integers exact, other numbers as Decimal just as written (0.10 keeps its zero).

    An empty text means no arguments: vLLM streams "" for `{}`. Raises ArgumentsError for what is no JSON object, names a parameter
    twice, holds NaN or Infinity (which are not JSON) or half of a surrogate pair (which no text can hold), or is too large.
    """
    if not raw.strip():
        return {}
    if len(raw.encode("utf-8", "surrogatepass")) > MOST_BYTES:
        raise ArgumentsError(f"The arguments are too large: at most {MOST_BYTES:,} bytes are taken.")
    try:
        value = json.loads(
            raw, parse_int=_integer, parse_float=_decimal, parse_constant=_no_constant, object_pairs_hook=_object_without_duplicates
        )
    except json.JSONDecodeError as error:
        near = shortened(raw[max(0, error.pos - EXCERPT_CHARS // 2) :])
        raise ArgumentsError(f"The arguments are not valid JSON: {error.msg} at character {error.pos + 1}, near {near}") from None
    except RecursionError:
        raise ArgumentsError(_TOO_DEEP) from None
    if isinstance(value, str) and as_plain_json(value):
        raise ArgumentsError("The arguments are a JSON object inside a JSON string: write the object itself.")
    if not isinstance(value, dict):
        raise ArgumentsError(f"The arguments must be a JSON object, not {kind_of(value)}.")
    _check(value)
    return value


def as_plain_json(raw: str) -> dict[str, Any] | None:
    """The arguments as any other program reads them (numbers that are no integers as floats); None when they are no JSON object."""
    try:
        value = json.loads(raw) if raw.strip() else {}
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def canonical(raw: str) -> str:
    """A text that two calls share when they say the same: the order of names and the white space do not count."""
    try:
        value = json.loads(raw or "{}", parse_int=lambda digits: f"#{digits}", parse_float=lambda number: f"#{number}")
        return json.dumps(value, sort_keys=True)
    except (ValueError, RecursionError):
        return raw


def kind_of(value: object) -> str:
    """What JSON calls the value: "a string", "an array", …"""
    match value:
        case None:
            return "null"
        case bool():
            return "true or false"
        case int() | Decimal() | float():
            return "a number"
        case str():
            return "a string"
        case dict():
            return "an object"
        case _:
            return "an array"


def shortened(text: str) -> str:
    return text if len(text) <= EXCERPT_CHARS else text[: EXCERPT_CHARS - 1] + "…"


_TOO_DEEP = f"The arguments are nested too deeply: at most {MOST_DEPTH} levels are taken."


def _integer(digits: str) -> int:
    if len(digits) > MOST_DIGITS:
        raise ArgumentsError(f"An integer in the arguments has {len(digits):,} digits: at most {MOST_DIGITS:,} are taken.")
    return int(Decimal(digits))  # int(digits) refuses more than 4,300 digits


def _decimal(number: str) -> Decimal:
    try:
        return Decimal(number)
    except InvalidOperation:
        raise ArgumentsError(f"The number {shortened(number)} in the arguments is out of range.") from None


def _no_constant(name: str) -> NoReturn:
    raise ArgumentsError(f"The arguments are not valid JSON: {name} is not a JSON number.")


def _object_without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise ArgumentsError(f"The arguments name {shortened(json.dumps(name, ensure_ascii=True))} twice.")
        found[name] = value
    return found


def _check(value: object) -> None:
    level: list[object] = [value]
    for _ in range(MOST_DEPTH):
        below: list[object] = []
        for item in level:
            if isinstance(item, dict):
                below += item.keys()
                below += item.values()
            elif isinstance(item, list):
                below += item
            elif isinstance(item, str) and any("\ud800" <= character <= "\udfff" for character in item):
                raise ArgumentsError("A text in the arguments holds half of a surrogate pair (\\ud800 to \\udfff alone).")
        level = below
    if level:
        raise ArgumentsError(_TOO_DEEP)
