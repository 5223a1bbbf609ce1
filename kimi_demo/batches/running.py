"""A batch as it runs: rows from a file into an engine, never more of them than it needs, and each into the journal before it is shown."""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import islice
from typing import Any, Literal

from kimi_demo.batches.engines import RowEngine, is_of_the_row
from kimi_demo.batches.indices import Indices
from kimi_demo.batches.journal import Journal
from kimi_demo.batches.progress import Meter, Progress
from kimi_demo.batches.results import Result
from kimi_demo.batches.rows import BadRow, Row
from kimi_demo.dialect.failure import Failure
from kimi_demo.dialect.sampling import Sampling
from kimi_demo.engines.offline_rows import RowAsk, own_seed
from kimi_demo.engines.offline_stream import RowAnswer

log = logging.getLogger(__name__)

State = Literal["ready", "running", "paused", "stopping", "done", "stopped", "failed"]
"""paused: by a person, or with `failure` because nothing can be written. failed: the engine can do no more; `failure` says why."""

GROUP_S = 0.1
"""How long finished rows are gathered before they are written and synced together."""

_MOST_UNWRITTEN = 2048
"""Finished rows that may wait for a slow disk; then no more are fed."""

_READ_AT_ONCE = 256


class BatchRun:
    """One run through a journal's missing rows.

    rows: gives the file's rows from the beginning; bad ones are passed over (whoever starts this has asked). wanted: only these, None
    for all. on_rows: takes finished rows once they are on disk. on_state: is called whenever `state` or `failure` has changed.
    Everything happens on the event loop that calls `run`; reading and writing in threads beside it.
    """

    def __init__(
        self,
        rows: Callable[[], Iterator[Row | BadRow]],
        journal: Journal,
        engine: RowEngine,
        sampling: Sampling,
        *,
        thinking: bool,
        wanted: Indices | None = None,
        on_rows: Callable[[Sequence[Result]], None] = lambda results: None,
        on_state: Callable[[], None] = lambda: None,
    ) -> None:
        self.journal = journal
        self.state: State = "ready"
        self.failure: Failure | None = None
        self._rows = rows
        self._engine = engine
        self._sampling = sampling
        self._thinking = thinking
        self._wanted = wanted
        self._on_rows = on_rows
        self._on_state = on_state
        self._total = journal.manifest.rows if wanted is None else len(wanted)
        self._resumed = len(journal.done)
        self._before = (journal.prompt_tokens, journal.completion_tokens)
        self._held = False
        self._stopping = False
        self._read_all = False
        self._changed = asyncio.Event()
        self._next: deque[Row] = deque()
        self._tasks: set[asyncio.Task[None]] = set()
        self._unwritten: deque[Result] = deque()
        self._parameters: dict[str, Any] = sampling.model_dump(mode="json", exclude_none=True)
        self._meter = Meter()
        self._most_tokens = 0
        self._ran_s = 0.0
        self._since: float | None = None

    async def run(self) -> State:
        """Returns when every row is in the journal ("done"), or after `stop` ("stopped"), or when the engine is lost ("failed").

        Whatever happens, the journal holds all rows that were told, and `Journal.resume` gives the others. Cancelling is a `stop`.
        """
        self._set("running")
        working = {asyncio.create_task(self._feed(), name="batch-feed"), asyncio.create_task(self._write(), name="batch-write")}
        try:
            # Unlike `gather`, cancelling this leaves the two going: what has finished is still to be written.
            await asyncio.wait(working, return_when=asyncio.FIRST_EXCEPTION)
            for error in [task.exception() for task in working if task.done()]:
                if error is not None:
                    self._lose(_as_failure(error))
            await asyncio.wait(working)
        except asyncio.CancelledError:
            self.stop()
            await asyncio.wait(working)
            raise
        finally:
            self._set(self._ending())
        return self.state

    def _ending(self) -> State:
        if self._complete and not self._unwritten:
            return "done"
        if self._stopping:
            return "stopped"
        return "failed" if self.failure is not None else "done"

    def pause(self) -> None:
        """Feeds no new rows; those in the engine finish."""
        if self.state == "running":
            self._held = True
            self._set("paused")

    def resume(self) -> None:
        """Goes on after `pause`, or tries again to write after the disk was full."""
        if self.state == "paused":
            self._held, self.failure = False, None
            self._set("running")

    def stop(self) -> None:
        """Takes the rows that are not finished out of the engine; those that are get written."""
        if self.state in ("running", "paused"):
            self._stopping = True
            self._set("stopping")
            self._drop()

    def progress(self) -> Progress:
        """As it stands now; `done` never goes back."""
        journal, standing = self.journal, self._engine.standing
        done = len(journal.done)
        prompt, written = journal.prompt_tokens - self._before[0], journal.completion_tokens - self._before[1]
        running = min(standing.running, len(self._tasks))
        waiting_results = sum(result.completion_tokens for result in self._unwritten)
        generated = written + waiting_results
        if self._tasks:  # where the engine's count lags behind rows that have just finished, it must not seem to go back
            generated = self._most_tokens = max(self._most_tokens, generated + standing.tokens)
        seconds = self._seconds()
        if self.state == "running":
            self._meter.note(seconds, done, prompt, generated)
        row_rate, prompt_rate, generated_rate = self._meter.rates() if self.state == "running" else (0.0, 0.0, 0.0)
        overall = (done - self._resumed) / seconds if seconds > 0 else 0.0
        rate = row_rate or overall
        left = self._total - done
        return Progress(
            total=self._total,
            done=done,
            resumed=self._resumed,
            failed=journal.failed,
            cut_off=journal.cut_off,
            running=running,
            waiting=max(0, left - running),
            in_hand=len(self._tasks) + len(self._unwritten),
            prompt_tokens=prompt,
            generated_tokens=generated,
            seconds=seconds,
            prompt_rate=prompt_rate,
            generated_rate=generated_rate,
            left_s=0.0 if not left else left / rate if rate > 0 else None,
        )

    # Feeding.

    async def _feed(self) -> None:
        rows = self._missing(self._rows())
        while not self._over and not self._complete:
            await self._until(lambda: self._over or self._complete or (not self._held and self._room > 0))
            if not self._next and not self._read_all and not self._over:
                read = await asyncio.to_thread(lambda: list(islice(rows, _READ_AT_ONCE)))
                self._next.extend(read)
                self._read_all = not read
            while self._next and self._room > 0 and not self._held and not self._over:
                task = asyncio.create_task(self._one(self._next.popleft()))
                self._tasks.add(task)
                task.add_done_callback(self._left)
            if self._read_all and not self._next:
                break
        self._read_all = True
        self._changed.set()

    def _missing(self, rows: Iterator[Row | BadRow]) -> Iterator[Row]:
        for row in rows:
            if isinstance(row, Row) and row.index not in self.journal.done and (self._wanted is None or row.index in self._wanted):
                yield row

    @property
    def _room(self) -> int:
        return self._engine.room - len(self._tasks) if len(self._unwritten) < _MOST_UNWRITTEN else 0

    @property
    def _complete(self) -> bool:
        return len(self.journal.done) >= self._total

    @property
    def _over(self) -> bool:
        return self._stopping or self.state == "failed"

    async def _one(self, row: Row) -> None:
        sampling = self._sampling
        if row.changes:
            sampling = sampling.model_copy(update=dict(row.changes))
        parameters = self._parameters if not row.changes else sampling.model_dump(mode="json", exclude_none=True)
        if "seed" not in row.changes:
            sampling = own_seed(sampling, row.index)
        thinking = self._thinking if row.thinking is None else row.thinking
        found: RowAnswer | Failure
        try:
            found = await self._engine.answer(RowAsk(row.messages, sampling, thinking))
        except Failure as failure:
            if not is_of_the_row(failure):
                self._lose(failure)
                return
            found = failure
        except Exception as error:
            self._lose(_as_failure(error))
            return
        self._unwritten.append(self._result(row, found, thinking, parameters))
        self._changed.set()

    def _result(self, row: Row, found: RowAnswer | Failure, thinking: bool, parameters: dict[str, Any]) -> Result:
        shared = Result(
            index=row.index,
            line=row.line,
            prompt=row.prompt,
            custom_id=row.custom_id,
            messages=None if isinstance(row.ask, str) else list(row.ask),
            thinking=thinking,
            parameters=parameters,
            model=self._engine.model,
            engine=self._engine.name,
            versions=self._engine.versions,
            run=self.journal.manifest.fingerprint,
            finished_at=datetime.now(UTC).isoformat(timespec="milliseconds"),
            columns=row.columns,
        )
        return filled(shared, found)

    def _left(self, task: "asyncio.Task[None]") -> None:
        self._tasks.discard(task)
        self._changed.set()

    def _lose(self, failure: Failure) -> None:
        """The engine is gone; rows in it are kept for a resume."""
        if not self._over:
            self.failure = failure
            self._set("failed")
            self._drop()

    def _drop(self) -> None:
        for task in list(self._tasks):
            task.cancel()

    async def _let_go(self) -> None:
        self._drop()
        if self._tasks:
            await asyncio.wait(set(self._tasks))

    # Writing.

    async def _write(self) -> None:
        while True:
            await self._until(lambda: bool(self._unwritten) or (self._read_all and not self._next and not self._tasks) or self._over)
            if self._over:
                await self._let_go()
            if not self._unwritten:
                if self._over or (self._read_all and not self._next and not self._tasks):
                    return
                continue
            if not self._over:
                await asyncio.sleep(GROUP_S)
            group = list(islice(self._unwritten, _MOST_UNWRITTEN))
            try:
                await asyncio.to_thread(self.journal.append, group)
            except Failure as failure:
                if self._over:
                    return  # they were never told, so a resume computes them again
                self.failure, self._held = failure, True
                self._set("paused")
                await self._until(lambda: self.state != "paused")
                continue
            for _ in group:
                self._unwritten.popleft()
            self._changed.set()
            self._on_rows(group)

    async def _until(self, condition: Callable[[], bool]) -> None:
        while not condition():
            self._changed.clear()
            await self._changed.wait()

    # Time and state.

    def _set(self, state: State) -> None:
        self.state = state
        self._clock(state == "running")
        self._changed.set()
        self._on_state()

    def _clock(self, going: bool) -> None:
        if going and self._since is None:
            self._since = time.monotonic()
        elif not going and self._since is not None:
            self._ran_s += time.monotonic() - self._since
            self._since = None

    def _seconds(self) -> float:
        return self._ran_s + (time.monotonic() - self._since if self._since is not None else 0.0)


def _as_failure(error: BaseException) -> Failure:
    if isinstance(error, Failure):
        return error
    log.error("the batch broke", exc_info=error)
    return Failure("unexpected", error=f"{type(error).__name__}: {error}")


def filled(shared: Result, found: RowAnswer | Failure) -> Result:
    """`shared` with what became of the row."""
    if isinstance(found, Failure):
        return replace(shared, error=found.code, error_params=found.params)
    return replace(
        shared,
        rendered_prompt=found.rendered,
        reasoning=found.reasoning,
        answer=found.answer,
        finish_reason=found.finish_reason,
        prompt_tokens=found.prompt_tokens,
        completion_tokens=found.completion_tokens,
        reasoning_tokens=found.reasoning_tokens,
        seconds=round(found.seconds, 4),
    )
