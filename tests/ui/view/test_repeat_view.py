"""A repeated question on the page."""

from kimi_demo.dialect.events import Asked, Attempt, Ended, Event, Failed, Phase, Timed
from kimi_demo.ui.texts import texts
from kimi_demo.ui.view.repeat_view import RepeatView
from tests.ui.view.browser import Elements

ADD, MUL = ("add", '{"a": 1, "b": 2}', 0), ("mul", '{"a": 1, "b": 2}', 0)


def shown(*events: Event) -> Elements:
    return Elements().apply(RepeatView("x", texts("en")).take([Timed(float(at), event) for at, event in enumerate(events)]))


def test_while_it_goes_on() -> None:
    page = shown(Asked("?", {"times": 3}), Phase("tools_repeating", 1, 3), Attempt(0, (ADD,), "3", 2, 1.5))
    assert page.text("run-x-title") == "Asked 3 times"
    assert page.text("run-x-phase").startswith("Asking again and again 1/3")
    assert "All 1 made the same calls" in page.text("run-x-tally")


def test_always_the_same() -> None:
    page = shown(Asked("?", {"times": 2}), Attempt(1, (ADD,), "3", 2, 1.0), Attempt(0, (ADD,), "It is 3.", 2, 1.5), Ended("done"))
    assert 'data-same="all"' in page.html["run-x-tally"] and "add(a=1, b=2)" in page.text("run-x-tally")
    assert page.text("run-x-tally").index("It is 3. #1, rounds: 2, 1.5 s") < page.text("run-x-tally").index("3 #2, rounds: 2, 1.0 s")
    assert page.state["run-x"] == "done" and page.html["run-x-phase"] == page.html["run-x-ending"] == ""


def test_not_always_the_same_and_a_failure() -> None:
    failed = Attempt(2, (ADD, MUL), "", 8, 9.0, None, "tools.max_rounds", {"limit": "8"})
    page = shown(Asked("?", {"times": 4}), Attempt(0, (ADD,)), Attempt(1, (ADD,)), failed, Attempt(3, answer="<b>none</b>"), Ended("done"))
    text = page.text("run-x-tally")
    assert "2 of 4 made the same calls with the same arguments; 3 different ways in all." in text
    assert "still calling tools after 8 rounds" in text and "no call" in text and "<b>none" not in page.html["run-x-tally"]


def test_how_it_ended_is_said() -> None:
    assert "Stopped." in shown(Asked("?", {"times": 2}), Ended("stopped")).text("run-x-ending")
    assert "Nothing is listening" in shown(Asked("?"), Failed("endpoint.refused", {"address": "h"}), Ended("failed")).text("run-x-ending")
