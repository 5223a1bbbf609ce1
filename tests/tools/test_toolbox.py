"""Calling a tool with what a model wrote: the outcome is a result or words, and nothing invalid reaches a function."""

import json
import threading
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from pydantic import Field

from kimi_demo.tools.guide import GUIDE_TOOLS
from kimi_demo.tools.tool import Arguments, Tool
from kimi_demo.tools.toolbox import MOST_RESULT_CHARS, Toolbox, carry_out


class Texts(Arguments):
    many: list[str] = Field(max_length=3)
    on: bool = False


def tool_that(function: Any, arguments: type[Arguments] = Arguments) -> Toolbox:
    return Toolbox([Tool("probe", "A probe.", arguments, function)], limit_s=30)


async def error_of(toolbox: Toolbox, name: str, raw: str) -> str:
    outcome = await toolbox.call(name, raw)
    assert outcome.result is None and outcome.error is not None and outcome.text == outcome.error
    return outcome.error


async def test_a_call() -> None:
    outcome = await Toolbox(GUIDE_TOOLS).call("add", '{"a": 2, "b": 3}')
    assert (outcome.result, outcome.error, outcome.text, outcome.arguments) == ("5", None, "5", {"a": 2, "b": 3})
    assert 0 < outcome.seconds < 30


async def test_an_unknown_tool_is_told_which_there_are() -> None:
    assert await error_of(Toolbox(GUIDE_TOOLS[:2]), "eval", "{}") == 'There is no tool named "eval". Tools: add, mul.'
    assert await error_of(Toolbox([]), "add\ud800", "{}") == 'There is no tool named "add\\ud800". Tools: none.'


@pytest.mark.parametrize(
    ("raw", "lines"),
    [
        ('{"a": "3", "b": 4}', ['a: must be an integer (got "3")']),
        ('{"a": true, "b": null}', ["a: must be an integer (got true)", "b: must be an integer (got null)"]),
        ('{"a": 3}', ["b: is missing"]),
        ('{"a": 3, "b": 4, "c": 5}', ["c: is not a parameter of this tool"]),
        ('{"a": 3.5, "b": [1]}', ["a: must be an integer (got 3.5)", "b: must be an integer (got an array)"]),
        ("", ["a: is missing", "b: is missing"]),
    ],
)
async def test_invalid_arguments_are_named_one_a_line(raw: str, lines: list[str]) -> None:
    assert (await error_of(Toolbox(GUIDE_TOOLS), "add", raw)).splitlines() == ["Invalid arguments for add:", *lines]


@pytest.mark.parametrize(
    ("name", "raw", "line"),
    [
        ("compare", '{"a": "9.9", "b": 1}', 'a: must be a number (got "9.9")'),
        ("compare", '{"a": true, "b": 1}', "a: must be a number (got true)"),
        ("compare", '{"a": null, "b": 1}', "a: must be a number (got null)"),
        ("count_letter_in_string", '{"a": 5, "b": "r"}', "a: must be a string (got 5)"),
        ("count_letter_in_string", '{"a": "x", "b": "rr"}', 'b: String should have at most 1 character (got "rr")'),
        ("count_letter_in_string", '{"a": "x", "b": ""}', 'b: String should have at least 1 character (got "")'),
    ],
)
async def test_the_words_are_those_of_json(name: str, raw: str, line: str) -> None:
    assert (await error_of(Toolbox(GUIDE_TOOLS), name, raw)).splitlines()[1:] == [line]


async def test_places_inside_an_argument_are_named() -> None:
    toolbox = tool_that(lambda arguments: "never", Texts)
    assert (await error_of(toolbox, "probe", '{"many": ["a", 2], "on": 1}')).splitlines()[1:] == [
        "many.1: must be a string (got 2)",
        "on: must be true or false (got 1)",
    ]


async def test_huge_values_in_errors_are_shortened() -> None:
    error = await error_of(Toolbox(GUIDE_TOOLS), "count_letter_in_string", f'{{"a": {"9" * 20_000}, "b": "{"x" * 20_000}"}}')
    assert len(error) < 300


async def test_a_tool_that_raises_says_why_without_a_traceback() -> None:
    def broken(arguments: Arguments) -> str:
        raise ZeroDivisionError("division by zero")

    assert await error_of(tool_that(broken), "probe", "{}") == "The tool probe failed: ZeroDivisionError: division by zero"


async def test_a_tool_that_exits_ends_nothing() -> None:
    def leaving(arguments: Arguments) -> str:
        raise SystemExit(3)

    assert await error_of(tool_that(leaving), "probe", "{}") == "The tool probe failed: SystemExit: 3"


async def test_a_tool_that_returns_no_text_is_an_error() -> None:
    assert "returned int where text was expected" in await error_of(tool_that(lambda arguments: 5), "probe", "{}")


async def test_a_tool_that_takes_too_long_is_left_behind() -> None:
    release = threading.Event()
    threads: list[threading.Thread] = []

    def slow(arguments: Arguments) -> str:
        threads.append(threading.current_thread())
        release.wait(60)
        return "late"

    toolbox = Toolbox([Tool("slow", "Waits.", Arguments, slow)], limit_s=0.05)
    assert await error_of(toolbox, "slow", "{}") == "The tool slow did not finish within 0.05 seconds."
    assert all(thread.daemon for thread in threads)
    release.set()


async def test_a_long_result_is_cut_and_says_so() -> None:
    outcome = await tool_that(lambda arguments: "x" * (MOST_RESULT_CHARS + 1)).call("probe", "{}")
    assert outcome.result == "x" * MOST_RESULT_CHARS + "\n[Cut here: these are the first 20,000 of 20,001 characters.]"
    whole = await tool_that(lambda arguments: "x" * MOST_RESULT_CHARS).call("probe", "{}")
    assert whole.result == "x" * MOST_RESULT_CHARS


async def test_what_goes_back_can_always_be_sent() -> None:
    outcome = await tool_that(lambda arguments: "half \ud83c").call("probe", "{}")
    assert outcome.result == "half ?"
    (await error_of(Toolbox(GUIDE_TOOLS), "add", '{"a": "\ud83c"')).encode()


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=2), inner, max_size=2),
    max_leaves=4,
)


@given(st.sampled_from(GUIDE_TOOLS), st.dictionaries(st.sampled_from(["a", "b"]) | st.text(max_size=1), VALUES, max_size=3))
@settings(deadline=None, max_examples=300)
def test_a_function_is_reached_exactly_when_its_published_schema_allows(tool: Tool, arguments: dict[str, Any]) -> None:
    reached: list[Any] = []

    def function(given: Any) -> str:
        reached.append(given)
        return tool.function(given)

    allowed = Draft202012Validator(tool.schema()["function"]["parameters"]).is_valid(arguments)
    outcome = carry_out(Tool(tool.name, tool.description, tool.arguments, function), json.dumps(arguments))
    assert bool(reached) == allowed
    assert (outcome.result is not None) == allowed


@given(st.sampled_from(GUIDE_TOOLS), st.text() | st.text(alphabet='{}[]",:\\u0123456789.eE-+ nulltrefasb'))
@settings(deadline=None)
def test_any_text_has_an_outcome(tool: Tool, raw: str) -> None:
    outcome = carry_out(tool, raw)
    assert (outcome.result is None) != (outcome.error is None)
