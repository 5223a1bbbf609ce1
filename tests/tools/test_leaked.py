"""Calls that stand as marks in the text: when they are read, and when they are only talked about."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kimi_demo.dialect.reply import Call, Reply
from kimi_demo.tools.leaked import leaked_calls, marked, without_calls

NAMES = ("add", "mcp__s.get-w")


def call(call_id: str = "functions.add:0", arguments: str = '{"a": 1}') -> str:
    return f"<|tool_call_begin|>{call_id}<|tool_call_argument_begin|>{arguments}<|tool_call_end|>"


def section(*calls: str) -> str:
    return f"<|tool_calls_section_begin|>{''.join(calls)}<|tool_calls_section_end|>"


def read(answer: str = "", thought: str = "", reason: str = "stop") -> list[tuple[str, str, str]]:
    return [(each.id, each.name, each.arguments) for each in leaked_calls(Reply(thought, answer, finish_reason=reason), NAMES)]


@pytest.mark.parametrize("text", [call(), section(call()), f"I add.\n{section(call())}\n", call(" functions.add:0 ", ' {"a": 1} ')])
def test_a_whole_call_at_the_end_is_read(text: str) -> None:
    assert read(text) == read("", text) == [("functions.add:0", "add", '{"a": 1}')]


def test_several_calls_and_other_forms_of_ids() -> None:
    text = section(call("add:3"), call("add"), call("functions.mcp__s.get-w:7", "{}"))
    assert read(text) == [("add:3", "add", '{"a": 1}'), ("", "add", '{"a": 1}'), ("functions.mcp__s.get-w:7", "mcp__s.get-w", "{}")]


@pytest.mark.parametrize(
    "text",
    [
        call().removesuffix("<|tool_call_end|>"),
        call() + " and so on",
        call("functions.launch:0"),
        call("call_a1b2"),
        call(arguments='{"a": 1'),
        call(arguments="[1]"),
        call(arguments='{"a": "<|tool_call_end|>"}'),
        section(call(), "<|tool_call_begin|>functions.add:1"),
        f"```\n{call()}\n```",
        f"`{call()}`",
        "<|tool_calls_section_begin|>",
        "",
    ],
)
def test_what_can_be_meant_otherwise_is_left_alone(text: str) -> None:
    assert read(text) == []


def test_marks_in_the_thought_of_an_answer_and_in_a_cut_reply_are_left_alone() -> None:
    assert read("5", call()) == []
    assert read(call(), reason="length") == []
    assert leaked_calls(Reply("", call(), [Call(name="add")], "tool_calls"), NAMES) == []


def test_marks_are_noticed_outside_code() -> None:
    assert marked(Reply(call(), "")) and marked(Reply("", "<|tool_calls_section_begin|>"))
    assert not marked(Reply("", f"`{call()}`")) and not marked(Reply("<|im_end|>", "fine"))


def test_what_was_read_does_not_go_back_as_text() -> None:
    assert without_calls(f"I add. {section(call(), call())}") == "I add. "
    assert without_calls("no marks") == "no marks"


@given(st.text(alphabet=st.sampled_from('<|>tool_call_begin end argument_section{}":0a`'), max_size=200))
def test_no_text_is_too_odd(text: str) -> None:
    assert read(text) == [] or text.count("<|tool_call_begin|>")
    without_calls(text)
