"""What the operator does with what answers the chat: start, stop, restart, another base URL, another model, named profiles."""

import asyncio
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from pydantic import SecretStr

from kimi_demo.checks.result import CheckResult
from kimi_demo.checks.server import Address, self_test
from kimi_demo.dialect.failure import Failure
from kimi_demo.engines.accelerators import Holder, Lease
from kimi_demo.engines.capabilities import Capabilities, ask_capabilities
from kimi_demo.engines.chat_engine import ChatEngine
from kimi_demo.engines.endpoint import Endpoint
from kimi_demo.engines.launch import Launch
from kimi_demo.engines.launch_options import LaunchOptions
from kimi_demo.engines.model_folder import ModelFolder
from kimi_demo.engines.monitor import Monitor
from kimi_demo.engines.phases import READY
from kimi_demo.engines.plan.surroundings import port_taken
from kimi_demo.engines.saved_launches import SavedLaunches, Start, start_key
from kimi_demo.engines.vllm_parser import VllmParser
from kimi_demo.server_weights import Weights
from kimi_demo.settings import Settings

STARTED, REHEARSAL, ON_DISK = "started", "rehearsal", "disk:"
"""Keys of models: the one that the demo was started with, the stand-in, and (before its name) one that was downloaded."""


@dataclass(frozen=True)
class ModelChoice:
    """A model that a server of our own can serve. model: folder or hub id, None for the stand-in."""

    key: str
    model: str | None


class ServerControl:
    """options, model: of the server that runs, or else would be started; capabilities: of what answers now, None until it was asked.

    Belongs to the event loop's thread. `run` is its task; `aclose` ends it.
    """

    def __init__(self, settings: Settings, engine: ChatEngine, folder: ModelFolder, lease: Lease, saved: SavedLaunches) -> None:
        self._settings = settings
        self._folder = folder
        self._lease = lease
        self._shares = lease.shared
        self._keys: dict[str, SecretStr] = {}
        self._asked: Endpoint | None = None
        self._asking: asyncio.Task[None] | None = None
        self._checking: asyncio.Task[None] | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._kept: Sequence[object] = ()
        self._before: Start | None = None
        self.engine = engine
        self.saved = saved
        self.monitor = Monitor(engine)
        self.parser = VllmParser()
        self.weights = Weights(settings.data / "models", settings.hub_token)
        self.own = settings if settings.base_url is None else settings.model_copy(update={"base_url": None, "api_key": None, "model": None})
        self.options = LaunchOptions.of(self.own)
        self.model = STARTED if settings.base_url is None and settings.model is not None else REHEARSAL
        self.capabilities: Capabilities | None = None
        self.checks: list[CheckResult] = []
        self.check_began = 0.0
        if settings.base_url is not None and settings.api_key is not None:
            self._keys[settings.base_url] = settings.api_key

    def begin(self) -> None:
        """Starts to watch. To be called once, on the event loop."""
        self._tasks = [
            asyncio.create_task(self.weights.look(), name="weights-look"),
            asyncio.create_task(self.monitor.run(), name="monitor"),
            asyncio.create_task(self._follow(), name="server-control"),
        ]

    async def aclose(self) -> None:
        await self.weights.stop()
        await self.parser.aclose()
        for task in (*self._tasks, *(task for task in (self._asking, self._checking) if task is not None)):
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    # ---- what can be chosen ---------------------------------------------------------------------------------------------

    def models(self) -> list[ModelChoice]:
        """What a server of our own may serve: folders and ids that are known here, never one that a browser sends."""
        found = [ModelChoice(STARTED, self.own.model)] if self.own.model is not None else []
        found += [ModelChoice(f"{ON_DISK}{one.name}", str(one.folder.resolve())) for one in self.weights.known if one.complete]
        return [*found, ModelChoice(REHEARSAL, None)]

    def addresses(self) -> list[str]:
        """Base URLs to switch to; the one that the demo was started with is always there."""
        given = [self._settings.base_url] if self._settings.base_url is not None else []
        return list(dict.fromkeys([*given, *self.saved.addresses]))

    @property
    def started_with(self) -> str:
        """The base URL that the demo was started with; "" where it was to start a server of its own."""
        return self._settings.base_url or ""

    @property
    def serves(self) -> bool:
        """Whether a server of our own is up, or starts: the memory that it holds is free for the next one."""
        server = self.engine.server
        return server is not None and not server.exited

    @property
    def stops(self) -> Holder | None:
        """Who would have to give up the GPUs for a server of our own."""
        others = self._lease.holders - {"chat"}
        return next(iter(others)) if others and not self._lease.shared else None

    # ---- what is done ---------------------------------------------------------------------------------------------------

    async def start(self, options: LaunchOptions, model: str, *, takeover: bool = False) -> None:
        """Starts a server of our own with these options, in place of whatever answers now.

        Raises Failure: server.argument_ours, launch.model, launch.port_taken, accelerators.held (before anything is stopped).
        """
        settings, folder = self.planned(options, model)
        await self.refuse_taken_port(options)
        shared = self._shares and settings.rehearsal  # only the stand-in leaves room for another engine
        others = self._lease.holders - {"chat"}
        if others and not shared and not takeover:
            raise Failure("accelerators.held", holder=next(iter(others)))
        self._lease.shared = shared
        self.options, self.model = options, model
        await self.engine.switch(settings, folder, takeover=takeover)

    async def refuse_taken_port(self, options: LaunchOptions) -> None:
        """Raises Failure("launch.port_taken") where another program listens; our own server is stopped before the next one starts."""
        server = self.engine.server
        if server is not None and self.serves and server.launch.port == options.server_port:
            return
        if await asyncio.to_thread(port_taken, "127.0.0.1", options.server_port):
            raise Failure("launch.port_taken", port=options.server_port, name="server_port")

    async def restart(self, *, takeover: bool = False) -> None:
        """The same again: our own server, or the connection. Raises Failure("accelerators.held") before anything is stopped."""
        if not self.engine.remote and self.stops is not None and not takeover:
            raise Failure("accelerators.held", holder=self.stops)
        await self.engine.restart(takeover=takeover)

    async def stop(self) -> None:
        await self.engine.stop()

    async def use(self, typed: str, key: str) -> None:
        """Connects to a server that runs already. key: kept in memory for this address only; "" keeps the one that is known.

        Raises Failure: endpoint.url_…, endpoint.key_malformed, launch.write.
        """
        if key.strip() and not (key.strip().isascii() and key.strip().isprintable() and " " not in key.strip()):
            raise Failure("endpoint.key_malformed")
        address = self.saved.add_address(typed)
        if key.strip():
            self._keys[address] = SecretStr(key.strip())
        same = address == self._settings.base_url
        settings = self._settings.model_copy(
            update={
                "base_url": address,
                "api_key": self._keys.get(address),  # another address never gets this one's key
                "model": self._settings.model if same else None,
                "endpoint_kind": self._settings.endpoint_kind if same else "auto",
            }
        )
        await self.engine.switch(settings, self._folder)

    async def connected(self, address: str) -> Endpoint:
        """A connection of one's own to a listed address. Raises Failure: pair.no_server, and those of `Endpoint.connect`."""
        if address not in self.addresses():
            raise Failure("pair.no_server", address=address)
        key, settings = self._keys.get(address), self._settings
        kind = settings.endpoint_kind if address == settings.base_url else "auto"
        return await Endpoint.connect(
            address, key.get_secret_value() if key is not None else None, kind, connect_timeout_s=settings.connect_timeout_s
        )

    def forget(self, address: str) -> None:
        """Takes an address off the list, its key with it."""
        self._keys.pop(address, None)
        self.saved.forget_address(address)

    def planned(self, options: LaunchOptions, model: str) -> tuple[Settings, ModelFolder]:
        """The settings of a server with these options. Raises Failure: server.argument_ours, launch.model."""
        choice = next((known for known in self.models() if known.key == model), None)
        if choice is None:
            raise Failure("launch.model", name=model)
        settings = options.applied(self.own.model_copy(update={"model": choice.model}))
        return settings, self._folder if choice.model == self._settings.model else ModelFolder(settings)

    async def launch_of(self, options: LaunchOptions, model: str) -> Launch:
        """The launch as it would be, for showing; its key is nobody's, and nothing is built for it.

        Raises Failure: server.argument_ours, launch.model, model.path_missing, rehearsal.build.
        """
        from kimi_demo.engines.rehearsal.base import BaseMissing
        from kimi_demo.engines.rehearsal.build import model_path

        settings, folder = self.planned(options, model)
        if not settings.rehearsal:
            return Launch.from_settings(settings, await folder.path(lambda event: None))
        try:
            path = await asyncio.to_thread(model_path, settings.data.resolve())
        except BaseMissing as error:
            raise Failure("rehearsal.build", reason=error) from None
        return Launch.from_settings(settings, str(path))

    def start_check(self) -> None:
        """Begins the self-test of what answers now. Raises Failure: server.off, check.running."""
        endpoint = self.engine.endpoint
        if endpoint is None:
            raise Failure("server.off")
        if self.checks_now:
            raise Failure("check.running")
        server, remote_key = self.engine.server, self.engine.settings.api_key
        key = server.api_key if server is not None else remote_key.get_secret_value() if remote_key is not None else None
        address = Address(endpoint.base_url, key, endpoint.info.id, endpoint.kind, self._settings.connect_timeout_s)
        self.checks, self.check_began = [], time.monotonic()
        self._checking = asyncio.create_task(self._check(address), name="self-test")

    async def stop_check(self) -> None:
        """What has been found until now stays."""
        if self._checking is not None:
            self._checking.cancel()
            await asyncio.gather(self._checking, return_exceptions=True)

    @property
    def checks_now(self) -> bool:
        """Whether the self-test is going on."""
        return self._checking is not None and not self._checking.done()

    async def _check(self, address: Address) -> None:
        async for result in self_test(address):
            self.checks.append(result)

    # ---- what is known --------------------------------------------------------------------------------------------------

    @property
    def steps(self) -> list[tuple[str, float]]:
        """The phases of this start (or the last one) and how long each took, the one that goes on included; in seconds."""
        found: list[tuple[str, float]] = []
        state, timeline = self.engine.state, self.engine.timeline
        ended = state.since if state.name in ("ready", "failed") else time.monotonic()
        for (phase, begun), following in zip(timeline, [*(at for _, at in timeline[1:]), ended], strict=True):
            if phase.name == READY:
                break
            seconds = max(0.0, following - begun)
            if found and found[-1][0] == phase.name:
                found[-1] = (phase.name, found[-1][1] + seconds)
            else:
                found.append((phase.name, seconds))
        return found

    @property
    def last_start(self) -> Start | None:
        """How long the start before this one took, of the same model, split the same way."""
        if self.engine.remote:
            return None
        return self._before if self.engine.timeline is self._kept else self.saved.start_of(self._start_key())

    def left(self) -> float | None:
        """Seconds until a start that goes on may be done, by the last one: what was left there after the phase that is reached now."""
        last, steps = self.last_start, self.steps
        if last is None or not steps or self.engine.state.name != "starting":
            return None
        name, spent = steps[-1]
        names = [phase for phase, _ in last.phases]
        if name not in names:
            return max(0.0, last.total - sum(seconds for _, seconds in steps))
        at = names.index(name)
        return max(0.0, last.phases[at][1] - spent) + sum(seconds for _, seconds in last.phases[at + 1 :])

    def log_files(self) -> Path:
        """Where our own servers' log is; its first file."""
        from kimi_demo.engines.server import LOG_NAME

        return self._settings.data.resolve() / "logs" / LOG_NAME

    def asks(self) -> bool:
        """Whether the capabilities are being asked for now."""
        return self._asking is not None and not self._asking.done()

    def ask(self) -> None:
        """Asks what answers now what it can do, unless that is known or being asked."""
        endpoint = self.engine.endpoint
        if endpoint is not None and not self.asks() and endpoint is not self._asked:
            self.capabilities, self._asked = None, endpoint
            self._asking = asyncio.create_task(self._ask(endpoint), name="capabilities")

    async def _ask(self, endpoint: Endpoint) -> None:
        found = await ask_capabilities(endpoint)
        if endpoint is self.engine.endpoint:
            self.capabilities = found

    async def _follow(self) -> None:
        """Keeps how long a start took, once it is done."""
        while True:
            state = self.engine.state
            if self.engine.endpoint is not self._asked:
                self.capabilities = None
            if state.name == "ready" and not self.engine.remote and self.engine.timeline is not self._kept:
                self._before, self._kept = self.saved.start_of(self._start_key()), self.engine.timeline
                steps = self.steps
                self.saved.keep_start(self._start_key(), steps, sum(seconds for _, seconds in steps))
            await self.engine.changed()

    def _start_key(self) -> str:
        options = self.options
        name = next((choice.model for choice in self.models() if choice.key == self.model), None) or REHEARSAL
        return start_key(name, options.tensor_parallel_size, options.pipeline_parallel_size, options.data_parallel_size)
