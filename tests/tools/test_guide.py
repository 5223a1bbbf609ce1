"""The guide's tools: exact, and frozen to the letter, since the rehearsal model is trained on them."""

import json
from typing import Any

import pytest

from kimi_demo.tools.guide import GUIDE_TOOLS
from kimi_demo.tools.toolbox import carry_out

TOOLS = {tool.name: tool for tool in GUIDE_TOOLS}

FROZEN = """[
{"type": "function", "function": {"name": "add", "description": "Add two integers and return the exact sum.", "parameters": \
{"additionalProperties": false, "properties": {"a": {"description": "The first number", "type": "integer"}, \
"b": {"description": "The second number", "type": "integer"}}, "required": ["a", "b"], "type": "object"}}},
{"type": "function", "function": {"name": "mul", "description": "Multiply two integers and return the exact product.", "parameters": \
{"additionalProperties": false, "properties": {"a": {"description": "The first factor", "type": "integer"}, \
"b": {"description": "The second factor", "type": "integer"}}, "required": ["a", "b"], "type": "object"}}},
{"type": "function", "function": {"name": "compare", "description": \
"Compare two numbers and say whether the first is greater than, less than or equal to the second.", "parameters": \
{"additionalProperties": false, "properties": {"a": {"description": "The first number", "type": "number"}, \
"b": {"description": "The second number", "type": "number"}}, "required": ["a", "b"], "type": "object"}}},
{"type": "function", "function": {"name": "count_letter_in_string", "description": \
"Count how often a letter occurs in a string. Upper and lower case are counted alike.", "parameters": \
{"additionalProperties": false, "properties": {"a": {"description": "The string to look in", "type": "string"}, \
"b": {"description": "The letter to count", "maxLength": 1, "minLength": 1, "type": "string"}}, "required": ["a", "b"], "type": "object"}}}
]"""


def test_the_published_schemas_are_frozen_to_the_letter() -> None:
    lines = ",\n".join(json.dumps(tool.schema()) for tool in GUIDE_TOOLS)
    assert f"[\n{lines}\n]" == FROZEN


def result(name: str, raw: str) -> str:
    outcome = carry_out(TOOLS[name], raw)
    assert outcome.result is not None, outcome.error
    return outcome.result


BIG = "123456789012345678901234567890"


@pytest.mark.parametrize(
    ("name", "a", "b", "expected"),
    [
        ("add", "2", "3", "5"),
        ("add", BIG, "1", "123456789012345678901234567891"),
        ("add", "-5", "5", "0"),
        ("add", "-0", "0", "0"),
        ("add", "3.0", "4", "7"),
        ("add", "1e20", "1", "100000000000000000001"),
        ("add", "9" * 5_000, "1", "1" + "0" * 5_000),
        ("mul", "12", "-12", "-144"),
        ("mul", BIG, BIG, "15241578753238836750495351562536198787501905199875019052100"),
        ("mul", "1" + "0" * 4_500, "1" + "0" * 4_500, "1" + "0" * 9_000),
        ("mul", "-0", "7", "0"),
        ("compare", "9.11", "9.9", "9.11 is less than 9.9."),
        ("compare", "9.9", "9.11", "9.9 is greater than 9.11."),
        ("compare", "0.1", "0.10", "0.1 is equal to 0.10."),
        ("compare", "1", "1.000", "1 is equal to 1.000."),
        ("compare", "-0", "0", "0 is equal to 0."),
        ("compare", "-0.0", "0", "-0.0 is equal to 0."),
        ("compare", "0.1", "0.1000000000000000000000000000000001", "0.1 is less than 0.1000000000000000000000000000000001."),
        ("compare", "9007199254740993", "9007199254740992", "9007199254740993 is greater than 9007199254740992."),
        ("compare", "1e400", "1e399", "1E+400 is greater than 1E+399."),
        ("compare", "1e400", "1" + "0" * 400, "1E+400 is equal to 1" + "0" * 400 + "."),
        ("compare", "-1e-400", "0", "-1E-400 is less than 0."),
        ("compare", "1" + "0" * 5_000, "1" + "0" * 4_999 + "1", "1" + "0" * 5_000 + " is less than 1" + "0" * 4_999 + "1."),
    ],
)
def test_numbers_are_exact(name: str, a: str, b: str, expected: str) -> None:
    assert result(name, f'{{"a": {a}, "b": {b}}}') == expected


@pytest.mark.parametrize(
    ("text", "letter", "count"),
    [
        ("strawberry", "r", "3 times"),
        ("strawberry", "R", "3 times"),
        ("STRAWBERRY", "r", "3 times"),
        ("strawberry", "w", "1 time"),
        ("strawberry", "z", "0 times"),
        ("", "a", "0 times"),
        ("草莓和草", "草", "2 times"),
        ("🍓a🍓", "🍓", "2 times"),
        ("a b c", " ", "2 times"),
        ("r.r*r", ".", "1 time"),
        ('say "hi"', '"', "2 times"),
    ],
)
def test_letters(text: str, letter: str, count: str) -> None:
    told = result("count_letter_in_string", json.dumps({"a": text, "b": letter}))
    assert told == f'The letter "{letter}" occurs {count} in "{text}" (upper and lower case counted alike).'


@pytest.mark.parametrize("name", ["add", "mul", "compare"])
@pytest.mark.parametrize("wrong", ['"3"', "true", "false", "null", "[3]", '{"value": 3}', '""', "NaN", "Infinity"])
def test_what_is_no_number_is_refused(name: str, wrong: str) -> None:
    for raw in (f'{{"a": {wrong}, "b": 1}}', f'{{"a": 1, "b": {wrong}}}'):
        assert carry_out(TOOLS[name], raw).result is None


@pytest.mark.parametrize("wrong", ["3.5", "1e-1", "1e10000"])
@pytest.mark.parametrize("name", ["add", "mul"])
def test_what_is_no_integer_is_refused(name: str, wrong: str) -> None:
    assert carry_out(TOOLS[name], f'{{"a": {wrong}, "b": 1}}').result is None


@pytest.mark.parametrize(
    "arguments", [{"a": 3, "b": "r"}, {"a": None, "b": "r"}, {"a": "x", "b": "ab"}, {"a": "x", "b": ""}, {"a": ["x"], "b": "x"}]
)
def test_what_is_no_letter_in_a_string_is_refused(arguments: dict[str, Any]) -> None:
    assert carry_out(TOOLS["count_letter_in_string"], json.dumps(arguments)).result is None


@pytest.mark.parametrize("tool", GUIDE_TOOLS, ids=lambda tool: tool.name)
@pytest.mark.parametrize("change", ["missing", "extra"])
def test_missing_and_extra_arguments_are_refused(tool: Any, change: str) -> None:
    values = {"a": "x", "b": "x"} if tool.name == "count_letter_in_string" else {"a": 1, "b": 1}
    assert carry_out(tool, json.dumps(values)).result is not None
    changed = {"a": values["a"]} if change == "missing" else {**values, "c": 1}
    assert carry_out(tool, json.dumps(changed)).result is None
