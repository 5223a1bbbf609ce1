"""The in-process batch engine: a `vllm.LLM` on a thread of its own, seen from the event loop."""

import asyncio
import atexit
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from concurrent.futures import Future
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Literal, TypeVar

from kimi_demo.dialect.events import Event, Phase
from kimi_demo.dialect.failure import Failure
from kimi_demo.dialect.sampling import Sampling
from kimi_demo.engines.offline_launch import OfflineLaunch
from kimi_demo.engines.offline_loading import Watcher
from kimi_demo.engines.offline_rows import Batch, BatchRow
from kimi_demo.engines.offline_stream import OfflineFeed
from kimi_demo.engines.offline_thread import EngineThread

T = TypeVar("T")
Emit = Callable[[Event], None]
State = Literal["unloaded", "loading", "ready", "failed"]

_ABORT_S = 5.0
"""What a cancelled `generate` waits for the engine's thread; that needs milliseconds, unless it is just reading a very long prompt."""

_EXIT_S = 15.0
"""What the interpreter waits at its end for the engine to go."""


class OfflineEngine:
    """Loads a model, generates for batches of prompts, frees the memory again. Nothing of vllm is imported before `load`.

    launch: what to load, or a function that finds out (it may take a while: the stand-in is built when it is first needed).
    guardian: is told of vLLM's processes, so that they end with the application even when that is killed.
    """

    def __init__(self, launch: OfflineLaunch | Callable[[Emit], Awaitable[OfflineLaunch]], guardian: Watcher | None = None) -> None:
        self._launch = launch
        self._thread = EngineThread(guardian)
        self._loading: asyncio.Task[None] | None = None
        self._phase: Phase | None = None
        self._listeners: list[Emit] = []
        self._failure: Failure | None = None
        self._unloading = False
        self._at_exit = partial(_close, weakref.ref(self._thread))
        atexit.register(self._at_exit)

    @property
    def state(self) -> State:
        if self._is_loading:
            return "loading"
        if self._thread.loaded:
            return "ready"
        return "failed" if self.failure is not None else "unloaded"

    @property
    def failure(self) -> Failure | None:
        """Why the state is "failed"."""
        return self._failure or self._thread.failure

    @property
    def phase(self) -> Phase | None:
        """What the load is doing."""
        return self._phase if self._is_loading else None

    @property
    def _is_loading(self) -> bool:
        return self._loading is not None and not self._loading.done()

    async def load(self, on_event: Emit) -> None:
        """Returns when the model is loaded. Phases go to on_event, on the event loop; everyone who waits shares one load.

        Cancelling the caller leaves the load going. Raises Failure: batch.vllm_missing, model.path_missing, batch.no_model,
        batch.too_little_memory, batch.out_of_memory, batch.context_too_long, batch.bad_vllm_args, batch.load_failed,
        batch.load_stopped, accelerators.too_few, accelerators.too_small; a later call tries again.
        """
        if self.state == "ready":
            return
        if not self._is_loading:
            self._phase = None
            self._loading = asyncio.create_task(self._load(), name="batch-engine-load")
        elif self._phase is not None:
            on_event(self._phase)
        assert self._loading is not None
        self._listeners.append(on_event)
        try:
            await asyncio.shield(self._loading)
        finally:
            self._listeners.remove(on_event)

    async def _load(self) -> None:
        loop = asyncio.get_running_loop()
        self._failure = None
        try:
            launch = self._launch if isinstance(self._launch, OfflineLaunch) else await self._launch(self._tell)
            if self._unloading:
                raise Failure("batch.load_stopped")
            await _outcome(self._thread.load(launch, lambda phase: _post(loop, self._tell, phase)))
        except Failure as failure:
            self._failure = failure
            raise
        self._tell(Phase("batch.ready"))

    def _tell(self, event: Event) -> None:
        if isinstance(event, Phase):
            self._phase = event
        for listener in list(self._listeners):
            listener(event)

    async def generate(self, rows: Sequence[BatchRow], sampling: Sampling, thinking: bool, emit: Emit) -> None:
        """Answers every row and returns when the last is done.

        emit is called on the event loop: BatchStarted, RowFinished for each row as soon as it is done (one that cannot run has
        `error` set and stops no other), BatchProgress in between and at the end. Several calls share the engine, a row of each in turn.
        Cancelling takes the rows out of the engine, at once; nothing is emitted after that.
        Raises Failure: batch.not_loaded, batch.engine_died, batch.unloaded (rows that were not done are then not emitted).
        """
        if self.state != "ready":
            raise self.failure or Failure("batch.not_loaded")
        loop = asyncio.get_running_loop()
        broken: list[Exception] = []

        def deliver(events: list[Event]) -> None:
            if closed or broken:
                return
            try:
                for event in events:
                    emit(event)
            except Exception as error:
                broken.append(error)
                self._thread.abort(batch)

        closed = False
        batch = Batch(rows, sampling, thinking, send=lambda events: _post(loop, deliver, events))
        done = asyncio.wrap_future(batch.done)
        self._thread.start(batch)
        try:
            await asyncio.wait([done])  # unlike `await done`, cancelling this leaves the future alone
        except asyncio.CancelledError:
            self._thread.abort(batch)
            await asyncio.wait([done], timeout=_ABORT_S)
            raise
        finally:
            closed = True
            if done.done() and not done.cancelled():
                done.exception()  # looked at, also when the caller has been cancelled
        if broken:
            raise broken[0]
        done.result()

    @asynccontextmanager
    async def feed(self) -> AsyncIterator[OfflineFeed]:
        """For rows that come one by one (`OfflineFeed.answer`), beside batches; leaving it takes the rest of them out of the engine.

        Raises Failure("batch.not_loaded"), or why there is no engine any more.
        """
        if self.state != "ready":
            raise self.failure or Failure("batch.not_loaded")
        feed = OfflineFeed(self._thread)
        try:
            yield feed
        finally:
            await feed.close(_ABORT_S)

    async def unload(self) -> None:
        """Frees the memory: returns when vLLM's processes are gone. A load that is going on is stopped, batches end with a Failure."""
        loading = self._loading
        if loading is not None and not loading.done():
            self._unloading = True
            self._thread.abandon_load()
            try:
                await asyncio.wait([loading])
            finally:
                self._unloading = False
        await _outcome(self._thread.unload())
        self._failure = None
        self._thread.failure = None

    async def close(self) -> None:
        """`unload`, for good: the engine's thread ends too."""
        await self.unload()
        await asyncio.to_thread(self._thread.close, _EXIT_S)
        atexit.unregister(self._at_exit)

    async def with_llm(self, work: Callable[[Any], T]) -> T:
        """work(llm) on the engine's thread, with the `vllm.LLM` itself; batches wait meanwhile. Raises Failure("batch.not_loaded")."""
        result: T = await _outcome(self._thread.call(work))
        return result


async def _outcome(future: "Future[T]") -> T:
    """What the engine's thread makes of `future`; cancelling the one who waits does not touch it."""
    return await asyncio.shield(asyncio.wrap_future(future))


def _post(loop: asyncio.AbstractEventLoop, function: Callable[[Any], None], argument: object) -> None:
    """From another thread onto the loop; nothing happens when the loop is closed (its application is ending)."""
    try:
        loop.call_soon_threadsafe(function, argument)
    except RuntimeError:
        pass


def _close(thread: "weakref.ref[EngineThread]") -> None:
    alive = thread()
    if alive is not None:
        alive.close(_EXIT_S)
