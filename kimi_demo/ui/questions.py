"""How the runs of the tools tab belong together: a question, its versions, and what is compared with it. Pure."""

from collections.abc import Container, Sequence
from dataclasses import dataclass
from typing import Literal

from kimi_demo.runs.run import Run

Role = Literal["version", "plain", "repeat"]
"""plain: the same question without tools; repeat: the same question many times."""


@dataclass(frozen=True)
class Placed:
    """A run on the page. question: the id of the question's first run; versions: of that question, oldest first; beside: whether it
    stands beside the run before it."""

    run: Run
    question: str
    versions: Sequence[str]
    beside: bool = False


def role_of(run: Run) -> Role:
    as_what = run.asked.parameters.get("as") if run.asked is not None else None
    return as_what if as_what in ("plain", "repeat") else "version"


def question_of(run: Run) -> str:
    """The id of the first run of the question: a later one has it as its parent."""
    return run.parent or run.id


def arranged(runs: Sequence[Run], chosen: Container[str]) -> list[Placed]:
    """The runs to show, in order: of each question the chosen version (else the newest), beside it the newest run without tools, below
    them the newest repetition. runs: in order of creation; chosen: ids of versions."""
    questions: dict[str, list[Run]] = {}
    for run in runs:
        questions.setdefault(question_of(run), []).append(run)
    found = []
    for question, members in questions.items():
        by_role: dict[Role, list[Run]] = {"version": [], "plain": [], "repeat": []}
        for run in members:
            by_role[role_of(run)].append(run)
        versions = [run.id for run in by_role["version"]]
        shown = next((run for run in reversed(by_role["version"]) if run.id in chosen), None)
        for run in [shown] if shown is not None else by_role["version"][-1:]:
            found.append(Placed(run, question, versions))
        for run in by_role["plain"][-1:]:
            found.append(Placed(run, question, versions, beside=bool(versions)))
        for run in by_role["repeat"][-1:]:
            found.append(Placed(run, question, versions))
    return found
