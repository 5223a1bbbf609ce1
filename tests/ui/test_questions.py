"""Which runs of the tools tab are shown, and where."""

from typing import Any

from kimi_demo.dialect.events import Asked, Ended, Timed
from kimi_demo.runs.run import Run
from kimi_demo.ui.questions import arranged


def run(name: str, parent: str | None = None, **parameters: Any) -> Run:
    entries = [Timed(0.0, Asked("?", parameters)), Timed(1.0, Ended("done"))]
    return Run(owner="me", kind="tools", title="t", id=name, parent=parent, entries=entries)


def places(*runs: Run, chosen: set[str] = frozenset()) -> list[tuple[str, list[str], bool]]:  # type: ignore[assignment]
    return [(each.run.id, list(each.versions), each.beside) for each in arranged(runs, chosen)]


def test_questions_follow_one_another() -> None:
    assert places(run("a"), run("b")) == [("a", ["a"], False), ("b", ["b"], False)]
    assert places() == []


def test_of_several_versions_the_newest_is_shown_or_the_chosen_one() -> None:
    runs = [run("a"), run("b"), run("a2", "a"), run("a3", "a")]
    assert places(*runs) == [("a3", ["a", "a2", "a3"], False), ("b", ["b"], False)]
    assert places(*runs, chosen={"a2", "elsewhere"})[0][0] == "a2"


def test_a_comparison_stands_beside_its_question_and_a_repetition_below() -> None:
    runs = [run("a"), run("b"), run("p", "a", **{"as": "plain"}), run("r", "a", **{"as": "repeat"}), run("p2", "a", **{"as": "plain"})]
    assert places(*runs) == [("a", ["a"], False), ("p2", ["a"], True), ("r", ["a"], False), ("b", ["b"], False)]


def test_what_is_left_when_the_question_itself_is_gone() -> None:
    assert places(run("p", "a", **{"as": "plain"}), run("a2", "a")) == [("a2", ["a2"], False), ("p", ["a2"], True)]
    assert places(run("p", "a", **{"as": "plain"})) == [("p", [], False)]
