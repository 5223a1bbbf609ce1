"""The two metrics of Moonshot's K2 Vendor Verifier, as its README defines them (MoonshotAI/K2-Vendor-Verifier, "Evaluation Metrics"). Pure.

Both look at one completion a request, and call what is not `tool_calls` alike, whether it is `stop`, `length` or anything else.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kimi_demo.qa.attempt import RoundSeen
from kimi_demo.qa.report import Report

CALLS = "tool_calls"


@dataclass(frozen=True)
class Trigger:
    """ToolCall-Trigger Similarity. tp: both called; fp: only we; fn: only the reference; tn: neither."""

    tp: int = 0
    fp: int = 0
    fn: int = 0
    tn: int = 0

    @property
    def precision(self) -> float | None:
        return self.tp / (self.tp + self.fp) if self.tp + self.fp else None

    @property
    def recall(self) -> float | None:
        return self.tp / (self.tp + self.fn) if self.tp + self.fn else None

    @property
    def f1(self) -> float | None:
        """2 P R / (P + R); None where nobody called, 0 where no call was in common."""
        if self.tp + self.fp + self.fn == 0:
            return None
        precision, recall = self.precision or 0.0, self.recall or 0.0
        return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


@dataclass(frozen=True)
class SchemaAccuracy:
    """calls: completions that ended with `tool_calls`; successful: those of them that hold calls, all with valid arguments."""

    calls: int = 0
    successful: int = 0

    @property
    def accuracy(self) -> float | None:
        return self.successful / self.calls if self.calls else None


def trigger(ours: Mapping[str, str | None], reference: Mapping[str, str | None]) -> Trigger:
    """Finish reasons by request; only requests that both have are counted."""
    counts = {(True, True): 0, (True, False): 0, (False, True): 0, (False, False): 0}
    for key in ours.keys() & reference.keys():
        counts[ours[key] == CALLS, reference[key] == CALLS] += 1
    return Trigger(counts[True, True], counts[True, False], counts[False, True], counts[False, False])


def schema_accuracy(completions: Iterable[tuple[str | None, bool]]) -> SchemaAccuracy:
    """(finish reason, whether there are calls and all are valid) of each completion."""
    valid = [good for finish, good in completions if finish == CALLS]
    return SchemaAccuracy(len(valid), sum(valid))


def is_valid(seen: RoundSeen) -> bool:
    return bool(seen.calls) and all(call.problems == () for call in seen.calls)


def of_report(report: Report) -> SchemaAccuracy:
    """Over the first reply of every attempt at a case."""
    firsts = [seen.rounds[0] for case in report.cases for seen in case.attempts if seen.rounds and seen.rounds[0].request.get("tools")]
    return schema_accuracy((first.finish_reason, is_valid(first)) for first in firsts)


def trigger_of_reports(report: Report, reference: Report) -> Trigger:
    return trigger(_finishes(report), _finishes(reference))


def _finishes(report: Report) -> dict[str, str | None]:
    """By case and attempt, of requests that offered tools."""
    return {
        f"{case.id} {seen.number} {seen.streamed}": seen.rounds[0].finish_reason
        for case in report.cases
        for seen in case.attempts
        if seen.rounds and seen.rounds[0].request.get("tools")
    }
