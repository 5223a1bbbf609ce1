"""The report of a run: plain data, written as JSON and read again as a baseline. Its other forms are made from it."""

from collections import Counter
from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from kimi_demo.dialect.failure import Failure
from kimi_demo.qa.attempt import Attempt, Kept
from kimi_demo.qa.case import Words
from kimi_demo.qa.verdict import CheckResult

FORMAT = "kimi-demo-qa"
VERSION = 1

State = Literal["pass", "fail", "warn", "skip", "open", "waiting", "running"]
"""skip: not for this kind of server. open: waits for a person. waiting, running: the run has not finished it (yet)."""


class ServerSeen(Kept):
    """Who was asked. address: without key. flags: its command line, where it is known. limits: max_model_len."""

    model: str
    root: str | None = None
    max_model_len: int | None = None
    address: str = ""
    kind: str = ""
    version: str | None = None
    flags: tuple[str, ...] = ()


class CaseReport(Kept):
    """note: what a person wrote of it. parameters: as sent."""

    id: str
    family: str = ""
    title: Words = ""
    about: Words = ""
    question: str = ""
    mode: str = ""
    manual: Words = ""
    repeats: int = 1
    state: State = "waiting"
    checks: tuple[CheckResult, ...] = ()
    attempts: tuple[Attempt, ...] = ()
    note: str = ""

    @property
    def seconds(self) -> float:
        """Of the longest attempt."""
        return max((seen.seconds for seen in self.attempts), default=0.0)

    @property
    def wrong(self) -> tuple[CheckResult, ...]:
        return tuple(check for check in self.checks if check.outcome in ("fail", "warn"))


class Report(Kept):
    """started_at: ISO 8601, UTC. seconds: of the whole run. overrides: what was done otherwise than the suite says.
    stopped: whether somebody stopped it before its end."""

    format: Literal["kimi-demo-qa"] = "kimi-demo-qa"
    version: int = VERSION
    suite: str
    title: Words = ""
    about: Words = ""
    server: ServerSeen
    app_version: str = ""
    started_at: str = ""
    seconds: float = 0.0
    at_once: int = 1
    overrides: dict[str, str] = {}
    stopped: bool = False
    cases: tuple[CaseReport, ...] = ()

    @property
    def counts(self) -> Counter[str]:
        return Counter(case.state for case in self.cases)

    @property
    def requests(self) -> int:
        return sum(max(1, len(seen.rounds)) for case in self.cases for seen in case.attempts)

    @property
    def could_not_run(self) -> bool:
        """Whether nothing can be said: it was stopped, or no request reached the server."""
        tried = [seen for case in self.cases for seen in case.attempts if case.mode not in ("models", "render")]
        unreached = [seen for seen in tried if seen.failure is not None and seen.failure.code in _UNREACHED]
        return self.stopped or (bool(tried) and len(unreached) == len(tried))

    @property
    def failed(self) -> bool:
        return any(case.state == "fail" for case in self.cases)

    def to_json(self) -> str:
        return self.model_dump_json(indent=1, exclude_defaults=False) + "\n"


_UNREACHED = frozenset(
    f"endpoint.{name}" for name in ("refused", "unreachable", "connect_timeout", "unknown_host", "closed", "needs_key", "wrong_key")
)


def state_of(checks: tuple[CheckResult, ...]) -> State:
    """The state of a case that has been run."""
    outcomes = {check.outcome for check in checks}
    for each in ("fail", "open", "warn"):
        if each in outcomes:
            return each
    return "skip" if outcomes == {"skip"} else "pass"


def read_report(path: Path) -> Report:
    """A stored report. Raises Failure: qa.unreadable (path, error), qa.no_report (path, problem)."""
    try:
        text = path.read_bytes()
    except OSError as error:
        raise Failure("qa.unreadable", path=path, error=error.strerror or error) from error
    try:
        return Report.model_validate_json(text)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(str(step) for step in first["loc"])
        raise Failure("qa.no_report", path=path, problem=f"{place}: {first['msg']}" if place else first["msg"]) from None
