"""The monitor on a real connection: a server that is well, silent, sick, without metrics; and one of our own that is halted."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field

import pytest

from kimi_demo.engines import monitor as monitor_module
from kimi_demo.engines.endpoint import Endpoint
from kimi_demo.engines.monitor import Monitor
from tests import scripted_server
from tests.programs import ROOT, running
from tests.scripted_server import Scripted


@dataclass
class Engine:
    """As much of a ChatEngine as the monitor looks at."""

    endpoint: Endpoint | None = None
    server: object = None
    news: asyncio.Event = field(default_factory=asyncio.Event)

    async def changed(self) -> None:
        await self.news.wait()


@pytest.fixture
async def scripted() -> AsyncIterator[Scripted]:
    with scripted_server.running() as server:
        yield server


async def until(condition: Callable[[], bool], seconds: float = 20.0) -> None:
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110  (the monitor tells nobody; whoever shows it looks)
            await asyncio.sleep(0.02)


async def watched(engine: Engine) -> tuple[Monitor, asyncio.Task[None]]:
    found = Monitor(engine)  # type: ignore[arg-type]
    return found, asyncio.create_task(found.run())


async def test_it_looks_and_forgets_when_another_server_answers(scripted: Scripted) -> None:
    engine = Engine(await Endpoint.connect(scripted.base_url))
    monitor, task = await watched(engine)
    with monitor.watching():
        await until(lambda: len(monitor.history.points) >= 2)
    assert monitor.health.name == "well" and monitor.health.has_metrics is True and monitor.history.points[-1].running == 0
    first = engine.endpoint
    with scripted_server.running(missing={"/metrics"}) as other:
        engine.endpoint = await Endpoint.connect(other.base_url)
        engine.news.set()
        await until(lambda: monitor.health.has_metrics is False)
        assert monitor.health.name == "well" and not monitor.history.points
        await engine.endpoint.aclose()
    engine.endpoint = None
    await until(lambda: monitor.health.name == "off")
    task.cancel()
    assert first is not None
    await first.aclose()


async def test_silence_and_the_end_of_it(scripted: Scripted, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(monitor_module, "WATCHED_S", 0.2)
    with running("-m", "tests.scripted_server", "--port", "0", cwd=ROOT) as other:
        engine = Engine(await Endpoint.connect(other.wait_for(r"http://\S+").group()))
        monitor, task = await watched(engine)
        with monitor.watching():
            await until(lambda: monitor.health.name == "well")
            os.kill(other.process.pid, signal.SIGSTOP)
            await until(lambda: monitor.health.name == "silent")
            os.kill(other.process.pid, signal.SIGCONT)
            await until(lambda: monitor.health.name == "well")
        task.cancel()
        assert engine.endpoint is not None
        await engine.endpoint.aclose()


async def test_a_server_that_says_it_is_not_well(scripted: Scripted, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(monitor_module, "WATCHED_S", 0.2)
    engine = Engine(await Endpoint.connect(scripted.base_url))
    monitor, task = await watched(engine)
    with monitor.watching():
        await until(lambda: monitor.health.name == "well")
        scripted.scenario("loading")
        await until(lambda: monitor.health.name == "sick")
    task.cancel()
    assert engine.endpoint is not None
    await engine.endpoint.aclose()


@dataclass
class Own:
    pid: int
    exited: bool = False


async def test_a_halted_process_of_our_own_server_is_seen(scripted: Scripted, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(monitor_module, "WATCHED_S", 0.2)
    sleeper = await asyncio.create_subprocess_exec("sleep", "600", start_new_session=True)
    try:
        engine = Engine(await Endpoint.connect(scripted.base_url), Own(sleeper.pid))
        monitor, task = await watched(engine)
        with monitor.watching():
            await until(lambda: monitor.health.name == "well")
            sleeper.send_signal(signal.SIGSTOP)
            await until(lambda: monitor.health.name == "stopped")
            sleeper.send_signal(signal.SIGCONT)
            await until(lambda: monitor.health.name == "well")
        task.cancel()
        assert engine.endpoint is not None
        await engine.endpoint.aclose()
    finally:
        sleeper.kill()
        await sleeper.wait()
