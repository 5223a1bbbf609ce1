"""What a check says: of one attempt, and of all attempts at a case together."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from kimi_demo.qa.attempt import Kept

Outcome = Literal["pass", "fail", "warn", "skip", "open"]
"""warn: not as it should be, but no fault of the deployment. skip: this server does not let one see. open: waits for a person."""

MOST_CHARS = 600


@dataclass(frozen=True)
class Verdict:
    """check: its name, a key of ui/texts (`qa.check.<name>`). expected, got: short texts; got may be anything that a model wrote."""

    check: str
    outcome: Outcome
    expected: str = ""
    got: str = ""


def judged(check: str, good: bool, expected: object, got: object) -> Verdict:
    return Verdict(check, "pass" if good else "fail", shown(expected), shown(got))


def shown(value: object) -> str:
    """`value` as far as a report shows it beside others."""
    text = value if isinstance(value, str) else ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
    return text if len(text) <= MOST_CHARS else f"{text[: MOST_CHARS - 1]}…"


class CheckResult(Kept):
    """One check over all attempts: it passed in `passed` of `counted`. expected, got, attempt: of the first that did not pass, or else of
    the first; attempt is an index into the case's attempts, None where several were held together."""

    check: str
    outcome: Outcome
    passed: int
    counted: int
    expected: str = ""
    got: str = ""
    attempt: int | None = None


def together(verdicts: Sequence[tuple[int | None, Verdict]], *, needed: float, warns: bool) -> list[CheckResult]:
    """The verdicts of all attempts (index, verdict) by check, in the order in which the checks first come."""
    by_check: dict[str, list[tuple[int | None, Verdict]]] = {}
    for index, verdict in verdicts:
        by_check.setdefault(verdict.check, []).append((index, verdict))
    return [_one(check, found, needed, warns) for check, found in by_check.items()]


def _one(check: str, found: Sequence[tuple[int | None, Verdict]], needed: float, warns: bool) -> CheckResult:
    counted = [pair for pair in found if pair[1].outcome != "skip"]
    passed = sum(verdict.outcome == "pass" for _, verdict in counted)
    index, first = next((pair for pair in counted if pair[1].outcome == "fail"), None) or next(
        (pair for pair in counted if pair[1].outcome != "pass"), (counted or found)[0]
    )
    outcome: Outcome = "skip" if not counted else first.outcome
    if outcome == "fail" and passed / len(counted) >= needed:
        outcome = "pass"
    if outcome == "fail" and warns:
        outcome = "warn"
    return CheckResult(
        check=check, outcome=outcome, passed=passed, counted=len(counted), expected=first.expected, got=first.got, attempt=index
    )
