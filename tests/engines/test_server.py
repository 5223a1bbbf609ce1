"""The server's life with a child that plays vLLM; with vLLM itself: test_server_vllm.py."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from kimi_demo.dialect.events import Event, Phase
from kimi_demo.dialect.failure import Failure
from kimi_demo.engines import server as server_module
from kimi_demo.engines.guardian import Guardian
from kimi_demo.engines.launch import Launch
from kimi_demo.engines.server import LOG_NAME, Server
from tests.engines.living import alive, tree, until

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent


@dataclass(frozen=True)
class FakeLaunch(Launch):
    """Starts fake_vllm.py; `extra` is its scenario and the log that it writes first."""

    def command(self) -> list[str]:
        return [sys.executable, str(HERE / "fake_vllm.py"), *self.extra, "--port", str(self.port)]


@pytest.fixture
def launch(tmp_path: Path) -> Callable[..., FakeLaunch]:
    (tmp_path / "config.json").write_text("{}")

    def make(scenario: str, *log: str) -> FakeLaunch:
        extra = (scenario, *(str(HERE / "logs" / f"{name}.log") for name in log))
        return FakeLaunch(str(tmp_path), tmp_path / "logs", extra=extra, on_cpu=False)

    return make


@pytest.fixture
def guardian() -> Iterator[Guardian]:
    made = Guardian()
    yield made
    made.close()


def session(leader: int) -> set[int]:
    """The processes in the session that `leader` leads, by the system's own `ps`; zombies left out."""
    listed = subprocess.run(["ps", "-eo", "pid=,sid=,stat="], capture_output=True, text=True, check=True).stdout
    rows = [line.split() for line in listed.splitlines()]
    return {int(pid) for pid, leads, state in rows if int(leads) == leader and not state.startswith("Z")}


async def test_phases_come_in_order_until_ready_and_stop_leaves_nothing(launch: Callable[..., FakeLaunch], guardian: Guardian) -> None:
    events: list[Event] = []
    server = await Server.start(launch("serve", "cpu-start"), events.append, guardian)
    names = [event.name for event in events if isinstance(event, Phase)]
    assert names[0] == "server.starting" and names[-1] == "server.ready" and len(names) == len(events)
    assert "server.loading_weights" in names and names.index("server.reading_model") < names.index("server.kv_cache")
    members = session(server.pid)
    assert len(members) == 2 and server.pid in members
    assert server.api_key not in " ".join(server.launch.command()) and server.base_url.startswith("http://127.0.0.1:")
    assert not server.exited
    began = time.monotonic()
    await server.stop()
    assert not alive(members) and time.monotonic() - began < 5
    assert server.exited and await server.wait_exit() == -signal.SIGTERM
    await server.stop()
    assert alive([guardian.pid or 0])


async def test_the_log_is_kept_in_memory_and_in_the_data_folder(launch: Callable[..., FakeLaunch], guardian: Guardian) -> None:
    server = await Server.start(launch("serve", "cpu-start"), lambda event: None, guardian)
    assert until(lambda: any("/v1/models" in line for line in server.log_tail(10)), 5)
    await server.stop()
    file = (server.launch.logs / LOG_NAME).read_text(encoding="utf-8")
    assert "Resolved architecture: LlamaForCausalLM" in file and "/v1/models" in file
    assert server.api_key not in file
    assert file.splitlines()[-1] == server.log_tail(1)[0]


async def test_a_later_end_is_noticed_within_a_second_and_its_orphans_go(launch: Callable[..., FakeLaunch], guardian: Guardian) -> None:
    server = await Server.start(launch("orphaning"), lambda event: None, guardian)
    members = session(server.pid)
    assert len(members) == 3
    waiting = asyncio.create_task(server.wait_exit())
    began = time.monotonic()
    os.kill(server.pid, signal.SIGKILL)
    assert await asyncio.wait_for(waiting, 5) == -signal.SIGKILL
    assert time.monotonic() - began < 1
    failure = server.failure()
    assert failure.code == "server.died" and failure.params["exit_code"] == "SIGKILL"
    assert await asyncio.to_thread(until, lambda: not alive(members), 5)
    await server.stop()


@pytest.mark.parametrize(
    ("scenario", "log", "code"),
    [
        ("crash", "heads", "server.heads"),
        ("crash", "unknown-argument", "server.argument_unknown"),
        ("crash", "cpu-start", "server.exited"),
        ("killed", "cpu-start", "server.killed"),
    ],
)
async def test_a_start_that_fails_says_why_and_leaves_nothing(
    launch: Callable[..., FakeLaunch], guardian: Guardian, scenario: str, log: str, code: str
) -> None:
    pids: list[int] = []
    before = tree(os.getpid())  # other tests' engines and demos
    with pytest.raises(Failure) as failed:
        await Server.start(launch(scenario, log), lambda event: pids.extend(tree(os.getpid())), guardian)
    assert failed.value.code == code and failed.value.params["log"]
    left = alive(set(pids) - before)
    assert left <= {guardian.pid}


async def test_another_port_is_tried_when_the_first_was_taken_meanwhile(
    launch: Callable[..., FakeLaunch], guardian: Guardian, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # where the fake remembers its first start
    server = await Server.start(launch("unlucky"), lambda event: None, guardian)
    assert str(server.launch.port) != (tmp_path / "taken").read_text()
    await server.stop()


async def test_a_port_that_a_person_chose_is_not_changed(launch: Callable[..., FakeLaunch], guardian: Guardian) -> None:
    with pytest.raises(Failure, match=r"server\.port_taken"):
        await Server.start(replace(launch("crash", "port-taken"), port=server_module._free_port()), lambda event: None, guardian)


async def test_another_server_at_the_port_is_not_taken_for_ours(launch: Callable[..., FakeLaunch], guardian: Guardian) -> None:
    with pytest.raises(Failure) as failed:
        await Server.start(launch("foreign"), lambda event: None, guardian)
    assert failed.value.code == "server.exited" and failed.value.params["reason"] == "RuntimeError: that was not yours"


async def test_cancelling_a_start_ends_what_does_not_hear_sigterm(launch: Callable[..., FakeLaunch], guardian: Guardian) -> None:
    heard = asyncio.Event()
    before = tree(os.getpid())
    start = asyncio.create_task(
        Server.start(launch("stubborn", "cpu-start"), lambda event: _when(event, "server.opening", heard), guardian)
    )
    await asyncio.wait_for(heard.wait(), 20)
    [leader] = [pid for pid in tree(os.getpid()) - before - {guardian.pid} if os.getsid(pid) == pid]
    assert await asyncio.to_thread(until, lambda: len(session(leader)) == 3, 5)
    members = session(leader)
    began = time.monotonic()
    start.cancel()
    with pytest.raises(asyncio.CancelledError):
        await start
    assert not alive(members) and time.monotonic() - began < 8


async def test_a_progress_bar_is_read_before_it_ends(launch: Callable[..., FakeLaunch], guardian: Guardian) -> None:
    heard: asyncio.Queue[Event] = asyncio.Queue()
    start = asyncio.create_task(Server.start(launch("bar"), heard.put_nowait, guardian))
    assert await asyncio.wait_for(heard.get(), 20) == Phase("server.starting")
    assert await asyncio.wait_for(heard.get(), 20) == Phase("server.graphs", 7, 35)
    start.cancel()
    await asyncio.gather(start, return_exceptions=True)


def _when(event: Event, name: str, heard: asyncio.Event) -> None:
    if isinstance(event, Phase) and event.name == name:
        heard.set()


async def test_what_is_certain_is_said_before_anything_is_started(launch: Callable[..., FakeLaunch], guardian: Guardian) -> None:
    events: list[Event] = []
    with pytest.raises(Failure, match=r"model\.path_missing"):
        await Server.start(replace(launch("serve"), model="/models/none"), events.append, guardian)
    assert events == [] and guardian.pid is None


async def test_a_server_without_a_guardian_has_its_own_which_goes_with_it(launch: Callable[..., FakeLaunch]) -> None:
    before = tree(os.getpid())
    server = await Server.start(launch("serve"), lambda event: None)
    assert len(tree(os.getpid()) - before) == 3
    await server.stop()
    assert tree(os.getpid()) <= before


APPLICATION = """
import asyncio, json, sys
from tests.engines.test_server import FakeLaunch
from kimi_demo.engines.server import Server

async def main(folder, scenario):
    def tell(event):
        print(event.name, flush=True)
    from pathlib import Path
    server = await Server.start(FakeLaunch(folder, Path(folder, "logs"), extra=tuple(scenario), on_cpu=False), tell)
    print("pid", server.pid, flush=True)
    await server.wait_exit()

asyncio.run(main(sys.argv[1], json.loads(sys.argv[2])))
"""


@pytest.mark.parametrize(("scenario", "sign"), [("serve", "pid"), ("stubborn", "server.opening")])
def test_an_application_that_was_killed_leaves_no_server(tmp_path: Path, scenario: str, sign: str) -> None:
    (tmp_path / "config.json").write_text("{}")
    arguments = [str(tmp_path), json.dumps([scenario, str(HERE / "logs" / "cpu-start.log")])]
    application = subprocess.Popen([sys.executable, "-c", APPLICATION, *arguments], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert application.stdout is not None
    while not application.stdout.readline().startswith(sign):
        assert application.poll() is None
    assert until(lambda: len(tree(application.pid)) == (5 if scenario == "stubborn" else 4), 5)
    members = tree(application.pid)
    application.kill()
    application.wait()
    application.stdout.close()
    assert until(lambda: not alive(members), 10)
