"""What the machine has, and who holds it."""

import asyncio
from pathlib import Path

import psutil
import pytest

from kimi_demo.dialect.failure import Failure
from kimi_demo.engines.accelerators import Gpu, Lease, free_host_memory, gpus, read_smi, visible

GIB = 2**30
SMI = """\
0, NVIDIA H200, GPU-aaaa1111, 143771, 143000
1, NVIDIA H200, GPU-bbbb2222, 143771, 1024
2, NVIDIA H200, GPU-cccc3333, [N/A], [N/A]
"""


def test_nvidia_smi_is_read_in_bytes_and_rows_without_numbers_are_left_out() -> None:
    first, second = read_smi(SMI)
    assert first == Gpu(0, "NVIDIA H200", "GPU-aaaa1111", 143771 * 2**20, 143000 * 2**20)
    assert (second.index, second.free) == (1, GIB)
    assert read_smi("") == []


@pytest.mark.parametrize(
    ("chosen", "left"),
    [(None, [0, 1]), ("1,0", [1, 0]), ("1", [1]), ("GPU-bbbb", [1]), ("", []), ("-1", []), ("0,7,1", [0]), (" 0 , 1", [0, 1])],
)
def test_cuda_visible_devices_is_followed(chosen: str | None, left: list[int]) -> None:
    assert [gpu.index for gpu in visible(read_smi(SMI), chosen)] == left


def test_without_nvidia_smi_there_are_no_gpus(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert gpus() == []


def test_nvidia_smi_is_asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    smi = tmp_path / "nvidia-smi"
    smi.write_text("#!/bin/sh\nprintf '0, NVIDIA L4, GPU-1, 23034, 22000\\n1, NVIDIA L4, GPU-2, 23034, 22000\\n'\n")
    smi.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    assert [gpu.uuid for gpu in gpus()] == ["GPU-2"]
    smi.write_text("#!/bin/sh\necho 'NVIDIA-SMI has failed'\nexit 9\n")
    assert gpus() == []


def test_free_memory_is_the_machines_without_a_limit(tmp_path: Path) -> None:
    (tmp_path / "memory.max").write_text("max\n")
    (tmp_path / "memory.current").write_text("1000\n")
    there = psutil.virtual_memory()
    assert 0 < free_host_memory(tmp_path) <= there.total
    assert free_host_memory(tmp_path / "nowhere") == pytest.approx(there.available, rel=0.5)


def test_a_containers_limit_counts_and_its_file_cache_is_free(tmp_path: Path) -> None:
    (tmp_path / "memory.max").write_text(f"{300 * 2**20}\n")
    (tmp_path / "memory.current").write_text(f"{250 * 2**20}\n")
    (tmp_path / "memory.stat").write_text(f"anon 1\ninactive_file {20 * 2**20}\n")
    assert free_host_memory(tmp_path) == 70 * 2**20


def test_the_older_kind_of_limit_counts_too(tmp_path: Path) -> None:
    folder = tmp_path / "memory"
    folder.mkdir()
    (folder / "memory.limit_in_bytes").write_text(f"{300 * 2**20}\n")
    (folder / "memory.usage_in_bytes").write_text(f"{310 * 2**20}\n")
    (folder / "memory.stat").write_text("total_inactive_file 0\n")
    assert free_host_memory(tmp_path) == 0


class Engine:
    """Something that can be stopped."""

    def __init__(self, error: Exception | None = None) -> None:
        self.stopped = 0
        self._error = error

    async def stop(self) -> None:
        await asyncio.sleep(0)
        self.stopped += 1
        if self._error is not None:
            raise self._error


async def test_the_second_engine_is_told_who_holds_the_gpus() -> None:
    lease, chat, batch = Lease(), Engine(), Engine()
    await lease.acquire("chat", chat.stop)
    with pytest.raises(Failure) as held:
        await lease.acquire("batch", batch.stop)
    assert (held.value.code, held.value.params) == ("accelerators.held", {"holder": "chat"})
    assert lease.holders == {"chat"} and chat.stopped == 0


async def test_a_confirmed_takeover_stops_the_holder_first() -> None:
    lease, chat, batch = Lease(), Engine(), Engine()
    await lease.acquire("chat", chat.stop)
    await lease.acquire("batch", batch.stop, takeover=True)
    assert (chat.stopped, batch.stopped) == (1, 0) and lease.holders == {"batch"}


async def test_a_holder_that_cannot_be_stopped_keeps_the_gpus() -> None:
    lease, chat, batch = Lease(), Engine(RuntimeError("stuck")), Engine()
    await lease.acquire("chat", chat.stop)
    with pytest.raises(RuntimeError, match="stuck"):
        await lease.acquire("batch", batch.stop, takeover=True)
    assert lease.holders == {"chat"}


async def test_of_two_takeovers_at_once_one_ends_up_with_the_gpus() -> None:
    lease, chat, batch = Lease(), Engine(), Engine()
    await asyncio.gather(lease.acquire("chat", chat.stop, takeover=True), lease.acquire("batch", batch.stop, takeover=True))
    assert lease.holders == {"batch"} and (chat.stopped, batch.stopped) == (1, 0)


async def test_released_gpus_are_free_and_asking_twice_is_no_conflict() -> None:
    lease, chat, batch = Lease(), Engine(), Engine()
    await lease.acquire("chat", chat.stop)
    await lease.acquire("chat", chat.stop)
    lease.release("chat")
    lease.release("chat")
    await lease.acquire("batch", batch.stop)
    assert lease.holders == {"batch"} and chat.stopped == 0


async def test_both_hold_a_shared_lease() -> None:
    lease, chat, batch = Lease(shared=True), Engine(), Engine()
    await lease.acquire("chat", chat.stop)
    await lease.acquire("batch", batch.stop)
    assert lease.holders == {"chat", "batch"} and chat.stopped == 0
