"""A JSON Schema as a person writes it: read, checked, and a mistake named by its line. Pure."""

import json
import math
import re
from collections.abc import Sequence
from functools import partial
from typing import Any

from jsonschema.exceptions import SchemaError
from jsonschema.validators import Draft202012Validator, validator_for

from kimi_demo.dialect.failure import Failure

_MOST_DIGITS = 1_000
_VAST = "the number is too large"
LONGEST = 20_000
"""Characters: a server compiles the schema into a grammar, which takes time that grows with it."""


def read_schema(text: str, longest: int = LONGEST) -> dict[str, Any]:
    """The schema in `text`, which has at most `longest` characters.

    Raises Failure: schema.too_long (characters, limit), schema.not_json (line, column, problem), schema.not_object,
    schema.invalid (line, path, problem). Lines count from 1.
    """
    if len(text) > longest:
        raise Failure("schema.too_long", characters=len(text), limit=longest)
    try:
        schema = json.loads(
            text, parse_constant=partial(_no_constant, text), parse_int=partial(_int, text), parse_float=partial(_float, text)
        )
    except json.JSONDecodeError as error:
        raise Failure("schema.not_json", line=error.lineno, column=error.colno, problem=error.msg) from None
    except (RecursionError, ValueError) as error:
        raise Failure("schema.not_json", line=1, column=1, problem=str(error) or "nested too deeply") from None
    if not isinstance(schema, dict):
        raise Failure("schema.not_object")
    try:
        validator_for(schema, default=Draft202012Validator).check_schema(schema)
    except SchemaError as error:
        path = list(error.absolute_path)
        said = (error.context[0] if error.context else error).message  # "is not one of […]" rather than "under any of the given schemas"
        raise Failure("schema.invalid", line=line_of(text, path), path="/".join(map(str, path)) or "/", problem=said[:200]) from None
    return schema


def _no_constant(text: str, name: str) -> None:
    raise json.JSONDecodeError(f"{name} is no JSON", text, _place(text, name))


def _int(text: str, digits: str) -> int:
    if len(digits) > _MOST_DIGITS:  # beyond some thousand digits other programs, Python among them, refuse to read or write it
        raise json.JSONDecodeError(_VAST, text, _place(text, digits))
    return int(digits)


def _float(text: str, digits: str) -> float:
    if not math.isfinite(found := float(digits)):  # 1e999 is read as infinity, which cannot be sent
        raise json.JSONDecodeError(_VAST, text, _place(text, digits))
    return found


def _place(text: str, token: str) -> int:
    """Where `token` stands in the JSON document outside of its strings; the beginning, where it does not."""
    found = re.finditer(r'"(?:[^"\\]|\\.)*"|' + re.escape(token), text, re.S)
    return next((each.start() for each in found if each[0] == token), 0)


def line_of(text: str, path: Sequence[str | int]) -> int:
    """The line (from 1) on which the value at `path` begins in the JSON document `text`."""
    at = _blank(text, 0)
    for step in path:
        found = _inside(text, at, step)
        if found is None:
            break
        at = found
    return text.count("\n", 0, at) + 1


def _inside(text: str, at: int, step: str | int) -> int | None:
    """Where the member `step` of the object or array that begins at `at` has its value."""
    decoder, found, number = json.JSONDecoder(), None, 0
    is_object = text[at] == "{"
    at = _blank(text, at + 1)
    while text[at] not in "}]":
        key: str | int = number
        if is_object:
            key, at = decoder.raw_decode(text, at)
            at = _blank(text, _blank(text, at) + 1)
        if key == step:
            found = at  # of a name that is written twice, the last one counts
        _, at = decoder.raw_decode(text, at)
        at = _blank(text, at)
        if text[at] == ",":
            at = _blank(text, at + 1)
        number += 1
    return found


def _blank(text: str, at: int) -> int:
    while at < len(text) and text[at] in " \t\r\n":
        at += 1
    return at
