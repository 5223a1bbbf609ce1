"""A schema's mistake is named with its line."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kimi_demo.dialect.failure import Failure
from kimi_demo.dialect.json_schema import LONGEST, line_of, read_schema


def test_a_schema_is_read() -> None:
    assert read_schema('{"type": "object", "properties": {"a": {"type": "integer"}}}')["properties"] == {"a": {"type": "integer"}}


@pytest.mark.parametrize(
    ("text", "code", "line"),
    [
        ('{\n "a": 1\n "b": 2}', "schema.not_json", "3"),
        ('{\n "type":\n  oops}', "schema.not_json", "3"),
        ('{"minimum": NaN}', "schema.not_json", "1"),
        ('{"title": "NaN",\n "minimum": -Infinity}', "schema.not_json", "2"),
        ('{"title": "1e999",\n "minimum": 1e999}', "schema.not_json", "2"),
        ('{\n "minimum":\n ' + "9" * 5000 + "}", "schema.not_json", "3"),
        ("[" * 5000, "schema.not_json", "1"),
        ('{\n "type": "object",\n "properties": {\n  "a": {\n   "type": "int"\n  }\n }\n}', "schema.invalid", "5"),
        ('{\n "required":\n  "a"\n}', "schema.invalid", "3"),
        ('{"anyOf": [\n{},\n3]}', "schema.invalid", "3"),
    ],
)
def test_a_mistake_is_named_by_its_line(text: str, code: str, line: str) -> None:
    with pytest.raises(Failure) as caught:
        read_schema(text)
    assert (caught.value.code, caught.value.params["line"]) == (code, line)


@pytest.mark.parametrize(
    ("text", "code"), [("3", "schema.not_object"), ("[]", "schema.not_object"), (" " * (LONGEST + 1), "schema.too_long")]
)
def test_what_is_no_schema_at_all(text: str, code: str) -> None:
    with pytest.raises(Failure) as caught:
        read_schema(text)
    assert caught.value.code == code


VALUES: Any = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=12
)


@given(st.dictionaries(st.text(), VALUES, min_size=1), st.data(), st.sampled_from([None, 0, 2]))
def test_line_of_finds_the_value_wherever_it_stands(document: dict[str, Any], data: st.DataObject, indent: int | None) -> None:
    path: list[str | int] = []
    value: Any = document
    while isinstance(value, dict | list) and value and data.draw(st.booleans() if path else st.just(True)):
        step = data.draw(st.sampled_from(sorted(value))) if isinstance(value, dict) else data.draw(st.integers(0, len(value) - 1))
        path.append(step)
        value = value[step]
    text = json.dumps(document, indent=indent, ensure_ascii=data.draw(st.booleans()))
    line = text.split("\n")[line_of(text, path) - 1]
    shown = json.dumps(value, indent=indent).split("\n")[0] if isinstance(value, dict | list) else json.dumps(value)
    assert shown in line or json.dumps(value, ensure_ascii=False).split("\n")[0] in line


@given(st.text(max_size=200))
def test_any_text_is_a_schema_or_a_named_failure(text: str) -> None:
    try:
        assert isinstance(read_schema(text), dict)
    except Failure as failure:
        assert failure.code.startswith("schema.")
