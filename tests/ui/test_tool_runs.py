"""With which tools a conversation was had, so that it is repeated with the same."""

from datetime import UTC, datetime
from typing import Any

import pytest

from kimi_demo.dialect.events import Asked, Ended, Event, RoundStarted, Timed
from kimi_demo.runs.run import Run
from kimi_demo.ui.services import ToolUse
from kimi_demo.ui.tool_runs import asked_in

TOOL = {"type": "function", "function": {"name": "mine", "parameters": {"type": "object"}}}


def run_with(*events: Event, parameters: dict[str, Any] | None = None) -> Run:
    asked = Asked("q", {"thinking": True, "temperature": 0.01, "max_tokens": 64, **(parameters or {})})
    entries = [Timed(float(at), event) for at, event in enumerate((asked, *events, Ended("done")))]
    return Run(
        id="r", owner="o", kind="tools", group="g", parent=None, title="q", created_at=datetime(2026, 11, 30, tzinfo=UTC), entries=entries
    )


@pytest.mark.parametrize(
    ("request_body", "use"),
    [
        ({"tools": [TOOL]}, ToolUse(("mine",))),
        ({"tools": [TOOL], "tool_choice": "required"}, ToolUse(("mine",), "required")),
        ({"tools": [TOOL], "parallel_tool_calls": False}, ToolUse(("mine",), parallel=False)),
        ({}, ToolUse(())),
    ],
)
def test_what_the_first_request_offered_is_offered_again(request_body: dict[str, Any], use: ToolUse) -> None:
    assert asked_in(run_with(RoundStarted(0, request_body)))[1] == use


def test_where_nothing_was_sent_the_visitors_own_choice_holds() -> None:
    assert asked_in(run_with(parameters={"approve": True}))[1] == ToolUse(None, approve=True)
