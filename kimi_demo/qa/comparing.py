"""Two reports side by side: endpoints, presets, thinking against instant, today against a baseline. Pure."""

from dataclasses import dataclass
from typing import Literal

from kimi_demo.qa.metrics import Trigger, trigger_of_reports
from kimi_demo.qa.report import CaseReport, Report
from kimi_demo.qa.verdict import CheckResult

Kind = Literal["worse", "gone", "better", "new", "same"]
"""gone: only the first report has it (or ran it); new: only the second."""

_ORDER: tuple[Kind, ...] = ("worse", "gone", "better", "new", "same")
_RANK = {"pass": 0, "skip": 0, "open": 1, "warn": 1, "fail": 2}


@dataclass(frozen=True)
class Change:
    """One check of one case in both reports; a case that only one of them has is a change without check."""

    case: str
    kind: Kind
    first: CaseReport | None
    second: CaseReport | None
    check: str | None = None
    before: CheckResult | None = None
    after: CheckResult | None = None


@dataclass(frozen=True)
class Comparison:
    """first: what it is held against. changes: what is worse comes first, then what is gone, better, new; what is the same is left out.
    same: how many checks are. slower: seconds of all cases that both have, second less first."""

    first: Report
    second: Report
    changes: tuple[Change, ...]
    same: int
    slower: float
    trigger: Trigger

    @property
    def worse(self) -> int:
        return sum(change.kind == "worse" for change in self.changes)


def compare(first: Report, second: Report) -> Comparison:
    """`second` against `first`. Cases are paired by their ids, checks by their names."""
    before, after = {case.id: case for case in first.cases}, {case.id: case for case in second.cases}
    found: list[Change] = []
    slower = 0.0
    for case_id in dict.fromkeys((*before, *after)):
        one, other = before.get(case_id), after.get(case_id)
        if one is None or not _ran(one):
            if other is not None and _ran(other):
                found.append(Change(case_id, "new", one, other))
            continue
        if other is None or not _ran(other):
            found.append(Change(case_id, "gone", one, other))
            continue
        slower += other.seconds - one.seconds
        found += _checks(one, other)
    changed = sorted((change for change in found if change.kind != "same"), key=lambda change: _ORDER.index(change.kind))
    same = len(found) - len(changed)
    return Comparison(first, second, tuple(changed), same, slower, trigger_of_reports(second, first))


def _ran(case: CaseReport) -> bool:
    return case.state not in ("waiting", "running")


def _checks(one: CaseReport, other: CaseReport) -> list[Change]:
    before, after = {check.check: check for check in one.checks}, {check.check: check for check in other.checks}
    found = []
    for name in dict.fromkeys((*before, *after)):
        was, now = before.get(name), after.get(name)
        # A check that is not there: nothing is said, unless the request itself failed, which `answered` tells already.
        kind: Kind = "same" if was is None or now is None else _kind(was, now)
        found.append(Change(one.id, kind, one, other, name, was, now))
    return found


def _kind(was: CheckResult, now: CheckResult) -> Kind:
    before, after = _badness(was), _badness(now)
    return "worse" if after > before else "better" if after < before else "same"


def _badness(check: CheckResult) -> tuple[int, float]:
    missed = 1 - check.passed / check.counted if check.counted else 0.0
    return _RANK[check.outcome], missed if check.outcome != "skip" else 0.0
