"""Looks at what answers the chat, again and again: whether it is well, how busy it is. One for the application, whoever watches."""

import asyncio
import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Literal

import psutil

from kimi_demo.dialect.failure import Failure
from kimi_demo.engines.chat_engine import ChatEngine
from kimi_demo.engines.endpoint import Endpoint
from kimi_demo.engines.gpu_use import GpuUse, gpu_use
from kimi_demo.engines.metrics.points import Points
from kimi_demo.engines.metrics.reading import Reading, read_metrics
from kimi_demo.engines.processes import Watch

log = logging.getLogger(__name__)

WATCHED_S, UNWATCHED_S = 2.0, 15.0
"""Between two looks: while somebody looks at the tab, and otherwise."""

ANSWER_S = 2.5
"""How long an answer may take. With the pause between two looks, a server that went silent is known for it within 5 s."""

STUCK_S = 30.0
"""Without a single token while requests run. A long prompt on a CPU may well take that long: it is said, not judged."""


Condition = Literal["off", "well", "silent", "sick", "stopped", "stuck"]


@dataclass(frozen=True)
class Health:
    """off: nothing to look at (none, starting, failed). silent: no answer since `since`. sick: it answers that it is not well (vLLM,
    between its engine's end and its own). stopped: processes of ours are halted (SIGSTOP).
    stuck: it answers, but no token has come for a while. since: time.monotonic() of the first such look.

    has_metrics: None until that is known.
    """

    name: Condition = "off"
    since: float = 0.0
    has_metrics: bool | None = None


class Monitor:
    """`run` is its task. history: of the server that answers now; the one before is forgotten when another takes its place."""

    def __init__(self, engine: ChatEngine) -> None:
        self._engine = engine
        self._watchers = 0
        self._woken = asyncio.Event()
        self._endpoint: Endpoint | None = None
        self._progress = 0.0
        self._progress_at = 0.0
        self.history = Points()
        self.health = Health()
        self.gpus: list[GpuUse] = []

    @contextmanager
    def watching(self) -> Iterator[None]:
        """While somebody looks, it looks often."""
        self._watchers += 1
        self._woken.set()
        try:
            yield
        finally:
            self._watchers -= 1

    async def run(self) -> None:
        """Until it is cancelled. A look that goes wrong is logged and does not end it."""
        while True:
            self._woken.clear()
            try:
                await self._look()
            except Exception:
                log.exception("while looking at the server")
            with suppress(TimeoutError):
                async with asyncio.timeout(WATCHED_S if self._watchers else UNWATCHED_S):
                    await self._next()

    async def _next(self) -> None:
        """A new watcher, or a change of the engine."""
        waits = [asyncio.ensure_future(self._woken.wait()), asyncio.ensure_future(self._engine.changed())]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()

    async def _look(self) -> None:
        endpoint = self._engine.endpoint
        if endpoint is not self._endpoint and endpoint is not None:
            self.history.forget()
            self.health = Health()
            self._progress_at = 0.0
        if self._watchers:
            self.gpus = await asyncio.to_thread(gpu_use)
        if endpoint is None:
            self.health = Health()
            return
        self._endpoint = endpoint
        known = self.health.has_metrics
        halted, healthy = await asyncio.gather(asyncio.to_thread(self._halted), endpoint.look("/health", ANSWER_S))
        reading = await self._metrics(endpoint) if healthy is not None and known is not False else None
        if endpoint is not self._engine.endpoint:
            return  # it ended meanwhile: what was seen of it says nothing of the next
        if reading is not None:
            self.history.add(time.time(), reading)
            known = True
        now: Condition = "well"
        if halted:
            now = "stopped"
        elif healthy is None:
            now = "silent"
        elif healthy[0] >= 500:
            now = "sick"
        elif self._is_stuck(reading):
            now = "stuck"
        self._set(now, known)

    async def _metrics(self, endpoint: Endpoint) -> Reading | None:
        answer = await endpoint.look("/metrics", ANSWER_S)
        if answer is None:
            return None
        status, text = answer
        try:
            if status != 200:
                raise Failure("metrics.unreadable", problem=status)
            return await asyncio.to_thread(read_metrics, text)
        except Failure:
            if self.health.has_metrics is None:
                self.health = Health(self.health.name, self.health.since, has_metrics=False)
            return None

    def _set(self, name: Condition, has_metrics: bool | None) -> None:
        known = has_metrics if has_metrics is not None else self.health.has_metrics
        since = self.health.since if self.health.name == name else time.monotonic()
        self.health = Health(name, since, known)

    def _is_stuck(self, reading: Reading | None) -> bool:
        now = time.monotonic()
        if reading is None:
            return False
        done = (reading.generation_tokens or 0.0) + (reading.prompt_tokens or 0.0)
        if not reading.running or done != self._progress or not self._progress_at:
            self._progress, self._progress_at = done, now
        return now - self._progress_at > STUCK_S

    def _halted(self) -> bool:
        """Whether one of our server's processes is stopped: it will answer nothing until it is continued."""
        server = self._engine.server
        if server is None or server.exited:
            return False
        for process in Watch("session", server.pid).look():
            with suppress(psutil.Error):
                if psutil.Process(process.pid).status() == psutil.STATUS_STOPPED:
                    return True
        return False
