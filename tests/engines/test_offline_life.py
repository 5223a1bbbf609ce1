"""How the batch engine begins and ends: with the application, in the middle of loading, split over processes, or not at all."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from kimi_demo.dialect.events import Event, Phase, RowFinished
from kimi_demo.dialect.failure import Failure
from kimi_demo.dialect.sampling import Sampling
from kimi_demo.engines.offline import OfflineEngine
from kimi_demo.engines.offline_launch import OfflineLaunch

ROOT = Path(__file__).parents[2]
GONE_S = 20


class Holder:
    """The program offline_holder.py, with its engine loaded."""

    def __init__(self, model: Path, log: Path, then: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("offline_holder.py")), str(model), str(log), then],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
        assert self.process.stdout is not None
        ready, *pids = self.process.stdout.readline().split()
        assert ready == "ready"
        self.children = [psutil.Process(int(pid)) for pid in pids]

    def gone(self) -> bool:
        """Whether all of its processes end soon. They are no children of ours, so they are watched, not waited for."""
        _, left = psutil.wait_procs(self.children, timeout=GONE_S)
        return not [process for process in left if process.status() != psutil.STATUS_ZOMBIE]

    def end(self) -> None:
        for process in self.children:
            if process.is_running():
                process.kill()
        self.process.kill()
        self.process.wait()


@pytest.fixture
def holders() -> Iterator[list[Holder]]:
    started: list[Holder] = []
    yield started
    for holder in started:
        holder.end()


def test_kill_9_of_the_application_leaves_no_process(stand_in: Path, tmp_path: Path, holders: list[Holder]) -> None:
    holder = Holder(stand_in, tmp_path / "log", "wait")
    holders.append(holder)
    names = {" ".join(process.cmdline()).split()[0] for process in holder.children}
    assert {"VLLM::EngineCore", "VLLM::Worker"} <= names
    holder.process.kill()
    assert holder.process.wait(10) == -9
    assert holder.gone()


def test_the_interpreters_normal_end_leaves_no_process(stand_in: Path, tmp_path: Path, holders: list[Holder]) -> None:
    holder = Holder(stand_in, tmp_path / "log", "return")
    holders.append(holder)
    assert holder.process.wait(60) == 0
    assert holder.gone()


async def test_unloading_stops_a_load_and_the_one_who_waited_hears_of_it(stand_in: Path, tmp_path: Path) -> None:
    engine = OfflineEngine(OfflineLaunch(str(stand_in), tmp_path / "log", max_model_len=512))
    told: list[Event] = []
    reached = asyncio.Event()

    def listen(event: Event) -> None:
        told.append(event)
        if event == Phase("server.starting_engine"):
            reached.set()

    load = asyncio.create_task(engine.load(listen))
    await asyncio.wait_for(reached.wait(), 120)
    await asyncio.wait_for(engine.unload(), GONE_S)
    with pytest.raises(Failure) as stopped:
        await load
    assert stopped.value.code == "batch.load_stopped"
    assert [child for child in psutil.Process().children(recursive=True) if "VLLM" in " ".join(child.cmdline())] == []
    assert engine.state == "unloaded"
    await engine.close()


async def test_tensor_parallel_over_three_processes_on_the_cpu(stand_in: Path, tmp_path: Path) -> None:
    launch = OfflineLaunch(str(stand_in), tmp_path / "log", max_model_len=512, tensor_parallel_size=3)
    engine = OfflineEngine(launch)
    told: list[Event] = []
    await engine.load(told.append)
    try:
        names = sorted(" ".join(child.cmdline()).split()[0] for child in psutil.Process().children(recursive=True))
        assert [name for name in names if "Worker" in name] == ["VLLM::Worker_TP0", "VLLM::Worker_TP1", "VLLM::Worker_TP2"]
        phases = [event.name for event in told if isinstance(event, Phase)]
        assert phases.count("batch.ready") == 1 and phases.index("server.loading_weights") < phases.index("server.kv_cache")
        events: list[Event] = []
        await engine.generate(["Hello", "你好"], Sampling(temperature=0.0, max_tokens=4), False, events.append)
        rows = [event for event in events if isinstance(event, RowFinished)]
        assert sorted(row.index for row in rows) == [0, 1]
        assert all(row.error is None and 1 <= row.completion_tokens <= 4 for row in rows)
    finally:
        await engine.close()
    assert [child for child in psutil.Process().children(recursive=True) if "VLLM" in " ".join(child.cmdline())] == []


@pytest.fixture
def without_weights(stand_in: Path, tmp_path: Path) -> Path:
    """The stand-in's folder, but for its weights."""
    folder = tmp_path / "model"
    folder.mkdir()
    for file in stand_in.iterdir():
        if file.suffix != ".safetensors":
            folder.joinpath(file.name).symlink_to(file)
    return folder


async def test_a_folder_that_vllm_cannot_load_says_why_and_leaves_nothing(without_weights: Path, tmp_path: Path) -> None:
    engine = OfflineEngine(OfflineLaunch(str(without_weights), tmp_path / "log", max_model_len=512))
    results = await asyncio.gather(*(engine.load(lambda event: None) for _ in range(2)), return_exceptions=True)
    for result in results:
        assert isinstance(result, Failure) and result.code == "batch.load_failed"
        assert "Cannot find any model weights" in result.params["reason"]
    assert engine.state == "failed" and engine.failure is not None and engine.failure.code == "batch.load_failed"
    assert [child for child in psutil.Process().children(recursive=True) if "VLLM" in " ".join(child.cmdline())] == []
    await engine.close()


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"model": "/no/such/folder"}, "model.path_missing"),
        ({"cpu_kv_cache_gb": 100_000}, "batch.too_little_memory"),
        ({"vllm_args": "--max-num-seqs many"}, "batch.bad_vllm_args"),
    ],
)
async def test_what_cannot_work_is_said_before_anything_is_started(
    stand_in: Path, tmp_path: Path, change: dict[str, object], code: str
) -> None:
    arguments = {"model": str(stand_in), "log": tmp_path / "log", **change}
    engine = OfflineEngine(OfflineLaunch(**arguments))  # type: ignore[arg-type]
    with pytest.raises(Failure) as failed:
        await engine.load(lambda event: None)
    assert failed.value.code == code and engine.state == "failed"
    with pytest.raises(Failure) as again:
        await engine.load(lambda event: None)
    assert again.value.code == code
    await engine.close()


async def test_what_to_load_may_be_found_out_when_it_is_needed(tmp_path: Path) -> None:
    asked: list[None] = []

    async def prepare(tell: object) -> OfflineLaunch:
        assert callable(tell)
        asked.append(None)
        tell(Phase("rehearsal.building"))
        if len(asked) == 1:
            raise Failure("rehearsal.build", reason="disk full")
        return OfflineLaunch(str(tmp_path), tmp_path / "log")

    engine = OfflineEngine(prepare)
    told: list[Event] = []
    with pytest.raises(Failure) as first:
        await engine.load(told.append)
    assert first.value.code == "rehearsal.build" and engine.failure is first.value and told == [Phase("rehearsal.building")]
    with pytest.raises(Failure) as second:
        await engine.load(told.append)
    assert second.value.code == "batch.no_model"
    await engine.close()
