"""The verifier's metrics, by its README's formulas."""

import pytest

from kimi_demo.qa.attempt import Attempt, CallSeen, RoundSeen
from kimi_demo.qa.metrics import of_report, schema_accuracy, trigger, trigger_of_reports
from tests.qa.test_reports import case, report

CALLED, STOPPED, CUT = "tool_calls", "stop", "length"


def test_trigger_similarity() -> None:
    ours = {"1": CALLED, "2": CALLED, "3": CALLED, "4": STOPPED, "5": CUT, "6": STOPPED, "only ours": CALLED}
    theirs = {"1": CALLED, "2": CALLED, "3": STOPPED, "4": CALLED, "5": STOPPED, "6": CUT, "only theirs": CALLED}
    found = trigger(ours, theirs)
    assert (found.tp, found.fp, found.fn, found.tn) == (2, 1, 1, 2)
    assert found.precision == found.recall == pytest.approx(2 / 3) and found.f1 == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    ("ours", "theirs", "f1"),
    [(CALLED, CALLED, 1.0), (CALLED, STOPPED, 0.0), (STOPPED, CALLED, 0.0), (STOPPED, STOPPED, None)],
)
def test_the_edges(ours: str, theirs: str, f1: float | None) -> None:
    assert trigger({"1": ours}, {"1": theirs}).f1 == f1


def test_schema_accuracy_counts_only_what_ended_with_calls() -> None:
    found = schema_accuracy([(CALLED, True), (CALLED, False), (STOPPED, True), (None, False), (CALLED, True)])
    assert (found.calls, found.successful) == (3, 2) and found.accuracy == pytest.approx(2 / 3)
    assert schema_accuracy([]).accuracy is None


def test_over_a_report() -> None:
    def seen(finish: str, *problems: str, tools: bool = True) -> Attempt:
        calls = (CallSeen(name="add", problems=problems),) if finish == CALLED else ()
        return Attempt(rounds=(RoundSeen(request={"tools": [1]} if tools else {}, finish_reason=finish, calls=calls), RoundSeen()))

    lost = Attempt(rounds=(RoundSeen(request={"tools": [1]}, finish_reason=CALLED),))
    ours = report(
        case("a", attempts=(seen(CALLED), seen(CALLED, "a: wrong"))),
        case("b", attempts=(lost,)),
        case("c", attempts=(seen(CUT, tools=False),)),
    )
    found = of_report(ours)
    assert (found.calls, found.successful) == (3, 1)
    theirs = report(case("a", attempts=(seen(STOPPED),)), case("b", attempts=(seen(CALLED),)))
    assert (trigger_of_reports(ours, theirs).tp, trigger_of_reports(ours, theirs).fp) == (1, 1)
