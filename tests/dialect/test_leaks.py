"""Marks that stand in a reply as text."""

import pytest

from kimi_demo.dialect.leaks import leaks
from kimi_demo.dialect.reply import Reply

CALL = "<|tool_call_begin|>functions.add:0<|tool_call_argument_begin|>{}<|tool_call_end|>"


@pytest.mark.parametrize(
    ("thought", "answer", "found"),
    [
        ("T", "A", []),
        ("T", CALL, ["tool_marks_in_answer"]),
        (f"I call {CALL}", "", ["tool_marks_in_thought"]),
        ("", "T</think>A", ["thought_end_in_answer"]),
        (CALL, f"x</think>{CALL}", ["tool_marks_in_thought", "tool_marks_in_answer", "thought_end_in_answer"]),
        ("", "Kimi writes `</think>` and:\n\n```\n<|tool_call_begin|>\n```\nso.", []),  # quoted
        ("", "```\nopen `</think>", []),
    ],
)
def test_leaks(thought: str, answer: str, found: list[str]) -> None:
    assert leaks(Reply(thought=thought, answer=answer)) == found


def test_after_a_budget_a_second_end_is_the_thought_going_on() -> None:
    assert leaks(Reply(thought="T", answer="more</think>A", request={"thinking_token_budget": 5})) == ["thought_goes_on"]
