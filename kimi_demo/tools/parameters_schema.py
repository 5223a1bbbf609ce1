"""The JSON Schema of a tool's arguments, as a person or an MCP server writes it: what it must be beyond being one. Pure.

Checking a hostile schema can take for ever, and so can a check against it: both belong into schema_worker's process.
"""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from jsonschema.validators import Draft202012Validator, validator_for
from referencing import Registry
from referencing.exceptions import Unresolvable

from kimi_demo.dialect.failure import Failure
from kimi_demo.dialect.json_schema import line_of, read_schema

MOST_BYTES = 64 * 1024
MOST_LEVELS = 20
_TOKENS = re.compile(r'"(?:[^"\\]|\\.)*"|[][{}:]', re.S)
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")

Path = tuple[str | int, ...]


def read_parameters(text: str) -> dict[str, Any]:
    """The schema in `text`.

    Raises Failure: those of `read_schema`, tool_schema.too_large (limit_kb), .twice (line, name), .too_deep (line, limit),
    .remote (line, reference), .dangling (line, reference), .not_object (line), .endless. Lines count from 1.
    """
    if len(text.encode("utf-8", "surrogatepass")) > MOST_BYTES:
        raise Failure("tool_schema.too_large", limit_kb=MOST_BYTES // 1024)
    schema = read_schema(text, longest=MOST_BYTES)
    if (repeated := _repeated(text)) is not None:
        raise Failure("tool_schema.twice", line=repeated[0], name=repeated[1][:80])
    for path, value in _places(schema):
        if len(path) >= MOST_LEVELS and isinstance(value, dict | list):
            raise Failure("tool_schema.too_deep", line=line_of(text, path), limit=MOST_LEVELS)
    if schema.get("type") != "object":
        raise Failure("tool_schema.not_object", line=line_of(text, ("type",)))
    _check_references(text, schema)
    return schema


def validator_of(schema: dict[str, Any]) -> Any:
    """A validator that fetches nothing: its registry is empty, and what is not in the schema itself is Unresolvable."""
    return validator_for(schema, default=Draft202012Validator)(schema, registry=Registry())


def _check_references(text: str, schema: dict[str, Any]) -> None:
    resolver = validator_of(schema)._resolver  # jsonschema has no public way to ask where a reference leads
    for path, value in _places(schema):
        if not path or path[-1] not in _REFERENCES or not isinstance(value, str):
            continue
        if not value.startswith("#"):
            raise Failure("tool_schema.remote", line=line_of(text, path), reference=value[:200])
        try:
            resolver.lookup(value)
        except (Unresolvable, ValueError, LookupError):
            raise Failure("tool_schema.dangling", line=line_of(text, path), reference=value[:200]) from None
    try:
        for _ in validator_of(schema).iter_errors({}):
            pass
    except RecursionError:
        raise Failure("tool_schema.endless") from None
    except Unresolvable:  # by way of a "$id"
        raise Failure("tool_schema.remote", line=1, reference="$id") from None


def _repeated(text: str) -> tuple[int, str] | None:
    """(line, name) of the first name in the JSON document `text` that its object has already: parsers take the last one silently."""
    names: list[set[str]] = []
    key = ""
    for found in _TOKENS.finditer(text):
        token = found[0]
        if token in "{[":
            names.append(set())
        elif token in "}]":
            names.pop()
        elif token != ":":
            key = token
        else:
            name = json.loads(key)
            if name in names[-1]:
                return text.count("\n", 0, found.start()) + 1, name
            names[-1].add(name)
    return None


def _places(value: object, path: Path = ()) -> Iterator[tuple[Path, object]]:
    """Every value in a JSON document with the way to it, the outer ones first; no deeper than any schema may be."""
    level: Sequence[tuple[Path, object]] = [(path, value)]
    for _ in range(MOST_LEVELS + 1):
        below: list[tuple[Path, object]] = []
        for where, each in level:
            yield where, each
            if isinstance(each, dict):
                below += [((*where, name), inner) for name, inner in each.items()]
            elif isinstance(each, list):
                below += [((*where, index), inner) for index, inner in enumerate(each)]
        level = below
