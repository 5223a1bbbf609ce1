"""The showcase tools: what they answer, and that nothing a model writes makes them compute for long or fail without words."""

import time
from datetime import datetime
from decimal import Decimal
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from kimi_demo.tools.calculator import GRAMMAR, LONGEST, Expression, calculate, value_of
from kimi_demo.tools.clock import Zone as ZoneArguments
from kimi_demo.tools.clock import current_time, told, zone_of
from kimi_demo.tools.error import ToolError
from kimi_demo.tools.guide import GUIDE_TOOLS
from kimi_demo.tools.planets import PLANETS
from kimi_demo.tools.showcase import SHOWCASE
from kimi_demo.tools.toolbox import Toolbox
from kimi_demo.tools.units import UNITS, Conversion, convert_unit


def test_their_schemas_are_schemas_and_their_names_are_their_own() -> None:
    for tool in SHOWCASE:
        Draft202012Validator.check_schema(tool.schema()["function"]["parameters"])
    names = [tool.name for tool in (*GUIDE_TOOLS, *SHOWCASE)]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize(
    ("expression", "result"),
    [
        ("1 + 2 * 3", "7"),
        ("-2 ^ 2", "-4"),
        ("2 ^ -1", "0.5"),
        ("2 ** 3 ** 2", "512"),
        ("0.1 + 0.2", "0.3"),
        ("(2.5 + 3) × 4 ÷ 2", "11"),
        ("17 * 23 % 5", "1"),
        ("5! - 100", "20"),
        ("sqrt(2)", "1.4142135623730950488"),
        ("round(2.345, 2) + max(1, 2, 3)", "5.35"),
        ("floor(-1.5) + ceil(1.2) + abs(-3)", "3"),
        ("ln(e) + log10(1000)", "4"),
        ("2 ^ 100", "1267650600228229401496703205376"),
        ("9 ^ 999", "1.9420791685807240107e+953"),
        ("-" * (LONGEST - 1) + "1", "-1"),
        ("(" * 249 + "1" + ")" * 249, "1"),
    ],
)
def test_arithmetic(expression: str, result: str) -> None:
    assert calculate(Expression(expression=expression)) == f"{expression} = {result}"


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("", "ends too early"),
        ("1 +", "ends too early"),
        ("max(1", "ends too early"),
        ("1 2", "at character 3, near '2'"),
        ("__import__('os').system('true')", "at character 1"),
        ("().__class__", "cannot be read at character 2"),
        ("open(1)", "no function open"),
        ("x + 1", "no x here"),
        ("sqrt(1, 2)", "takes 1"),
        ("1 / 0", "division by zero"),
        ("0 / 0", "no value"),
        ("sqrt(-1)", "no value"),
        ("9 ^ 9 ^ 9", "up to 1,000"),
        ("10 ^ 1000 * 10", "too large"),
        ("1e9999", "too large"),
        ("exp(10 ^ 900)", "too large"),
        ("9!!!!!!", "factorial"),
        ("round(1, 99)", "0 to 20 places"),
    ],
)
def test_what_has_no_value_is_said_in_words(expression: str, words: str) -> None:
    with pytest.raises(ToolError, match=r"(?s).") as raised:
        value_of(expression)
    assert words in str(raised.value)


def test_the_calculator_knows_no_name_but_its_own() -> None:
    assert "_" not in GRAMMAR.partition("NAME: ")[2].splitlines()[0]


@settings(max_examples=200, deadline=None)
@given(
    st.text(max_size=LONGEST)
    | st.text("0123456789.e+-*/^!%(), ", max_size=60)
    | st.lists(st.sampled_from(["9", "99", "1e999", "^", "!", "*", "-", "(", ")", "exp(", "ln(", "sqrt(", ",", "max("]), max_size=60).map(
        "".join
    )
)
def test_no_expression_crashes_the_calculator_or_takes_long(expression: str) -> None:
    began = time.process_time()
    try:
        assert value_of(expression[:LONGEST]).is_finite()
    except ToolError:
        pass
    assert time.process_time() - began < 2


@pytest.mark.parametrize(
    ("value", "given_unit", "wanted", "result"),
    [
        ("100", "fahrenheit", "celsius", "37.7777777778"),
        ("0", "celsius", "kelvin", "273.15"),
        ("1", "mile", "kilometer", "1.609344"),
        ("60", "mile_per_hour", "kilometer_per_hour", "96.56064"),
        ("1", "us_gallon", "liter", "3.785411784"),
        ("2", "gigabyte", "megabyte", "2000"),
        ("1E+400", "kilometer", "meter", "1e+403"),
    ],
)
def test_conversions(value: str, given_unit: str, wanted: str, result: str) -> None:
    arguments = Conversion.model_validate({"value": Decimal(value), "from_unit": given_unit, "to_unit": wanted})
    assert convert_unit(arguments) == f"{value} {given_unit} = {result} {wanted}"


@pytest.mark.parametrize(
    ("value", "given_unit", "wanted", "words"),
    [
        ("1", "mile", "gram", "do not measure the same thing"),
        ("1", "__import__('os')", "gram", "no unit named"),
        ("1", "meter", "10 ** 10 ** 10", "no unit named"),
        ("1E+999999", "light_year", "millimeter", "too large"),
    ],
)
def test_what_cannot_be_converted(value: str, given_unit: str, wanted: str, words: str) -> None:
    with pytest.raises(ToolError, match=words):
        convert_unit(Conversion.model_validate({"value": Decimal(value), "from_unit": given_unit, "to_unit": wanted}))


def test_every_unit_converts_to_itself() -> None:
    for unit in UNITS:
        assert convert_unit(Conversion.model_validate({"value": 7, "from_unit": unit, "to_unit": unit})).endswith(f"= 7 {unit}")


def test_the_time_in_a_zone() -> None:
    moment = datetime(2026, 11, 30, 20, 30, 5, tzinfo=ZoneInfo("Asia/Kolkata"))
    assert told("Asia/Kolkata", moment) == "2026-11-30 20:30:05, Monday, UTC+05:30 (Asia/Kolkata)"
    assert current_time(ZoneArguments(zone="UTC")).endswith("UTC+00:00 (UTC)")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("Shanghai", "Did you mean Asia/Shanghai"),
        ("new york", "Did you mean America/New_York"),
        ("../../etc/passwd", "no time zone"),
        ("/etc/passwd", "no time zone"),
        ("America", "no time zone"),
        ("", "no time zone"),
        ("a\0b", "no time zone"),
    ],
)
def test_an_unknown_zone_is_said_and_what_was_meant(name: str, words: str) -> None:
    with pytest.raises(ToolError, match=words):
        zone_of(name)


async def test_through_the_toolbox_a_refusal_goes_to_the_model_as_it_is() -> None:
    toolbox = Toolbox(SHOWCASE, limit_s=60)
    assert (await toolbox.call("calculate", '{"expression": "1/0"}')).error == "That is a division by zero."
    assert "mass 1,898 × 10^24 kg" in (await toolbox.call("look_up_planet", '{"planet": "Jupiter"}')).text
    assert "planet" in ((await toolbox.call("look_up_planet", '{"planet": "Pluto"}')).error or "")
    assert len(PLANETS) == 8
