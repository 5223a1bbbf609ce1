"""What the operator's buttons come down to: what is stopped only on a yes, what a start may still take, which models can be chosen."""

import asyncio
import os
import socket
import time
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kimi_demo.dialect.events import Phase
from kimi_demo.dialect.failure import Failure
from kimi_demo.engines.accelerators import Lease
from kimi_demo.engines.chat_engine import EngineState
from kimi_demo.engines.launch_options import LaunchOptions
from kimi_demo.engines.model_folder import ModelFolder
from kimi_demo.engines.saved_launches import SavedLaunches
from kimi_demo.server_control import ServerControl
from kimi_demo.settings import Settings


@dataclass
class Engine:
    """A ChatEngine that only notes what it is told."""

    settings: Settings
    state: EngineState = field(default_factory=lambda: EngineState("off", time.monotonic()))
    timeline: list[tuple[Phase, float]] = field(default_factory=list)
    told: list[Any] = field(default_factory=list)
    endpoint: Any = None
    server: Any = None
    news: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def remote(self) -> bool:
        return self.settings.base_url is not None

    async def changed(self) -> None:
        news = self.news
        await news.wait()

    def set(self, name: Any, phase: str | None = None, since: float | None = None) -> None:
        at = time.monotonic() if since is None else since
        if phase is not None:
            self.timeline.append((Phase(phase), at))
        self.state = EngineState(name, at, Phase(phase) if phase else None)
        news, self.news = self.news, asyncio.Event()
        news.set()

    async def switch(self, settings: Settings, folder: ModelFolder, *, takeover: bool = False) -> None:
        self.settings = settings
        self.told.append(("switch", settings.base_url, settings.model, takeover))

    async def restart(self, *, takeover: bool = False) -> None:
        self.told.append(("restart", takeover))


def make(tmp_path: Path, lease: Lease, **settings: Any) -> tuple[ServerControl, Engine]:
    chosen = Settings(_env_file=None, data=tmp_path, **settings)
    engine = Engine(chosen)
    control = ServerControl(chosen, engine, ModelFolder(chosen), lease, SavedLaunches(tmp_path / "servers.json"))  # type: ignore[arg-type]
    return control, engine


async def nothing() -> None: ...


async def test_what_holds_the_gpus_is_stopped_only_on_a_yes(tmp_path: Path) -> None:
    lease = Lease()
    await lease.acquire("batch", nothing)
    control, engine = make(tmp_path, lease, model="owner/model")
    assert control.stops == "batch"
    for asked in (control.start(LaunchOptions(), "started"), control.restart()):
        with pytest.raises(Failure) as caught:
            await asked
        assert caught.value.code == "accelerators.held" and caught.value.params["holder"] == "batch"
    assert engine.told == []
    await control.start(LaunchOptions(), "started", takeover=True)
    await control.restart(takeover=True)
    assert engine.told == [("switch", None, "owner/model", True), ("restart", True)]


async def test_a_taken_port_is_told_before_anything_is_stopped(tmp_path: Path) -> None:
    control, engine = make(tmp_path, Lease())
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(Failure) as caught:
            await control.start(LaunchOptions(server_port=port), "rehearsal")
        assert caught.value.code == "launch.port_taken" and caught.value.params["port"] == str(port) and engine.told == []
        # Our own server is stopped before the next one starts on its port.
        engine.server = SimpleNamespace(exited=False, launch=SimpleNamespace(port=port))
        await control.start(LaunchOptions(server_port=port), "rehearsal")
        engine.server.exited = True
        with pytest.raises(Failure):
            await control.start(LaunchOptions(server_port=port), "rehearsal")
    assert engine.told == [("switch", None, None, False)]


async def test_only_the_stand_in_leaves_room_for_another_engine(tmp_path: Path) -> None:
    lease = Lease(shared=True)
    await lease.acquire("batch", nothing)
    model = tmp_path / "models" / "owner" / "real"
    model.mkdir(parents=True)
    control, engine = make(tmp_path, lease)
    await control.start(LaunchOptions(), "rehearsal")
    assert lease.shared and engine.told == [("switch", None, None, False)]
    with pytest.raises(Failure) as caught:
        await control.start(LaunchOptions(), str(model))  # no path from a browser
    assert caught.value.code == "launch.model"


async def test_downloaded_models_can_be_chosen_once_they_are_complete(tmp_path: Path, standin_model: Path) -> None:
    (tmp_path / "models" / "owner").mkdir(parents=True)
    (tmp_path / "models" / "owner" / "whole").symlink_to(standin_model)
    (tmp_path / "models" / "owner" / "half").mkdir()
    lease = Lease(shared=True)
    control, engine = make(tmp_path, lease)
    await control.weights.look()
    assert [choice.key for choice in control.models()] == ["disk:owner/whole", "rehearsal"]
    await lease.acquire("batch", nothing)
    with pytest.raises(Failure) as caught:
        await control.start(LaunchOptions(), "disk:owner/whole")  # it may need the whole machine
    assert caught.value.code == "accelerators.held" and lease.shared
    await control.start(LaunchOptions(), "disk:owner/whole", takeover=True)
    assert engine.told == [("switch", None, os.path.realpath(standin_model), True)]  # noqa: ASYNC240
    assert not lease.shared


async def test_another_server_gets_neither_our_model_nor_our_key(tmp_path: Path) -> None:
    control, engine = make(tmp_path, Lease(), base_url="http://first/v1", api_key="first-key", model="first-model")
    await control.use("http://second:8000/v1/", "")
    assert engine.settings.api_key is None and engine.settings.model is None
    await control.use("http://first/v1", "")
    assert engine.settings.api_key is not None and engine.settings.model == "first-model"
    assert control.addresses() == ["http://first/v1", "http://second:8000/v1"]
    with pytest.raises(Failure) as caught:
        await control.use("http://third/v1", "two words")
    assert caught.value.code == "endpoint.key_malformed" and "http://third/v1" not in control.addresses()


async def test_a_start_is_estimated_by_the_last_one_of_the_same_model_and_layout(tmp_path: Path) -> None:
    control, engine = make(tmp_path, Lease())
    control.begin()
    now = time.monotonic()
    for at, phase in enumerate(("starting", "server.starting", "server.loading_weights")):
        engine.set("starting", phase, now - 60 + 10 * at)
    assert control.left() is None and control.last_start is None
    engine.set("starting", "server.ready", now - 30)
    engine.set("ready", None, now - 30)
    async with asyncio.timeout(10):
        while not SavedLaunches(tmp_path / "servers.json").start_of("rehearsal 1 1 1"):  # noqa: ASYNC110  (a file is no event)
            await asyncio.sleep(0.01)
    assert [(name, round(seconds)) for name, seconds in control.steps] == [
        ("starting", 10),
        ("server.starting", 10),
        ("server.loading_weights", 10),
    ]
    assert control.last_start is None  # there was none before this one
    engine.timeline = []
    engine.set("starting", "server.starting", now - 4)
    left = control.left()
    assert left is not None and 14 < left < 17  # 6 s of this phase, 10 of the next
    engine.set("starting", "server.loading_weights", now)
    assert control.left() == pytest.approx(10, abs=2)
    control.options = LaunchOptions(tensor_parallel_size=2)
    assert control.left() is None
    await control.aclose()
