"""What is known of the visitors' batches: which there are, how they stand, their finished rows. Whoever shows them looks here."""

import asyncio
import logging
import time
from collections import OrderedDict, deque
from dataclasses import dataclass, field
from pathlib import Path

from kimi_demo.batches.finished import Finished
from kimi_demo.batches.progress import Progress
from kimi_demo.batches.running import BatchRun
from kimi_demo.batches.shelf import Entry, Shelf, lineage
from kimi_demo.dialect.events import Event, Phase
from kimi_demo.dialect.failure import Failure

log = logging.getLogger(__name__)

_OPEN_TABLES = 8


@dataclass(eq=False)
class Job:
    """A batch that waits in line or runs. phase: what its engine is doing before the first row; since: monotonic seconds of its begin."""

    entry: Entry
    takeover: bool = False
    phase: Phase | None = None
    since: float = field(default_factory=time.monotonic)
    run: BatchRun | None = None
    task: "asyncio.Task[None] | None" = None
    stopping: bool = False

    def tell(self, event: Event) -> None:
        if isinstance(event, Phase):
            self.phase = event


class BatchBooks:
    """Every look-up takes the owner; another's batch is as unknown as one that never was. Belongs to the event loop's thread."""

    def __init__(self, shelf: Shelf) -> None:
        self.shelf = shelf
        self._known: dict[str, dict[str, Entry]] = {}
        self._lines: dict[str, deque[Job]] = {}
        self._jobs: dict[str, Job] = {}
        self._tables: OrderedDict[str, Finished] = OrderedDict()

    async def all_of(self, owner: str) -> list[Entry]:
        """Newest first."""
        if owner not in self._known:
            found = await asyncio.to_thread(self.shelf.entries, owner)
            self._known.setdefault(owner, {entry.id: entry for entry in found})
        return sorted(self._known[owner].values(), key=lambda entry: entry.created_at, reverse=True)

    async def get(self, owner: str, batch: str) -> Entry:
        """Raises Failure("batch_page.unknown")."""
        await self.all_of(owner)
        entry = self._known[owner].get(batch)
        if entry is None:
            raise Failure("batch_page.unknown")
        return entry

    def job(self, entry: Entry) -> Job | None:
        """What goes on with it; None for a batch that neither runs nor waits."""
        return self._jobs.get(entry.id)

    def progress(self, entry: Entry) -> Progress:
        """As it stands now, or stood when it ended."""
        job = self._jobs.get(entry.id)
        if job is not None and job.run is not None:
            return job.run.progress()
        left = max(0, entry.rows - entry.done)
        return Progress(entry.rows, entry.done, failed=entry.failed, cut_off=entry.cut_off, waiting=left)

    def ahead(self, entry: Entry) -> int:
        """Batches that come before it in the line."""
        line = [job.entry.id for job in self._lines.get(entry.owner, ())]
        return line.index(entry.id) + 1 if entry.id in line else 0

    async def table(self, entry: Entry) -> Finished:
        """Its finished rows, as far as they are settled. Raises Failure("batches.unreadable")."""
        table = self._tables.pop(entry.id, None) or Finished(self.shelf.results(entry))
        self._tables[entry.id] = table
        while len(self._tables) > _OPEN_TABLES:
            self._tables.popitem(last=False)
        job = self._jobs.get(entry.id)
        # What is written from now on may be taken back by a full disk; what is there before a run begins may not.
        settled = job.run.journal.size if job is not None and job.run is not None else None
        await asyncio.to_thread(lambda: table.update(_size(table.path) if settled is None else settled))
        return table

    async def versions(self, entry: Entry) -> list[Entry]:
        return list(lineage(await self.all_of(entry.owner), entry))

    def _keep(self, entry: Entry) -> None:
        """On disk as well, unless that is full: then it is told by the next start, which finds the journal."""
        mine = self._known.setdefault(entry.owner, {})
        before = mine.get(entry.id)
        if before is not None and (job := self._jobs.get(entry.id)) is not None:
            job.entry = entry
        mine[entry.id] = entry
        try:
            self.shelf.save(entry)
        except OSError as error:
            log.warning("The card of a batch cannot be written: %s", error)


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0
