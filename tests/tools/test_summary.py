"""A tool conversation in the shape of the /tools endpoint."""

import json

import orjson
import pytest

from kimi_demo.dialect.events import AnswerDelta, Asked, Event, Finished, RoundStarted, ThoughtDelta, Timed, ToolCallDelta, ToolResult
from kimi_demo.tools.summary import summary


def test_rounds_calls_and_answer() -> None:
    events: list[Event] = [
        Asked("?"),
        RoundStarted(0),
        ThoughtDelta("I "),
        ThoughtDelta("add."),
        ToolCallDelta(0, id="functions.add:0", name="add", arguments='{"a": 1,'),
        ToolCallDelta(0, arguments=' "b": 2}'),
        ToolCallDelta(1, id="functions.add:1", name="add", arguments='{"a": 1'),
        Finished("tool_calls"),
        ToolResult(0, "functions.add:0", "add", result="3"),
        ToolResult(1, "functions.add:1", "add", error="not valid"),
        RoundStarted(1),
        AnswerDelta("It is "),
        AnswerDelta("3."),
        Finished("stop"),
    ]
    assert summary([Timed(0, event) for event in events]) == {
        "rounds": [
            {
                "reasoning": "I add.",
                "calls": [
                    {"id": "functions.add:0", "name": "add", "arguments": {"a": 1, "b": 2}, "result": "3", "error": None},
                    {"id": "functions.add:1", "name": "add", "arguments": '{"a": 1', "result": None, "error": "not valid"},
                ],
            },
            {"reasoning": "", "calls": []},
        ],
        "answer": "It is 3.",
    }


def test_a_run_that_never_asked() -> None:
    assert summary([Timed(0, Asked("?"))]) == {"rounds": [], "answer": ""}


@pytest.mark.parametrize(
    ("raw", "carried"),
    [
        ('{"a": 9223372036854775807, "b": -1.5}', True),
        ('{"a": "草莓"}', True),
        ("", True),
        ('{"a": 9223372036854775808}', False),
        ('{"a": 1e400}', False),
        ('{"a": NaN}', False),
        ('{"a": "\\ud83c"}', False),
        ('{"a": ' + "[" * 900 + "]" * 900 + "}", False),
        ('{"a": ' + "9" * 5_000 + "}", False),
        ("[1]", False),
    ],
)
def test_arguments_that_json_programs_cannot_carry_are_given_as_written(raw: str, carried: bool) -> None:
    shown = summary([Timed(0, RoundStarted(0)), Timed(0, ToolCallDelta(0, id="x", name="add", arguments=raw))])
    orjson.dumps(shown)  # Gradio's way out
    assert shown["rounds"][0]["calls"][0]["arguments"] == (json.loads(raw or "{}") if carried else raw)
