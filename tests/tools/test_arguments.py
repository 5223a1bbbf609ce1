"""The way from a model's text to exact values: nothing crashes it, nothing inexact or invalid gets through."""

import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kimi_demo.tools.arguments import MOST_BYTES, MOST_DIGITS, ArgumentsError, as_plain_json, canonical, parse

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ("", {}),
        (" \n", {}),
        ("{}", {}),
        ('{"a": 3}', {"a": 3}),
        ('{"a": -0}', {"a": 0}),
        ('{"a": 1e400}', {"a": Decimal("1e400")}),
        ('{"a": "草莓🍓", "b": true}', {"a": "草莓🍓", "b": True}),
        ('{"a": "\\ud83c\\udf53"}', {"a": "🍓"}),
    ],
)
def test_values(raw: str, expected: dict[str, Any]) -> None:
    assert parse(raw) == expected


def test_numbers_are_kept_as_written() -> None:
    values = parse('{"a": 0.10, "b": 9.9000000000000000000000000001, "c": -0.0, "d": 3.0}')
    assert {name: str(value) for name, value in values.items()} == {
        "a": "0.10",
        "b": "9.9000000000000000000000000001",
        "c": "-0.0",
        "d": "3.0",
    }


def test_an_integer_of_many_digits_is_exact() -> None:
    digits = "1234567890" * 1_000
    assert parse(f'{{"a": {digits}}}')["a"] % 10**10 == 1234567890
    assert parse(f'{{"a": -{digits}}}')["a"] == -parse(f'{{"a": {digits}}}')["a"]


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        ("[1]", "must be a JSON object, not an array"),
        ("3", "must be a JSON object, not a number"),
        ("null", "must be a JSON object, not null"),
        ('"{}"', "must be a JSON object, not a string"),
        ("true", "must be a JSON object, not true or false"),
        ('{"a": 1', "not valid JSON"),
        ("{'a': 1}", "not valid JSON"),
        ('{"a": 1} and more', "not valid JSON"),
        ('{"a": 01}', "not valid JSON"),
        ('{"a": NaN}', "NaN is not a JSON number"),
        ('{"a": -Infinity}', "-Infinity is not a JSON number"),
        ('{"a": 1, "a": 2}', 'name "a" twice'),
        ('{"a": {"b": 1, "b": 1}}', 'name "b" twice'),
        ('{"a": "\\ud83c"}', "half of a surrogate pair"),
        ('{"\\udf53": 1}', "half of a surrogate pair"),
        ('{"a": 1e1000000000000000000000}', "out of range"),
        (f'{{"a": {"9" * (MOST_DIGITS + 1)}}}', "50,001 digits"),
        ('{"a": "' + "x" * MOST_BYTES + '"}', "too large"),
        ('{"a": ' + "[" * 40 + "]" * 40 + "}", "nested too deeply"),
        ('{"a": ' + "[" * 100_000 + "]" * 100_000 + "}", "nested too deeply"),
        ('{"a": ' * 5_000 + "1" + "}" * 5_000, "nested too deeply"),  # Python 3.13 parses it, earlier ones do not
    ],
)
def test_what_is_wrong_is_said_in_words(raw: str, words: str) -> None:
    with pytest.raises(ArgumentsError) as raised:
        parse(raw)
    assert words in str(raised.value)
    assert len(str(raised.value)) < 250


def test_the_place_of_a_mistake_is_shown() -> None:
    with pytest.raises(ArgumentsError, match=r'at character 9, near \{"a": 1 "b": 2\}'):
        parse('{"a": 1 "b": 2}')


@given(st.text() | st.text(alphabet='{}[]",:\\u0123456789.eE-+ nulltrefas'))
@example('{"a":1e99999999999999999999}')
@settings(deadline=None)
def test_no_text_crashes_it(raw: str) -> None:
    try:
        assert isinstance(parse(raw), dict)
    except ArgumentsError as error:
        assert str(error)


@given(st.dictionaries(st.text(), JSON, max_size=4))
def test_every_object_comes_through_unchanged(value: dict[str, Any]) -> None:
    assert parse(json.dumps(value)) == value
    assert parse(json.dumps(value, ensure_ascii=False)) == value


@given(st.decimals(allow_nan=False, allow_infinity=False).filter(lambda number: "." in str(number) or "E" in str(number)))
def test_every_decimal_is_exact(number: Decimal) -> None:
    assert str(parse(f'{{"a": {number}}}')["a"]) == str(number)


def test_canonical_ignores_what_means_nothing() -> None:
    assert canonical('{"a": 1, "b": [2.50]}') == canonical('{"b":[2.50],"a":1}')
    assert canonical("") == canonical("{}")
    assert canonical('{"a": 1}') != canonical('{"a": 2}')
    assert canonical('{"a": 2.5}') != canonical('{"a": 2.50}')
    assert canonical('{"a"') == '{"a"'
    assert canonical(f'{{"a": {"9" * 5_000}}}') != canonical(f'{{"a": {"9" * 5_001}}}')


@pytest.mark.parametrize("raw", ["[1]", "{", "3", f'{{"a": {"9" * 5_000}}}'])
def test_what_other_programs_cannot_read_as_an_object(raw: str) -> None:
    assert as_plain_json(raw) is None


def test_plain_json() -> None:
    assert as_plain_json("") == {}
    assert as_plain_json('{"a": 0.10}') == {"a": 0.1}
