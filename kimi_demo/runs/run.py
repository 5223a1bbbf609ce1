"""`Run`: a task that the application owns, and the list of events that it appends to. Whoever shows it only follows."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import suppress
from datetime import UTC, datetime
from typing import Literal
from uuid import uuid4

from kimi_demo.dialect.events import Asked, Ended, Event, Failed, Timed
from kimi_demo.dialect.failure import Failure

log = logging.getLogger(__name__)

State = Literal["running", "done", "stopped", "failed", "interrupted"]


class Run:
    """One chat reply, tool question, batch, … from its question (`Asked`, first) to its end (`Ended`, last).

    id: 32 hex digits; owner: who may see it; kind: "chat", "tools", "batch", …; group: what it belongs to (a conversation's id);
    parent: the id of the run that it follows there, None for a first one; created_at: UTC. `entries` only ever grows, so a
    position in it is a cursor for as long as this object lives (not across a restart: the store joins fragments, see merge.py).
    veil: what becomes of an event before anybody sees it or it is kept.

    All methods belong to the event loop's thread, save `append_threadsafe`.
    """

    def __init__(
        self,
        *,
        owner: str,
        kind: str,
        title: str,
        group: str | None = None,
        parent: str | None = None,
        id: str | None = None,
        created_at: datetime | None = None,
        entries: Iterable[Timed] = (),
        on_append: Callable[["Run", Timed], None] | None = None,
        veil: Callable[[Event], Event] | None = None,
    ) -> None:
        self.id = id or uuid4().hex
        self.owner = owner
        self.kind = kind
        self.group = group
        self.parent = parent
        self.title = title
        self.created_at = created_at or datetime.now(UTC)
        self.entries: list[Timed] = list(entries)
        self._on_append = on_append
        self._veil = veil
        self._began = time.monotonic()
        self._news: asyncio.Future[None] | None = None
        self._over = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping = False
        if self.ended:
            self._over.set()

    @property
    def state(self) -> State:
        last = self.entries[-1].event if self.entries else None
        return last.state if isinstance(last, Ended) else "running"

    @property
    def ended(self) -> bool:
        return self.state != "running"

    @property
    def asked(self) -> Asked | None:
        """The run's question and parameters."""
        first = self.entries[0].event if self.entries else None
        return first if isinstance(first, Asked) else None

    def start(self, work: Callable[["Run"], Awaitable[None]]) -> None:
        """Runs `work` as a task; whatever becomes of it, the run gets its `Ended`."""
        self._loop = asyncio.get_running_loop()

        async def drive() -> None:
            await work(self)

        self._task = self._loop.create_task(drive(), name=f"{self.kind} run {self.id}")
        # A callback, not try/finally in `drive`: a task that is cancelled before its first step runs none of its body.
        self._task.add_done_callback(self._finish)

    def when_over(self, do: Callable[[], None]) -> None:
        """Calls `do` when the work has ended, however that came. The run must be started."""
        assert self._task is not None, "when_over before start"
        self._task.add_done_callback(lambda _: do())

    def carry(self, entries: Iterable[Timed]) -> None:
        """Takes over what happened in an earlier run, with its times; this run's own clock goes on from the last of them."""
        last = 0.0
        for item in entries:
            self._append(item.event, item.at)
            last = max(last, item.at)
        self._began = min(self._began, time.monotonic() - last)

    def append(self, event: Event) -> None:
        """Takes the next event. After `Ended` nothing more is taken: a late engine thread has nobody to tell."""
        self._append(event, time.monotonic() - self._began)

    def append_threadsafe(self, event: Event) -> None:
        """`append` from any other thread, stamped with the time of this call; in the order of the calls. The run must be started."""
        assert self._loop is not None, "append_threadsafe before start"
        with suppress(RuntimeError):  # the loop is closed: the application is going down
            self._loop.call_soon_threadsafe(self._append, event, time.monotonic() - self._began)

    def _append(self, event: Event, at: float) -> None:
        if self.ended:
            return
        if self.entries:
            at = max(at, self.entries[-1].at)  # an event from another thread arrives a little after its stamp
        timed = Timed(at, event if self._veil is None else self._veil(event))
        self.entries.append(timed)
        if self._on_append is not None:
            self._on_append(self, timed)
        if isinstance(event, Ended):
            self._over.set()
        # One future for all who wait, made by the first of them: an event that nobody waits for costs nothing here.
        if self._news is not None:
            self._news.set_result(None)
            self._news = None

    async def follow(
        self, cursor: int = 0, interval: float = 0.05, heartbeat: float = 0.5, opening: tuple[type[Event], ...] = ()
    ) -> AsyncIterator[list[Timed]]:
        """The run's entries from number `cursor` on, in batches; ends after `Ended`.

        What is there comes at once, what follows at most once per `interval` seconds, and `[]` when `heartbeat` seconds
        passed without any: a server that only ever sends on news would not notice that a browser has gone. As long as only events
        of the types `opening` have come, the interval is not kept: whoever waits for the first word gets it when it is there.
        """
        loop = asyncio.get_running_loop()
        cursor = min(max(cursor, 0), len(self.entries))
        told_at = loop.time()
        opened = False
        while True:
            if cursor < len(self.entries):
                batch = self.entries[cursor:]
                cursor += len(batch)
                told_at = loop.time()
                yield batch
                if isinstance(batch[-1].event, Ended):
                    return
                opened = opened or not all(isinstance(item.event, opening) for item in batch)
                if opened:
                    await asyncio.sleep(max(0.0, told_at + interval - loop.time()))
            elif self.ended:
                return
            elif not await self._wait_for_news(told_at + heartbeat - loop.time()):
                told_at = loop.time()
                yield []

    async def _wait_for_news(self, seconds: float) -> bool:
        """Whether an event came within `seconds`."""
        if self._news is None:
            self._news = asyncio.get_running_loop().create_future()
        done, _ = await asyncio.wait({self._news}, timeout=max(0.0, seconds))
        return bool(done)

    async def wait(self) -> State:
        """Returns the run's last state once its work has ended, its clean-up included."""
        await self._over.wait()
        return self.state

    def cancel(self) -> None:
        """Stops the work; `Ended("stopped")` follows when it has let go of what it held. Again, or after the end: nothing."""
        if self._task is None or self._stopping or self._task.done():
            return  # a second cancellation would break into the clean-up of the first
        self._stopping = True
        self._task.cancel()

    def _finish(self, task: asyncio.Task[None]) -> None:
        error = None if task.cancelled() else task.exception()
        if error is not None and not isinstance(error, Failure):
            log.error("%s run %s failed", self.kind, self.id, exc_info=error)
        if task.cancelled() or self._stopping:
            self.append(Ended("stopped"))
        elif error is None:
            self.append(Ended("done"))
        else:
            self.append(Failed(error.code, error.params) if isinstance(error, Failure) else Failed("unexpected", {"error": _short(error)}))
            self.append(Ended("failed"))


def _short(error: BaseException) -> str:
    """The error on one line of at most 200 characters."""
    line = " ".join(f"{type(error).__name__}: {error}".split())
    return line if len(line) <= 200 else line[:199] + "…"
