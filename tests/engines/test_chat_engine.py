"""What answers the chat: that every start ends in an answer or a sentence, and that nothing dead keeps the GPUs."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from kimi_demo.dialect.failure import Failure
from kimi_demo.engines.accelerators import Lease
from kimi_demo.engines.chat_engine import ChatEngine
from kimi_demo.engines.endpoint import Endpoint
from kimi_demo.engines.guardian import Guardian
from kimi_demo.engines.launch import Launch
from kimi_demo.engines.model_folder import ModelFolder
from kimi_demo.settings import Settings
from tests.engines.living import alive, until

HERE = Path(__file__).parent
Make = Callable[..., ChatEngine]


@dataclass(frozen=True)
class FakeLaunch(Launch):
    """Starts fake_vllm.py; `extra` is its scenario. absent: as if the environment had been removed under the running demo."""

    def command(self) -> list[str]:
        python = sys.executable if self.extra != ("absent",) else f"{sys.executable}-absent"
        return [python, str(HERE / "fake_vllm.py"), *self.extra, "--port", str(self.port)]


class Connected:
    """Where only the server's life matters: a connection that has been made."""

    closed = False
    well = True

    async def aclose(self) -> None:
        self.closed = True

    async def healthy(self) -> bool:
        return self.well


@pytest.fixture
async def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Make]:
    """A chat engine for a model in a folder of its own, on GPUs that only one engine may hold; its server plays `scenario`."""
    model, guardian, made = tmp_path / "model", Guardian(), list[ChatEngine]()
    model.mkdir()
    (model / "config.json").write_text("{}")

    async def connect(*args: Any, **named: Any) -> Connected:
        return Connected()

    def build(scenario: str, lease: Lease, **settings: Any) -> ChatEngine:
        def launch(settings: Settings, path: str) -> Launch:
            return FakeLaunch(path, settings.data / "logs", extra=(scenario,), on_cpu=False)

        monkeypatch.setattr(Launch, "from_settings", launch)
        monkeypatch.setattr(Endpoint, "connect", connect)
        given: dict[str, Any] = {"model": str(model), "data": tmp_path / "data"} | settings
        chosen = Settings(**given)
        made.append(ChatEngine(chosen, ModelFolder(chosen), lease, guardian))
        return made[-1]

    yield build
    for engine in made:
        await engine.stop()
    guardian.close()


async def refusal(engine: ChatEngine) -> Failure:
    async with asyncio.timeout(20):
        with pytest.raises(Failure) as caught:
            await engine.ready(lambda event: None)
    return caught.value


async def lets_batch_in(lease: Lease) -> bool:
    """Whether the GPUs come free, without anyone being asked to give them up."""
    return await asyncio.to_thread(until, lambda: "chat" not in lease.holders, 20.0)


async def test_a_program_that_cannot_be_run_is_a_failure_and_nobody_waits_for_ever(make: Make) -> None:
    lease = Lease()
    engine = make("absent", lease)
    failure = await refusal(engine)
    assert failure.code == "unexpected" and "FileNotFoundError" in failure.params["error"]
    assert engine.state.name == "failed" and await lets_batch_in(lease)


async def test_a_server_that_cannot_start_gives_the_gpus_back(make: Make) -> None:
    lease = Lease()
    engine = make("crash", lease)
    failure = await refusal(engine)
    assert failure.code.startswith("server.") and await lets_batch_in(lease)
    assert engine.state.failure is failure


async def test_a_server_that_dies_gives_the_gpus_back_once_its_engine_is_gone(make: Make) -> None:
    lease = Lease()
    engine = make("orphaning", lease)
    await engine.ready(lambda event: None)
    assert lease.holders == {"chat"} and engine._server is not None
    members = {pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if _session(pid) == engine._server.pid}
    assert len(members) >= 2
    os.kill(engine._server.pid, signal.SIGKILL)
    assert await lets_batch_in(lease) and not alive(members)
    assert engine.state.name == "failed" and engine.state.failure is not None


async def test_restarts_at_once_leave_one_server(make: Make) -> None:
    lease = Lease()
    engine = make("serve", lease)
    await engine.ready(lambda event: None)
    started: list[int] = []
    for _ in range(2):
        await asyncio.gather(*(engine.restart() for _ in range(3)))
        await engine.ready(lambda event: None)
        assert engine._server is not None
        started.append(engine._server.pid)
    ours = {pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if _parent(pid) == os.getpid() and _is_fake(pid)}
    assert alive(ours) == {started[-1]} and engine.state.name == "ready" and lease.holders == {"chat"}
    await engine.stop()
    assert not alive(ours) and not lease.holders


@pytest.mark.parametrize("name", ["~nobody-of-that-name/model", "/" + "a" * 300, "/nowhere", "model\0"])
async def test_a_path_that_cannot_be_looked_at_is_no_model(make: Make, name: str) -> None:
    failure = await refusal(make("serve", Lease(), model=name))
    assert failure.code == "model.path_missing" and failure.params == {"path": name}


def _stat(pid: int) -> list[str]:
    """The fields of /proc/PID/stat after the name (proc(5)): state, parent, group, session, …"""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ["", "0", "0", "0"]


def _parent(pid: int) -> int:
    return int(_stat(pid)[1])


def _session(pid: int) -> int:
    return int(_stat(pid)[3])


def _is_fake(pid: int) -> bool:
    try:
        return b"fake_vllm.py" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


async def test_a_reply_that_the_end_of_the_server_cost_says_what_the_server_died_of(make: Make) -> None:
    engine = make("serve", Lease())
    await engine.ready(lambda event: None)
    assert engine.server is not None and engine.server.pid
    with pytest.raises(Failure) as caught:
        async with engine.explaining():
            os.kill(engine.server.pid, signal.SIGKILL)
            engine.endpoint.well = False  # type: ignore[union-attr]  # as the real one sees
            raise Failure("endpoint.broke_off", address="http://127.0.0.1")
    assert caught.value.code == "server.died"
    assert engine.state.failure is caught.value


async def test_a_failed_request_of_a_server_that_is_well_stays_what_it_is(make: Make) -> None:
    engine = make("serve", Lease())
    await engine.ready(lambda event: None)
    for code in ("endpoint.server_error", "endpoint.rejected"):
        with pytest.raises(Failure) as caught:
            async with engine.explaining():
                raise Failure(code, address="x", status=500, message="m")
        assert caught.value.code == code and engine.state.name == "ready"


async def test_the_log_can_be_read_while_it_starts_and_after_its_end(make: Make) -> None:
    engine = make("serve", Lease())
    engine.start()
    while engine.server is None or not engine.server.log_since(0):  # noqa: ASYNC110  (a line of a log is no event)
        await asyncio.sleep(0.02)
    await engine.ready(lambda event: None)
    names = [phase.name for phase, _ in engine.timeline]
    assert names[0] == "starting" and names[-1] == "server.ready"
    await engine.stop()
    assert engine.state.name == "off" and engine.log_tail(5)


async def test_another_base_url_takes_the_place_of_our_own_server(make: Make, tmp_path: Path) -> None:
    lease = Lease()
    engine = make("serve", lease)
    await engine.ready(lambda event: None)
    own = engine.server
    assert own is not None and not engine.remote and lease.holders == {"chat"}
    elsewhere = Settings(base_url="http://elsewhere/v1", data=tmp_path / "data")
    await engine.switch(elsewhere, ModelFolder(elsewhere))
    await engine.ready(lambda event: None)
    assert engine.remote and engine.server is None and own.exited and not lease.holders
