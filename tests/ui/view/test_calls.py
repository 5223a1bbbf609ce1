"""Tool calls on the page: every state, the arguments as they stream, the check, the person who is asked."""

import json
import re
from html import unescape
from typing import Any

import pytest

from kimi_demo.dialect.events import (
    AnswerDelta,
    Asked,
    Ended,
    Event,
    Failed,
    Finished,
    Phase,
    Problem,
    RoundStarted,
    ThoughtDelta,
    Timed,
    ToolCallDelta,
    ToolChecked,
    ToolDecided,
    ToolEdited,
    ToolResult,
    ToolStarted,
    ToolWaiting,
    Usage,
)
from kimi_demo.runs.run import Run
from kimi_demo.ui.questions import Placed
from kimi_demo.ui.texts import texts
from kimi_demo.ui.view.json_text import SHOWN_LIMIT, brief, pretty
from kimi_demo.ui.view.tool_run_view import ToolRunView
from tests.ui.view.browser import Elements

CALL = "run-x-0-call-0"
BEGUN = (Asked("q"), RoundStarted(0), ThoughtDelta("use a tool"), ToolCallDelta(0, id="functions.add:0", name="add"))
WRITTEN = (*BEGUN, ToolCallDelta(0, arguments='{"a": 1, "b": 2.50}'), Finished("tool_calls"))
PASSED = (*WRITTEN, ToolChecked(0))


def view(versions: tuple[str, ...] = ("x",)) -> ToolRunView:
    return ToolRunView(Placed(Run(owner="me", kind="tools", title="t", id="x"), "x", versions), texts("en"))


def shown(*events: Event, versions: tuple[str, ...] = ("x",)) -> Elements:
    """One event every half second."""
    return Elements().apply(view(versions).take([Timed(index / 2, event) for index, event in enumerate(events)]))


def words(html: str) -> str:
    return unescape(re.sub(r"<[^>]*>", " ", html))


STATES: dict[str, tuple[Event, ...]] = {
    "writing": (*BEGUN, ToolCallDelta(0, arguments='{"a": 1, "b"')),
    "waiting": PASSED,
    "invalid": (*WRITTEN, ToolChecked(0, (Problem("b", "type", "must be an integer"),))),
    "asking": (*PASSED, ToolWaiting(0, "approval", 900)),
    "running": (*PASSED, ToolStarted(0)),
    "done": (*PASSED, ToolStarted(0), ToolResult(0, "functions.add:0", "add", result="3", seconds=0.25)),
    "failed": (*PASSED, ToolStarted(0), ToolResult(0, "functions.add:0", "add", error="It broke.")),
    "refused": (
        *PASSED,
        ToolWaiting(0, "approval", 900),
        ToolDecided(0, "refused"),
        ToolResult(0, "functions.add:0", "add", error="Not carried out."),
    ),
    "cut_off": (*BEGUN, ToolCallDelta(0, arguments='{"a"'), Finished("length"), ToolResult(0, "", "add", error="x"), Ended("failed")),
    "stopped": (*BEGUN, ToolCallDelta(0, arguments='{"a"'), Ended("stopped")),
}


@pytest.mark.parametrize("state", STATES)
def test_every_state_has_its_name(state: str) -> None:
    page = shown(*STATES[state])
    assert page.state[CALL] == state
    assert f'<span class="badge">{texts("en").say(f"calls.state.{state}")}</span>' in page.html[f"{CALL}-head"]


@pytest.mark.parametrize("state", ["waiting", "asking", "running"])
def test_what_is_left_open_when_the_run_is_stopped_says_so(state: str) -> None:
    page = shown(*STATES[state], Ended("stopped"))
    assert page.state[CALL] == "stopped" and page.html.get(f"{CALL}-person", "") == ""
    assert "data-elapsed" not in page.html[f"{CALL}-head"]


def test_arguments_are_appended_while_they_are_written() -> None:
    live = view()
    page = Elements().apply(live.take([Timed(0.0, event) for event in BEGUN]))
    for part in ('{"a"', ": 1}"):
        patches = live.take([Timed(1.0, ToolCallDelta(0, arguments=part))])
        assert ("text", f"{CALL}-arguments", part) in patches
        page.apply(patches)
    assert page.html[f"{CALL}-arguments"] == '{"a": 1}'
    page.apply(live.take([Timed(2.0, Finished("tool_calls"))]))
    assert "<pre>{\n  &quot;a&quot;: 1\n}</pre>" in page.html[f"{CALL}-arguments"]
    assert '<pre class="as-written">{&quot;a&quot;: 1}</pre>' in page.html[f"{CALL}-arguments"]


def test_ten_megabytes_of_arguments_are_not_all_shown() -> None:
    live, piece = view(), "x" * 1_000_000
    page = Elements().apply(live.take([Timed(0.0, event) for event in BEGUN]))
    for _ in range(10):
        page.apply(live.take([Timed(1.0, ToolCallDelta(0, arguments=piece))]))
    assert "10,000,000 characters so far" in page.html[f"{CALL}-head"]
    page.apply(live.take([Timed(2.0, Finished("tool_calls")), Timed(2.0, Ended("done"))]))
    assert "(+9,980,000)" in page.html[f"{CALL}-arguments"]
    assert page.sent < 6 * SHOWN_LIMIT
    assert page.html.get(f"{CALL}-edit", "") == ""  # what is not whole on the page cannot be edited there


def test_the_outcome_is_what_the_model_gets() -> None:
    page = shown(*STATES["done"])
    assert '<div class="outcome result"><b>Result</b><pre>3</pre></div>' in page.html[f"{CALL}-outcome"]
    assert "0.250 s" in page.html[f"{CALL}-head"] and "functions.add:0" in page.html[f"{CALL}-head"]
    assert "Fits the schema" in page.html[f"{CALL}-check"]
    assert words(page.html[f"{CALL}-brief"]).split() == "add(a=1, b=2.50) → 3".split()


def test_what_is_wrong_with_arguments_is_named_with_its_place_and_rule() -> None:
    page = shown(*WRITTEN, ToolChecked(0, (Problem("b", "type", "must be an integer (got 2.50)"), Problem("", "json", "Not JSON."))))
    assert " ".join(words(page.html[f"{CALL}-check"]).split()) == (
        "Does not fit the schema; not carried out b must be an integer (got 2.50) (rule: type) Not JSON. (rule: json)"
    )


def test_a_person_is_asked_for_leave() -> None:
    page = shown(*STATES["asking"])
    html = page.html[f"{CALL}-person"]
    for decision in ("approved", "refused"):
        assert (
            f'data-act="tools_decide" data-value-decision="{decision}" data-value-run="x" data-value-round="0" data-value-call="0"' in html
        )
    assert "waits up to 15 min" in html and 'data-elapsed="0.00"' in page.html[f"{CALL}-head"]
    after = shown(*STATES["asking"], ToolDecided(0, "approved"), ToolStarted(0))
    assert after.html.get(f"{CALL}-person", "") == "" and "approved by you" in after.html[f"{CALL}-head"]


def test_a_person_is_asked_for_the_result() -> None:
    html = shown(*PASSED, ToolWaiting(0, "result", 60)).html[f"{CALL}-person"]
    assert 'data-form="tools_answer"' in html and '<textarea name="text"' in html and "What does add return?" in html


def test_a_form_that_is_being_filled_in_is_left_alone() -> None:
    live = view()
    events = (*PASSED, ToolWaiting(0, "result", 60))
    live.take([Timed(0.0, event) for event in events])
    assert not [patch for patch in live.take([Timed(5.0, Usage(1, 2, 3))]) if patch[1].startswith(CALL)]


def test_edits_are_offered_when_the_run_has_ended_and_marked_afterwards() -> None:
    assert f"{CALL}-edit" not in shown(*STATES["done"]).html
    html = shown(*STATES["done"], Ended("done")).html[f"{CALL}-edit"]
    assert html.count('data-form="tools_edit"') == 2 and 'data-value-what="arguments"' in html and 'data-value-what="result"' in html
    assert "result edited" in shown(*STATES["done"], ToolEdited(0, "result")).html[f"{CALL}-head"]


HOSTILE = "</pre><script>alert(1)</script>\"'<img src=x onerror=alert(1)>"


def test_nothing_that_a_model_or_a_tool_writes_becomes_html() -> None:
    page = shown(
        Asked(HOSTILE),
        RoundStarted(0, {"messages": [{"role": "assistant", "reasoning": HOSTILE, "tool_calls": [{"id": HOSTILE}]}]}),
        ToolCallDelta(0, HOSTILE, HOSTILE, json.dumps({HOSTILE: HOSTILE})),
        Finished("tool_calls"),
        ToolChecked(0, (Problem(HOSTILE, HOSTILE, HOSTILE),)),
        ToolWaiting(0, "result", 60),
        ToolResult(0, HOSTILE, HOSTILE, error=HOSTILE),
        Ended("done"),
        versions=("x",),
    )
    everything = "".join(page.html.values())
    assert "<script" not in everything and "<img" not in everything and everything.count("alert(1)") > 8


def test_a_round_says_what_went_back_to_the_model() -> None:
    messages = [
        {"role": "user", "content": "q"},
        {"role": "assistant", "reasoning": "I add.", "tool_calls": [{"id": "functions.add:0"}]},
        {"role": "tool", "content": "3"},
    ]
    page = shown(*STATES["done"], RoundStarted(1, {"messages": messages}), AnswerDelta("3"), Finished("stop"), Ended("done"))
    assert page.html.get("run-x-0-sent", "") == ""
    assert (
        page.text("run-x-1-sent")
        == "Sent back to the model: its reasoning (6 characters) and the results (1)Reasoning of turn 1, before functions.add:0I add."
    )


def test_the_totals() -> None:
    page = shown(
        *STATES["done"][:-3],
        ToolCallDelta(1, "functions.add:1", "add", "{"),
        Usage(100, 20, 5),
        *STATES["done"][-3:],
        ToolResult(1, "functions.add:1", "add", error="bad"),
        RoundStarted(1),
        AnswerDelta("3"),
        Usage(1150, 7, 0),
        Finished("stop"),
        Ended("done"),
    )
    assert page.html["run-x-totals"] == (
        "<span>rounds: 2</span><span>calls: 2 (1 failed)</span><span>1,250 tokens read, 27 written</span><span>8.0 s in all</span>"
    )


def offers(page: Elements) -> list[str]:
    return re.findall(r'data-act="(\w+)"', page.html["run-x-ending"])


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ((*STATES["done"], Failed("tools.max_rounds", {"limit": "1"}), Ended("failed")), ["tools_go_on", "tools_again"]),
        ((*STATES["done"], Failed("tools.loop", {"name": "add", "times": "3"}), Ended("failed")), ["tools_again"]),
        ((*STATES["running"], Ended("interrupted")), ["tools_go_on", "tools_again"]),
        ((*STATES["done"], RoundStarted(1), Failed("endpoint.broke_off"), Ended("failed")), ["tools_again"]),
        ((Asked("q"), Failed("endpoint.refused", {"address": "h"}), Ended("failed")), ["tools_again"]),
        ((Asked("q"), RoundStarted(0, {"max_tokens": 64}), *STATES["cut_off"][3:-1], Ended("done")), ["tools_again"]),
        ((*STATES["done"], RoundStarted(1), AnswerDelta("3"), Finished("stop"), Ended("done")), []),
    ],
)
def test_what_helps_is_offered_at_the_end(events: tuple[Event, ...], expected: list[str]) -> None:
    assert offers(shown(*events)) == expected


def test_a_retry_names_the_round_that_failed() -> None:
    html = shown(*STATES["done"], RoundStarted(1), Failed("endpoint.broke_off"), Ended("failed")).html["run-x-ending"]
    assert 'data-value-run="x" data-value-round="1"' in html and "Try again from round 2" in html


def test_more_tokens_are_offered_after_a_cut() -> None:
    html = shown(Asked("q"), RoundStarted(0, {"max_tokens": 1000}), ThoughtDelta("a"), Finished("length"), Ended("done")).html[
        "run-x-ending"
    ]
    assert 'data-value-max_tokens="4000"' in html and "Try again with 4,000 tokens" in html


def test_an_answer_without_any_call_is_said() -> None:
    page = shown(Asked("q"), RoundStarted(0), AnswerDelta("42"), Finished("stop"), Ended("done"))
    assert page.text("run-x-ending") == "The model answered without calling a tool."


def test_a_call_that_was_read_in_the_answer_is_shown_as_a_call_only() -> None:
    leaked = '<|tool_call_begin|>functions.add:0<|tool_call_argument_begin|>{"a": 1}<|tool_call_end|>'
    begun = (Asked("q"), RoundStarted(0), AnswerDelta(f"I add. {leaked}"), Finished("stop"), Phase("tools.recovered"))
    page = shown(*begun, ToolCallDelta(0, "functions.add:0", "add", '{"a": 1}'), ToolResult(0, "", "add", "1"), Ended("done"))
    assert page.text("run-x-0-answer-done").strip() == "I add." and page.html.get("run-x-0-notes", "") == ""
    assert "only one way to read it" in page.html["run-x-rounds"]


def test_remarks_stay_between_the_rounds() -> None:
    assert "asked once more without streaming" in shown(Asked("q"), RoundStarted(0), Phase("tools.asked_again")).html["run-x-rounds"]


def test_versions_are_reached_by_arrows() -> None:
    live = ToolRunView(Placed(Run(owner="me", kind="tools", title="t", id="x"), "w", ("w", "x", "y")), texts("en"))
    html = live.skeleton()
    assert re.findall(r'data-act="tools_version" data-value-run="(\w)"', html) == ["w", "y"] and "2/3" in html
    assert "tools_version" not in view().skeleton()


@pytest.mark.parametrize(
    ("raw", "line"),
    [
        ('{"a": 1.0, "b": [1, {"c": "x"}], "d": null}', 'a=1.0, b=[1, {"c": "x"}], d=null'),
        ("", ""),
        ("not\n json", "not json"),
        ("[1]", "[1]"),
        ("x" * 500, "x" * 159 + "…"),
    ],
)
def test_arguments_on_one_line(raw: str, line: str) -> None:
    assert brief(raw) == line


@pytest.mark.parametrize("raw", ["[" * 100_000, "{" + " " * 30_000 + "}", "NaN", "\ud800"])
def test_whatever_the_arguments_are_they_can_be_shown(raw: str) -> None:
    results: list[Any] = [pretty(raw), brief(raw)]
    assert all(isinstance(each, str) for each in results)
