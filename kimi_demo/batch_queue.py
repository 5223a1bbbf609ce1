"""The batches of all visitors as the application runs them: one at a time for each, the others wait in line; whoever shows them only looks.

What they were made from and what came out lies on the shelf (batches/shelf.py), so that a batch outlives the page and the application.
"""

import asyncio
import logging
import time
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from kimi_demo.batch_books import BatchBooks, Job
from kimi_demo.batch_drafts import Draft, Drafts, renamed
from kimi_demo.batch_engines import BatchEngines
from kimi_demo.batches.engines import PlainRows, RowEngine
from kimi_demo.batches.indices import Indices
from kimi_demo.batches.journal import Journal
from kimi_demo.batches.manifest import Manifest, sha256_of
from kimi_demo.batches.reading import Source
from kimi_demo.batches.results import read_results
from kimi_demo.batches.running import BatchRun
from kimi_demo.batches.shelf import EngineName, Entry, Shelf, State, options_dict
from kimi_demo.batches.survey import survey
from kimi_demo.batches.versions import Which, manifest_of, select
from kimi_demo.dialect.failure import Failure
from kimi_demo.dialect.sampling import Sampling
from kimi_demo.limits.gate import Gate
from kimi_demo.limits.rules import Wanted
from kimi_demo.model_name import shown_name
from kimi_demo.owners import is_viewer
from kimi_demo.runs.conversations import shortened
from kimi_demo.runs.rows import whole

log = logging.getLogger(__name__)

MOST_IN_LINE = 50


@dataclass(frozen=True)
class Asked:
    """How a batch is to run. skip: rows that cannot run are left out; takeover: the other engine may be stopped for it."""

    preset: str
    sampling: Sampling
    thinking: bool
    engine: EngineName
    skip: bool = False
    takeover: bool = False


class Batches(BatchBooks):
    """Belongs to the event loop's thread."""

    def __init__(self, shelf: Shelf, drafts: Drafts, engines: BatchEngines, gate: Gate | None = None) -> None:
        """gate: what the batches of viewers of a public page pass."""
        super().__init__(shelf)
        self._gate = gate
        self.drafts = drafts
        self.engines = engines
        self._workers: dict[str, asyncio.Task[None]] = {}
        self._closing = False

    # Starting.

    async def start(self, owner: str, draft: Draft, asked: Asked) -> Entry:
        """A new batch out of a draft, which stays the caller's.

        Raises Failure: the `batches.` family, batch.vllm_missing, batch.too_many_rows, batch_page.queue_full, and
        batch_page.rows_cannot_run (count, line) where there are such rows and nobody said to skip them.
        """
        self._require_room(owner)
        self.engines.require(asked.engine)
        checked = await self.drafts.check(draft, draft.options, engine=asked.engine, thinking=asked.thinking)
        limit = self.drafts.most_rows
        if checked.found.rows > limit:
            raise Failure("batch.too_many_rows", rows=checked.found.rows, limit=limit)
        if checked.cannot_run and not asked.skip:
            first = min((*checked.found.bad, *checked.long), key=lambda bad: bad.line)
            raise Failure("batch_page.rows_cannot_run", count=checked.cannot_run, line=first.line)
        wanted = checked.wanted
        rows = checked.found.rows if wanted is None else len(wanted)
        if not rows:
            raise Failure("batches.no_rows", path=draft.name or "–", bad=checked.cannot_run, blank=checked.found.blank)
        # As it was found: to look again for the encoding would take reading all of it.
        options = replace(checked.source.options, encoding=checked.source.encoding, format=checked.source.format)
        entry = Entry(
            owner=owner,
            title=draft.name or shortened(checked.found.first[0].prompt, 80),
            input=draft.path.name,
            options=options_dict(options),
            engine=asked.engine,
            preset=asked.preset,
            sampling=asked.sampling,
            thinking=asked.thinking,
            rows=rows,
            bad_rows=checked.cannot_run,
        )
        entry = entry.changed(root=entry.id)
        async with self._admitted(entry):
            await asyncio.to_thread(self.shelf.add, entry, draft.path, wanted)
        return await self._added(entry, asked.takeover)

    async def again(self, owner: str, batch: str, which: Which, asked: Asked) -> Entry:
        """A further version of a batch that is not going. Raises Failure: batch_page.unknown, batch_page.going, batches.nothing_again,
        batch.vllm_missing, batch_page.queue_full."""
        self._require_room(owner)
        self.engines.require(asked.engine)
        before = await self.get(owner, batch)
        if before.going:
            raise Failure("batch_page.going")
        results = self.shelf.results(before)
        if which == "all":
            wanted = await asyncio.to_thread(self.shelf.wanted, before)
            rows = before.rows
        else:
            wanted = await asyncio.to_thread(lambda: select(read_results(results), which) if results.exists() else Indices())
            rows = len(wanted)
        if not rows:
            raise Failure("batches.nothing_again")
        earlier = await self.versions(before)
        entry = Entry(
            owner=owner,
            title=before.title,
            input=before.input,
            options=before.options,
            engine=asked.engine,
            preset=asked.preset,
            sampling=asked.sampling,
            thinking=asked.thinking,
            rows=rows,
            root=before.root or before.id,
            version=max(one.version for one in earlier) + 1,
            parent=before.id,
            which=which,
        )
        async with self._admitted(entry):
            await asyncio.to_thread(self.shelf.add, entry, self.shelf.place(owner, before.id) / before.input, wanted)
        return await self._added(entry, asked.takeover)

    async def go_on(self, owner: str, batch: str, *, takeover: bool = False) -> None:
        """With the rows that it lacks, under the same parameters.

        Raises Failure: batch_page.unknown, batch.vllm_missing, batch_page.queue_full.
        """
        entry = await self.get(owner, batch)
        if entry.going or entry.state == "done":
            return
        self._require_room(owner)
        self.engines.require(entry.engine)
        async with self._admitted(entry):
            pass
        await self._added(entry.changed(state="queued", failure=None, failure_params={}), takeover)

    @asynccontextmanager
    async def _admitted(self, entry: Entry) -> AsyncIterator[None]:
        """Around what makes it one of a viewer's batches: within the limits, and in the line from now on. Raises Failure: `limits.`."""
        gate = self._gate if is_viewer(entry.owner) else None
        if gate is None:
            yield
            return
        if entry.rows > gate.rules.rows:
            raise Failure("limits.rows", rows=entry.rows, limit=gate.rules.rows)
        gate.admit(entry.id, entry.owner, Wanted("", entry.sampling.max_tokens, max(1, entry.rows - entry.done)))
        try:
            yield
        except BaseException:
            gate.give_up(entry.id)
            raise

    def going(self) -> list[Entry]:
        """Everybody's batches that run or wait."""
        return [job.entry for job in self._jobs.values()]

    def _require_room(self, owner: str) -> None:
        if self._closing:
            raise Failure("runs.closing")
        if len(self._lines.get(owner, ())) >= MOST_IN_LINE:
            raise Failure("batch_page.queue_full", limit=MOST_IN_LINE)

    async def _added(self, entry: Entry, takeover: bool) -> Entry:
        await self.all_of(entry.owner)
        job = Job(entry, takeover)
        self._jobs[entry.id] = job
        self._set(job, entry.changed(state="queued"))
        self._lines.setdefault(entry.owner, deque()).append(job)
        worker = self._workers.get(entry.owner)
        if worker is None or worker.done():
            self._workers[entry.owner] = asyncio.create_task(self._work(entry.owner), name="batch-line")
        return job.entry

    # What people do with one that goes.

    async def stop(self, owner: str, batch: str) -> None:
        """Keeps what is finished; the rest leaves the engine at once. Once more, or of one that is over: nothing."""
        job = self._jobs.get((await self.get(owner, batch)).id)
        if job is None:
            return
        job.stopping = True
        line = self._lines.get(owner, deque())
        if job in line:
            line.remove(job)
            self._over(job, "stopped")
        elif job.run is not None and job.run.state in ("running", "paused"):
            job.run.stop()
        elif job.run is None and job.task is not None:
            job.task.cancel()

    async def pause(self, owner: str, batch: str) -> None:
        job = self._jobs.get((await self.get(owner, batch)).id)
        if job is not None and job.run is not None:
            job.run.pause()

    async def resume(self, owner: str, batch: str) -> None:
        job = self._jobs.get((await self.get(owner, batch)).id)
        if job is not None and job.run is not None:
            job.run.resume()

    async def rename(self, owner: str, batch: str, title: str) -> None:
        """An empty name changes nothing."""
        entry = await self.get(owner, batch)
        name = shortened(whole(title), 120)
        if name:
            self._keep(entry.changed(title=name))

    async def delete(self, owner: str, batch: str) -> None:
        """With its results; one that is going is stopped first."""
        entry = await self.get(owner, batch)
        await self.stop(owner, batch)
        job = self._jobs.get(entry.id)
        if job is not None and job.task is not None:
            await asyncio.wait([job.task])
        self._known[owner].pop(entry.id, None)
        self._tables.pop(entry.id, None)
        await asyncio.to_thread(self.shelf.remove, entry)

    async def aclose(self) -> None:
        """Stops what runs; all of it can go on at the next start."""
        self._closing = True
        for worker in self._workers.values():
            worker.cancel()
        tasks = [job.task for job in self._jobs.values() if job.task is not None]
        for task in tasks:
            task.cancel()
        waited = [*tasks, *self._workers.values()]
        if waited:
            await asyncio.wait(waited)
        for job in list(self._jobs.values()):
            self._over(job, "interrupted")

    # Running.

    async def _work(self, owner: str) -> None:
        """One batch of the owner's after the other."""
        line = self._lines[owner]
        while line and not self._closing:
            job = line.popleft()
            job.task = asyncio.create_task(self._run(job), name=f"batch {job.entry.id}")
            await asyncio.wait([job.task])

    async def _run(self, job: Job) -> None:
        try:
            state, failure = await self._through(job)
        except asyncio.CancelledError:
            state, failure = ("interrupted" if self._closing else "stopped"), None
        except Failure as error:
            state, failure = "failed", renamed(error, job.entry.title)
        except Exception as error:
            log.exception("A batch could not be run")
            state, failure = "failed", Failure("unexpected", error=f"{type(error).__name__}: {error}")
        self._over(job, state, failure)

    async def _through(self, job: Job) -> tuple[State, Failure | None]:
        """Through the engine, a viewer's when it is its turn."""
        if self._gate is None or not is_viewer(job.entry.owner):
            return await self._by_engine(job)
        async with self._gate.turn(job.entry.id, job.tell, lambda: _tokens(job)):
            return await self._by_engine(job)

    async def _by_engine(self, job: Job) -> tuple[State, Failure | None]:
        entry = job.entry
        job.since = time.monotonic()
        self._set(job, entry.changed(state="running"))
        source = await asyncio.to_thread(self.shelf.source, entry)
        wanted = await asyncio.to_thread(self.shelf.wanted, entry)
        async with self.engines.open(entry.engine, job.tell, takeover=job.takeover) as opened:
            engine: RowEngine = opened
            if is_viewer(entry.owner):
                engine = PlainRows(engine)
                # It is written into each row, and may be a folder of this machine.
                engine.model = shown_name(engine.model, self.engines.settings.model_title)
            journal = await _opened(asyncio.create_task(asyncio.to_thread(self._journal, entry, source, engine.model)))
            with journal:
                job.run = run = BatchRun(
                    source.rows,
                    journal,
                    engine,
                    entry.sampling,
                    thinking=entry.thinking,
                    wanted=wanted,
                    on_state=lambda: self._told(job),
                )
                job.phase = None
                state = await run.run()
        if state == "failed":
            return "failed", run.failure
        return ("stopped" if state == "stopped" else "done"), None

    def _journal(self, entry: Entry, source: Source, model: str) -> Journal:
        """Raises Failure of the `batches.` family, among them batches.other_run where the model is another by now."""
        made = self._manifest(entry, source, model)
        return Journal.resume(self.shelf.results(entry), made)

    def _manifest(self, entry: Entry, source: Source, model: str) -> Manifest:
        now = datetime.now(UTC).isoformat(timespec="seconds")
        found = survey(source, preview=0)
        first = manifest_of(
            source, found, sha256_of(source.path), entry.sampling, thinking=entry.thinking, model=model, engine=entry.engine, created_at=now
        )
        selection: dict[str, str] = {}
        if entry.parent is not None and entry.which is not None:
            selection = {"again": entry.parent, "which": entry.which}
        elif entry.rows != found.rows:
            selection = {"left_out": str(found.rows - entry.rows)}
        return replace(first, input=entry.title, rows=entry.rows, selection=selection)

    def _told(self, job: Job) -> None:
        """The run's state has changed."""
        run = job.run
        if run is None or run.state not in ("running", "paused"):
            return
        failure = run.failure if run.state == "paused" else None
        code, params = (None, {}) if failure is None else (failure.code, renamed(failure, job.entry.title).params)
        if (run.state, code) != (job.entry.state, job.entry.failure):
            self._set(job, job.entry.changed(state=run.state, failure=code, failure_params=params))

    def _over(self, job: Job, state: State, failure: Failure | None = None) -> None:
        if self._jobs.pop(job.entry.id, None) is None:
            return
        if self._gate is not None:
            self._gate.give_up(job.entry.id)  # one that never came to its turn
        entry = job.entry.changed(state=state)
        if failure is not None:
            entry = entry.changed(failure=failure.code, failure_params=failure.params)
        elif state != "failed":
            entry = entry.changed(failure=None, failure_params={})
        if job.run is not None:
            journal = job.run.journal
            entry = entry.changed(done=len(journal.done), failed=journal.failed, cut_off=journal.cut_off)
        self._keep(entry)

    def _set(self, job: Job, entry: Entry) -> None:
        job.entry = entry
        self._keep(entry)


def _tokens(job: Job) -> int:
    """What the batch has cost so far."""
    if job.run is None:
        return 0
    progress = job.run.progress()
    return progress.prompt_tokens + progress.generated_tokens


async def _opened(opening: "asyncio.Task[Journal]") -> Journal:
    """The journal; one that opens while this is cancelled is closed again, or nobody could open it any more."""
    try:
        return await asyncio.shield(opening)
    except asyncio.CancelledError:
        if not opening.cancelled():
            await asyncio.wait([opening])
            if opening.exception() is None:
                opening.result().close()
        raise
