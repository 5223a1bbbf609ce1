"""What answers chat requests: somebody's server at a base URL, or a vLLM server of our own. Started once, watched, restartable."""

import asyncio
import logging
import os
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Literal

from kimi_demo.dialect.events import Event, Phase
from kimi_demo.dialect.failure import Failure
from kimi_demo.engines.accelerators import Lease
from kimi_demo.engines.endpoint import Endpoint
from kimi_demo.engines.guardian import Guardian
from kimi_demo.engines.launch import Launch
from kimi_demo.engines.model_folder import ModelFolder
from kimi_demo.engines.server import Server
from kimi_demo.engines.server_note import NotedServer, ServerNote
from kimi_demo.settings import Settings

log = logging.getLogger(__name__)

_LAST_BREATH_S = 10.0
"""How long a server may take to end after it has failed a request because its engine was gone; it took 0.3 to 2.3 s."""

_SERVERS_FAULT = frozenset(f"endpoint.{name}" for name in ("server_error", "error_event", "broke_off", "refused", "unreachable", "closed"))
"""Failures of a request whose cause may be the end of the whole server."""


@dataclass(frozen=True)
class EngineState:
    """starting: `phase` says what it is doing; failed: `failure` says why. `since`: time.monotonic() of the change of name."""

    name: Literal["off", "starting", "ready", "failed"]
    since: float
    phase: Phase | None = None
    failure: Failure | None = None


class ChatEngine:
    """Holds the connection that chat and function calling use.

    Everything runs on the event loop that called `start`. A remote server that could not be reached is tried again whenever
    somebody asks; a server of our own that failed stays failed until `restart`, since a new start costs minutes.

    note: where it is noted how our own server is reached, for commands beside the page; None: nowhere.
    """

    def __init__(self, settings: Settings, folder: ModelFolder, lease: Lease, guardian: Guardian, note: ServerNote | None = None) -> None:
        self.settings = settings
        self._folder = folder
        self._lease = lease
        self._guardian = guardian
        self._note = note
        self._server: Server | None = None
        self._last: Server | None = None
        self._endpoint: Endpoint | None = None
        self._starting: asyncio.Task[None] | None = None
        self._watching: asyncio.Task[None] | None = None
        self._changed = asyncio.Event()
        self._stopping = asyncio.Lock()
        self._switching = asyncio.Lock()
        self._takeover = False
        self.timeline: list[tuple[Phase, float]] = []
        """The phases of the start that goes on or was the last one, with time.monotonic() of their beginning."""
        self.state = EngineState("off", time.monotonic())

    @property
    def remote(self) -> bool:
        return self.settings.base_url is not None

    @property
    def server(self) -> Server | None:
        """Our own server, from the moment that it is a process; also one that has ended, whose log still tells why. None for
        somebody else's and before the first start."""
        return None if self.remote else self._last

    @property
    def endpoint(self) -> Endpoint | None:
        """The connection while there is one."""
        return self._endpoint if self.state.name == "ready" else None

    @property
    def command(self) -> tuple[str, ...]:
        """The command line of our own server, which never holds its key; () for somebody else's."""
        return tuple(self._server.launch.command()) if self._server is not None else ()

    def log_tail(self, lines: int) -> list[str]:
        """The last lines of our own server's log; [] for somebody else's."""
        return self.server.log_tail(lines) if self.server is not None else []

    async def changed(self) -> None:
        """Returns at the next change of `state`."""
        await self._changed.wait()

    def start(self, *, takeover: bool = False) -> None:
        """Begins to connect or to start the server; returns at once. Nothing happens when that is going on or done.

        takeover: whether the batch engine may be stopped for it where both want the same GPUs.
        """
        if self.state.name in ("off", "failed") and (self._starting is None or self._starting.done()):
            self._takeover, self.timeline = takeover, []
            self._set(EngineState("starting", time.monotonic(), Phase("connecting" if self.remote else "starting")))
            self._starting = asyncio.create_task(self._start(), name="chat-engine-start")

    async def ready(self, on_event: Callable[[Event], None]) -> Endpoint:
        """The connection, once there is one; its phases meanwhile go to `on_event`. Raises the Failure of a failed start."""
        if self.state.name == "off" or (self.state.name == "failed" and self._may_heal()):
            self.start()
        told: Phase | None = None
        while True:
            state, changed = self.state, self._changed
            if state.name == "ready" and self._endpoint is not None:
                return self._endpoint
            if state.failure is not None:
                raise state.failure
            if state.name == "off":
                raise Failure("server.off")
            if state.phase is not None and state.phase != told:
                told = state.phase
                on_event(told)
            await changed.wait()

    def _may_heal(self) -> bool:
        """Whether asking again costs little and may well succeed: a remote server, or GPUs that the batch engine held."""
        failure = self.state.failure
        return self.remote or (failure is not None and failure.code == "accelerators.held")

    async def restart(self, *, takeover: bool = False) -> None:
        await self.stop()
        self.start(takeover=takeover)

    async def switch(self, settings: Settings, folder: ModelFolder, *, takeover: bool = False) -> None:
        """Ends what answers now and starts what `settings` says instead: another base URL, or our own server with other options."""
        async with self._switching:
            await self.stop()
            self.settings, self._folder = settings, folder
            self.start(takeover=takeover)

    @asynccontextmanager
    async def explaining(self) -> AsyncIterator[None]:
        """Around a request: where it failed because our own server has ended, raises the server's Failure, which says what helps."""
        try:
            yield
        except Failure as failure:
            server = self._server
            if server is not None and failure.code in _SERVERS_FAULT:
                with suppress(TimeoutError):
                    async with asyncio.timeout(_LAST_BREATH_S if await self._is_ending(server) else 0):
                        while self.state.name == "ready" and self._server is server:
                            await self.changed()
                if self._server is server and self.state.name == "failed" and self.state.failure is not None:
                    raise self.state.failure from None
            raise

    async def _is_ending(self, server: Server) -> bool:
        """Whether a server that failed a request is no longer well; one that is goes on with others."""
        endpoint = self._endpoint
        return server.exited or endpoint is None or not await endpoint.healthy()

    async def stop(self) -> None:
        """Ends the start that is going on, the connection and our own server. One after the other, when several ask at once: the
        second would otherwise forget a server that was started after the first."""
        async with self._stopping:
            await self._stop()

    async def _stop(self) -> None:
        for task in (self._starting, self._watching):
            if task is not None and not task.done():
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
        if self._endpoint is not None:
            await self._endpoint.aclose()
            self._endpoint = None
        self._unnoted()
        if self._server is not None:
            await self._server.stop()
            self._server = None
        self._lease.release("chat")
        self._set(EngineState("off", time.monotonic()))

    async def _start(self) -> None:
        try:
            self._endpoint = await (self._connect() if self.remote else self._launch())
        except Failure as failure:
            self._fail(failure)
        except Exception as error:  # a folder that cannot be written, above all; without this, everyone would wait for ever
            log.exception("What answers the chat could not be started")
            self._fail(Failure("unexpected", error=f"{type(error).__name__}: {error}"))
        else:
            if self.state.name == "starting":  # or else the server has ended meanwhile
                self._set(EngineState("ready", time.monotonic()))
            return
        await self._let_go()

    def _fail(self, failure: Failure) -> None:
        """The first failure is the cause, a later one its consequence."""
        if self.state.name != "failed":
            self._set(EngineState("failed", time.monotonic(), failure=failure))

    async def _let_go(self) -> None:
        """Gives the GPUs back once nothing of our server is left on them; its log stays readable."""
        self._unnoted()
        if self._server is not None:
            await self._server.stop()
        self._lease.release("chat")

    def _noted(self, server: Server | None) -> None:
        """For commands beside the page; None: it is starting. Where it cannot be written, they start a server of their own."""
        if self._note is not None:
            noted = NotedServer(pid=os.getpid())
            if server is not None:
                noted = NotedServer(pid=os.getpid(), base_url=server.base_url, api_key=server.api_key, command=self.command)
            try:
                self._note.write(noted)
            except OSError:
                log.warning("Where the chat server is could not be noted", exc_info=True)

    def _unnoted(self) -> None:
        if self._note is not None:
            self._note.remove()

    async def _connect(self) -> Endpoint:
        key = self.settings.api_key.get_secret_value() if self.settings.api_key else None
        assert self.settings.base_url is not None
        return await Endpoint.connect(
            self.settings.base_url,
            key,
            kind=self.settings.endpoint_kind,
            connect_timeout_s=self.settings.connect_timeout_s,
            model=self.settings.model,
        )

    async def _launch(self) -> Endpoint:
        await self._lease.acquire("chat", self.stop, takeover=self._takeover)
        self._noted(None)
        path = await self._folder.path(self._phase)
        self._server = await Server.start(Launch.from_settings(self.settings, path), self._phase, self._guardian, self._begun)
        self._watching = asyncio.create_task(self._watch(self._server), name="chat-engine-watch")
        endpoint = await Endpoint.connect(self._server.base_url, self._server.api_key, kind="vllm")
        self._noted(self._server)
        return endpoint

    def _begun(self, server: Server) -> None:
        self._last = server

    async def _watch(self, server: Server) -> None:
        """A server that ends by itself is a failure that people are told of at once."""
        await server.wait_exit()
        self._fail(server.failure())
        await self._let_go()

    def _phase(self, event: Event) -> None:
        if isinstance(event, Phase) and self.state.name == "starting":  # the log's last lines may come after the failure
            self._set(EngineState("starting", self.state.since, event))

    def _set(self, state: EngineState) -> None:
        if state.phase is not None:
            self.timeline.append((state.phase, time.monotonic()))
        self.state = state
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()
