"""A tool's schema as people write it: what is wrong is named with its line."""

import json
from typing import Any

import pytest

from kimi_demo.dialect.failure import Failure
from kimi_demo.tools.parameters_schema import MOST_BYTES, MOST_LEVELS, read_parameters


def nested(levels: int) -> str:
    """A schema whose JSON has so many levels."""
    schema: dict[str, Any] = {}
    for _ in range(levels - 1):
        schema = {"not": schema}
    return json.dumps({"type": "object", **schema})


def refused(text: str) -> Failure:
    with pytest.raises(Failure) as raised:
        read_parameters(text)
    return raised.value


@pytest.mark.parametrize(
    "text",
    [
        '{"type": "object"}',
        '{"type": "object", "properties": {"a": {"$ref": "#/$defs/x"}}, "$defs": {"x": {"type": "string"}}}',
        '{"type": "object", "properties": {"next": {"$ref": "#"}}}',
        '{"type": "object", "properties": {"$ref": {"type": "string"}}}',
        '{"type": "object", "properties": {"type": {"type": "string", "enum": ["type", "type:", "\\"type\\":"]}}}',
        nested(MOST_LEVELS),
    ],
)
def test_what_is_taken(text: str) -> None:
    assert read_parameters(text) == json.loads(text)


@pytest.mark.parametrize(
    ("text", "code", "params"),
    [
        ("", "schema.not_json", {"line": "1"}),
        ('{"type": "object",\n "properties": {\n}', "schema.not_json", {"line": "3"}),
        ("[]", "schema.not_object", {}),
        ("{}", "tool_schema.not_object", {"line": "1"}),
        ('{\n "description": "x",\n "type": "array"\n}', "tool_schema.not_object", {"line": "3"}),
        ('{"type": "object",\n "properties": {\n "a": {"type": "text"}}}', "schema.invalid", {"line": "3"}),
        ('{"type": "object",\n "properties": {\n "a": {"pattern": "("}}}', "schema.invalid", {"line": "3"}),
        ('{"type": "object",\n "$ref": "https://example.org/x.json"}', "tool_schema.remote", {"line": "2"}),
        ('{"type": "object",\n "properties": {"a": {\n "$ref": "file:///etc/passwd"}}}', "tool_schema.remote", {"line": "3"}),
        ('{"type": "object",\n "properties": {"a": {"$ref": "#/$defs/none"}}}', "tool_schema.dangling", {"line": "2"}),
        ('{"type": "object", "$ref": "#"}', "tool_schema.endless", {}),
        ('{"type": "object",\n "properties": {"a": {}, "b:{": {},\n "\\u0061": {}}}', "tool_schema.twice", {"line": "3", "name": "a"}),
        ('{"type": "object",\n "type": "object"}', "tool_schema.twice", {"line": "2", "name": "type"}),
        (nested(MOST_LEVELS + 1), "tool_schema.too_deep", {"line": "1", "limit": str(MOST_LEVELS)}),
        ('{"type": "object", "x": ' + "[" * 20_000 + "]" * 20_000 + "}", "tool_schema.too_deep", {}),
        ('{"type": "object", "description": "' + "é" * (MOST_BYTES // 2) + '"}', "tool_schema.too_large", {"limit_kb": "64"}),
        ('{"type": "object", "maximum": NaN}', "schema.not_json", {}),
        ('{"type": "object",\n "maximum": 1e999}', "schema.not_json", {"line": "2"}),
        ('{"type": "object",\n "maximum": ' + "9" * 5000 + "}", "schema.not_json", {"line": "2"}),
    ],
)
def test_what_is_refused_and_where(text: str, code: str, params: dict[str, str]) -> None:
    failure = refused(text)
    # What is nested 20,000 times is more than a JSON parser takes, on most machines.
    assert failure.code == code or (code == "tool_schema.too_deep" and failure.code == "schema.not_json" and len(text) > 40_000)
    assert {name: str(failure.params[name]) for name in params} == params or failure.code != code
