"""`QaRun`: a suite against a server, cases in parallel within a limit; it can be stopped, and what failed can be run again."""

import asyncio
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from datetime import UTC, datetime

from kimi_demo import __version__
from kimi_demo.engines.endpoint import Endpoint
from kimi_demo.qa.asking import LIMIT_S, attempt
from kimi_demo.qa.attempt import Attempt
from kimi_demo.qa.case import Overrides, Planned, Suite, planned
from kimi_demo.qa.judging import by_hand, judge
from kimi_demo.qa.report import CaseReport, Report, ServerSeen, State, state_of
from kimi_demo.tools.schema_checker import SchemaChecker

Told = Callable[[CaseReport], None]


class QaRun:
    """One run. Belongs to the event loop's thread.

    endpoint: a connection of the run's own, since its `as_sent` is set while cases run. at_once: requests at the same time, in place of
    the suite's. only: ids or families of the cases to run. command: the server's command line, where it is known.
    before: what an earlier run of the same suite has found; `again` goes on from there. on_case: called at every change of a case's state.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        suite: Suite,
        *,
        overrides: Overrides | None = None,
        at_once: int | None = None,
        only: Collection[str] = (),
        command: Sequence[str] = (),
        limit_s: float = LIMIT_S,
        before: Report | None = None,
        on_case: Told | None = None,
    ) -> None:
        self.suite = suite
        self._endpoint = endpoint
        self._overrides = overrides or Overrides()
        self._at_once = at_once or suite.at_once
        self._command = tuple(command)
        self._limit_s = limit_s
        self._told = on_case
        self._plan = {p.id: p for p in planned(suite, self._overrides) if not only or p.id in only or p.family in only}
        found = {case.id: case for case in before.cases if case.state != "running"} if before is not None else {}
        self._cases = {p.id: found.get(p.id) or _untouched(p) for p in self._plan.values()}
        self._task: asyncio.Task[None] | None = None
        self._started_at = before.started_at if before is not None else ""
        self._seconds = before.seconds if before is not None else 0.0
        self._version: str | None = before.server.version if before is not None else None
        self.stopped = before is not None and before.stopped

    @property
    def ids(self) -> tuple[str, ...]:
        return tuple(self._plan)

    @property
    def running(self) -> bool:
        return self._task is not None and not self._task.done()

    async def run(self, ids: Collection[str] | None = None) -> Report:
        """Runs all cases, or those with these ids; returns when they are finished or stopped. Cancelling it stops, too."""
        if self.running:
            raise RuntimeError("this run is going on already")
        chosen = [p for p in self._plan.values() if ids is None or p.id in ids]
        self.stopped = False
        self._started_at = self._started_at or datetime.now(UTC).isoformat(timespec="seconds")
        started = time.monotonic()
        for each in chosen:
            self._put(_untouched(each))
        self._task = asyncio.create_task(self._all(chosen), name=f"qa {self.suite.name}")
        try:
            await asyncio.shield(self._task)
        except asyncio.CancelledError:
            self.stop()
            await asyncio.gather(self._task, return_exceptions=True)
            if not self._stopped_by_itself:
                raise
        finally:
            self._seconds += time.monotonic() - started
        return self.report()

    async def again(self) -> Report:
        """The cases that failed, and those that were not finished, once more. The others keep what they have."""
        return await self.run([case.id for case in self._cases.values() if case.state in ("fail", "waiting", "running")])

    def stop(self) -> None:
        """Closes every open request at once; what is finished stays."""
        if self.running and self._task is not None:
            self.stopped = True
            self._task.cancel()

    def judged(self, case_id: str, *, good: bool, note: str = "") -> CaseReport:
        """What a person says of a manual case. Raises KeyError for one that is not open."""
        self._put(by_hand(self._cases[case_id], good=good, note=note))
        return self._cases[case_id]

    def report(self) -> Report:
        """As it stands now."""
        suite, endpoint = self.suite, self._endpoint
        return Report(
            suite=suite.name,
            title=suite.title,
            about=suite.about,
            server=ServerSeen(
                model=endpoint.info.id,
                root=endpoint.info.root,
                max_model_len=endpoint.info.max_model_len,
                address=endpoint.base_url,
                kind=endpoint.kind,
                version=self._version,
                flags=self._command,
            ),
            app_version=__version__,
            started_at=self._started_at,
            seconds=round(self._seconds, 3),
            at_once=self._at_once,
            overrides=self._overrides.told(),
            stopped=self.stopped,
            cases=tuple(self._cases.values()),
        )

    @property
    def _stopped_by_itself(self) -> bool:
        """Whether `stop` was called, and not the caller's own task cancelled."""
        task = asyncio.current_task()
        return self.stopped and (task is None or not task.cancelling())

    async def _all(self, chosen: Sequence[Planned]) -> None:
        before, self._endpoint.as_sent = self._endpoint.as_sent, True
        checker, jobs = SchemaChecker(), _jobs(chosen, self._endpoint.kind)
        seen: dict[str, dict[tuple[int, bool], Attempt]] = {}

        async def worker() -> None:
            for each, asked in jobs:
                if not asked:
                    self._state(each, "skip")
                for number, streamed in asked:
                    self._state(each, "running")
                    found = await attempt(self._endpoint, each, checker, number=number, streamed=streamed, limit_s=self._limit_s)
                    seen.setdefault(each.id, {})[number, streamed] = found
                if asked and len(seen[each.id]) == each.case.repeats * len(_ways(each)):
                    await self._judge(each, seen.pop(each.id))

        try:
            self._version = await self._endpoint.version()
            async with asyncio.TaskGroup() as group:
                for _ in range(self._at_once):
                    group.create_task(worker())
        finally:
            self._endpoint.as_sent = before
            await checker.aclose()
            for case in self._cases.values():  # what was stopped in the middle has not been run
                if case.state == "running":
                    self._put(case.model_copy(update={"state": "waiting"}))

    async def _judge(self, planned: Planned, seen: dict[tuple[int, bool], Attempt]) -> None:
        attempts = tuple(seen[number, streamed] for number in range(1, planned.case.repeats + 1) for streamed in _ways(planned))
        # Expressions of a suite are searched in long texts: not on the loop that others wait for.
        checks = tuple(await asyncio.to_thread(judge, planned, attempts))
        self._put(self._cases[planned.id].model_copy(update={"attempts": attempts, "checks": checks, "state": state_of(checks)}))

    def _state(self, planned: Planned, state: State) -> None:
        case = self._cases[planned.id]
        if case.state != state:
            self._put(case.model_copy(update={"state": state}))

    def _put(self, case: CaseReport) -> None:
        self._cases[case.id] = case
        if self._told is not None:
            self._told(case)


def _jobs(chosen: Sequence[Planned], kind: str) -> Iterator[tuple[Planned, list[tuple[int, bool]]]]:
    """(case, the attempts that one worker makes one after the other): none of a case that is not for this kind of server. Where the words
    of a streamed and an unstreamed reply are to be the same, all of it is one job: a server that computes several replies to the same
    prompt at once may round differently."""
    for each in chosen:
        case = each.case
        asked = [(number, streamed) for number in range(1, case.repeats + 1) for streamed in _ways(each)]
        if case.only_on and kind not in case.only_on:
            yield each, []
        elif case.checks.same_text:
            yield each, asked
        else:
            for one in asked:
                yield each, [one]


def _ways(planned: Planned) -> tuple[bool, ...]:
    return {"streamed": (True,), "whole": (False,), "both": (True, False)}[planned.case.stream]


def _untouched(planned: Planned) -> CaseReport:
    case = planned.case
    return CaseReport(
        id=case.id,
        family=planned.family,
        title=case.title,
        about=case.about,
        question=case.question,
        mode=case.mode,
        manual=case.manual,
        repeats=case.repeats,
    )
