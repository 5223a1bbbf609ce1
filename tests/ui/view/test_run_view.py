"""A run's events → what is shown, state by state."""

import random

import pytest

from kimi_demo.dialect.events import (
    AnswerDelta,
    Asked,
    Ended,
    Event,
    Failed,
    Finished,
    Phase,
    RoundStarted,
    ThoughtDelta,
    Timed,
    ToolCallDelta,
    ToolResult,
    Usage,
)
from kimi_demo.ui.texts import texts
from kimi_demo.ui.view.run_view import RunView
from tests.ui.view.browser import Elements

KEY = "run-x"


def timed(*events: Event) -> list[Timed]:
    """One event every half second."""
    return [Timed(index / 2, event) for index, event in enumerate(events)]


def shown(*events: Event, titled: bool = False) -> Elements:
    return Elements().apply(RunView("x", texts("en"), titled=titled).take(timed(*events)))


def test_while_it_thinks_the_panel_is_open_and_its_clock_runs() -> None:
    page = shown(Asked("hi"), RoundStarted(0), ThoughtDelta("I wonder"), Usage(completion_tokens=2, reasoning_tokens=2, final=False))
    assert page.text(f"{KEY}-0-thought-text") == "I wonder"
    assert page.text(f"{KEY}-0-thought-title") == "Thinking1.0 s2 tokens"
    assert 'data-elapsed="1.00"' in page.html[f"{KEY}-0-thought-title"]
    assert page.state[f"{KEY}-0-thought"] == "running"
    assert f"{KEY}-0-thought" not in page.open  # it is open from the start


def test_when_the_answer_begins_the_panel_closes_and_its_clock_stops() -> None:
    page = shown(Asked("hi"), RoundStarted(0), ThoughtDelta("I wonder"), AnswerDelta("\n"), AnswerDelta("Yes"), Usage(3, 5, 2))
    assert page.open[f"{KEY}-0-thought"] is False
    assert page.text(f"{KEY}-0-thought-title") == "Thought0.5 s2 tokens"
    assert "data-elapsed" not in page.html[f"{KEY}-0-thought-title"]
    assert page.text(f"{KEY}-0-answer-tail").strip() == "Yes"


def test_white_space_before_the_answer_does_not_close_the_panel() -> None:
    page = shown(Asked("hi"), RoundStarted(0), ThoughtDelta("I wonder"), AnswerDelta("\n\n"))
    assert page.open == {}


def test_a_count_that_the_server_did_not_give_is_marked() -> None:
    page = shown(Asked("hi"), RoundStarted(0), ThoughtDelta("a"), ThoughtDelta("b"))
    assert "about 2 tokens" in page.text(f"{KEY}-0-thought-title")


def test_the_figures_of_a_finished_reply() -> None:
    page = shown(Asked("hi"), RoundStarted(0), ThoughtDelta("a"), AnswerDelta("b"), Usage(10, 4, 1), Finished("stop"), Ended("done"))
    figures = page.html[f"{KEY}-0-numbers"].split("<details")[0].replace("</span><span>", "|").replace("<span>", "").replace("</span>", "")
    assert figures == (
        "10 tokens in|thought 1 tokens|answer 3 tokens at 6.0/s|first token 0.50 s|first answer token 1.00 s|finish reason stop"
    )
    assert page.state[KEY] == "done" and page.html[f"{KEY}-ending"] == ""


def test_the_question_and_the_answer_are_not_interpreted_as_html() -> None:
    page = shown(
        Asked("<b>hi</b>"), RoundStarted(0), ThoughtDelta("<i>x</i>"), AnswerDelta("<script>1</script>"), Finished("stop"), Ended("done")
    )
    assert page.html[f"{KEY}-question"] == '<div class="bubble">&lt;b&gt;hi&lt;/b&gt;</div>'
    assert "<script" not in page.html[f"{KEY}-0-answer-done"] and f"{KEY}-0-thought-text" not in page.html


def test_cut_off_in_thought_is_said() -> None:
    page = shown(
        Asked("hi", {"max_tokens": 200}), RoundStarted(0), ThoughtDelta("a"), Usage(3, 200, 200), Finished("length"), Ended("done")
    )
    assert page.text(f"{KEY}-ending") == ("All 200 tokens went into thinking; there is no answer. Raise max tokens, or turn thinking off.")
    assert page.state[f"{KEY}-0-thought"] == "done"


def test_cut_off_in_the_answer_is_said() -> None:
    page = shown(Asked("hi", {"max_tokens": 20}), RoundStarted(0), AnswerDelta("a"), Finished("length"), Ended("done"))
    assert page.text(f"{KEY}-ending") == "The answer was cut off at the limit of 20 tokens. Raise max tokens to get more."


def test_an_empty_turn_is_said() -> None:
    assert "without an answer" in shown(Asked("hi"), RoundStarted(0), Finished("stop"), Ended("done")).text(f"{KEY}-ending")


@pytest.mark.parametrize(("state", "words"), [("stopped", "Stopped."), ("interrupted", "Interrupted:")])
def test_an_early_end_is_said_and_the_clock_stops(state: str, words: str) -> None:
    page = shown(Asked("hi"), RoundStarted(0), ThoughtDelta("half a th"), Ended(state))  # type: ignore[arg-type]
    assert page.text(f"{KEY}-ending").startswith(words)
    assert page.text(f"{KEY}-0-thought-title") == "Thought, not finished0.5 sabout 1 tokens" and page.open == {}  # it stays open
    assert page.lazy[f"{KEY}-0-thought-text"] == "kimi/thought/x/0"
    assert "data-elapsed" not in page.html[f"{KEY}-0-thought-title"]
    assert page.html[f"{KEY}-phase"] == ""


def test_a_failure_says_what_happened_and_what_to_do() -> None:
    page = shown(Asked("hi"), Failed("endpoint.refused", {"address": "http://h:1"}), Ended("failed"))
    assert page.text(f"{KEY}-ending") == "Nothing is listening at http://h:1. Start the server there, or check host and port."


def test_loading_is_shown_as_phases() -> None:
    page = shown(Asked("hi"), Phase("rehearsal.building"))
    assert page.text(f"{KEY}-phase") == "Building the rehearsal model0.5 s"


CALLS = (
    Asked("q"),
    RoundStarted(0),
    ThoughtDelta("use a tool"),
    ToolCallDelta(0, id="functions.add:0", name="add"),
    ToolCallDelta(0, arguments='{"a": 1, "b"'),
)


def test_the_same_is_shown_however_the_events_are_cut_into_batches() -> None:
    events = timed(
        *CALLS,
        ToolCallDelta(0, arguments=": 2}"),
        Finished("tool_calls"),
        ToolResult(0, "functions.add:0", "add", result="3"),
        RoundStarted(1),
        *(ThoughtDelta(f"word {number}\n") for number in range(40)),
        *(AnswerDelta(part) for part in "# Title\n\nSome *text*\n\n- one\n- two\n\n```py\nx = 1\n```\n\nThe end".split(" ")),
        Usage(9, 80, 40),
        Finished("stop"),
        Ended("done"),
    )
    whole = Elements().apply(RunView("x", texts("en")).take(events))
    words = "".join(f"word {number}\n" for number in range(40))
    draw = random.Random(7)
    for _ in range(30):
        view, page, rest = RunView("x", texts("en")), Elements(), list(events)
        while rest:
            count = draw.randint(1, 12)
            page.apply(view.take(rest[:count]))
            rest = rest[count:]
        assert page.html[f"{KEY}-1-answer-done"] == whole.html[f"{KEY}-1-answer-done"] and page.html[f"{KEY}-1-answer-tail"] == ""
        assert page.lazy == whole.lazy and page.html.get(f"{KEY}-1-thought-text", words) == words
        for part in ("0-call-0-head", "0-call-0-arguments", "0-call-0-outcome", "1-thought-title", "1-numbers", "ending"):
            assert page.html[f"{KEY}-{part}"] == whole.html[f"{KEY}-{part}"], part
        assert page.state == whole.state


def test_a_long_answer_sends_only_its_last_block_again() -> None:
    view, page = RunView("x", texts("en")), Elements()
    page.apply(view.take(timed(Asked("q"), RoundStarted(0))))
    costs = []
    for _ in range(20):
        before = page.sent
        for _ in range(10):
            page.apply(view.take([Timed(1.0, AnswerDelta("A paragraph of one line.\n\n"))]))
        costs.append(page.sent - before)
    assert max(costs[1:]) <= 1.2 * min(costs[1:])
