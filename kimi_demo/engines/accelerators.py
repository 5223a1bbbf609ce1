"""What this machine has to compute with, and which engine holds it now."""

import asyncio
import os
import shutil
import subprocess
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import psutil

from kimi_demo.dialect.failure import Failure

Holder = Literal["chat", "batch"]
"""Who can hold the GPUs: the chat server or the batch engine. Named for people by `accelerators.holder.<name>` in ui/texts."""

_SMI_TIMEOUT_S = 20.0
"""nvidia-smi took seconds on machines without the persistence daemon; longer means that the driver hangs."""


@dataclass(frozen=True)
class Gpu:
    """One NVIDIA GPU that a process started from here would see. Memory in bytes."""

    index: int
    name: str
    uuid: str
    memory: int
    free: int


def gpus() -> list[Gpu]:
    """The GPUs, as nvidia-smi lists them and CUDA_VISIBLE_DEVICES leaves them; empty where there is no (working) driver."""
    smi = shutil.which("nvidia-smi")
    if smi is None:
        return []
    query = [smi, "--query-gpu=index,name,uuid,memory.total,memory.free", "--format=csv,noheader,nounits"]
    try:
        answer = subprocess.run(query, capture_output=True, text=True, timeout=_SMI_TIMEOUT_S, check=True)
    except (OSError, subprocess.SubprocessError):
        return []
    return visible(read_smi(answer.stdout), os.environ.get("CUDA_VISIBLE_DEVICES"))


def read_smi(text: str) -> list[Gpu]:
    """The rows of nvidia-smi's CSV (index, name, uuid, MiB in all, MiB free); rows that it could not fill in are left out."""
    found = []
    for line in text.splitlines():
        fields = [field.strip() for field in line.split(",")]
        if len(fields) == 5 and all(fields[at].isdigit() for at in (0, 3, 4)):
            index, name, uuid, total, free = fields
            found.append(Gpu(int(index), name, uuid, int(total) * 2**20, int(free) * 2**20))
    return found


def visible(all_gpus: list[Gpu], chosen: str | None) -> list[Gpu]:
    """What CUDA_VISIBLE_DEVICES=`chosen` leaves: indices or (the beginnings of) UUIDs; CUDA stops at the first it does not know."""
    if chosen is None:
        return all_gpus
    left: list[Gpu] = []
    for name in (part.strip() for part in chosen.split(",")):
        match = next((gpu for gpu in all_gpus if name and (name == str(gpu.index) or gpu.uuid.startswith(name))), None)
        if match is None:
            break
        left.append(match)
    return left


def free_host_memory(cgroup: Path = Path("/sys/fs/cgroup")) -> int:
    """Bytes of memory that a new process could take: what the machine has free, or less where a container's limit is nearer."""
    free = int(psutil.virtual_memory().available)
    left = _left_in_cgroup(cgroup)
    return free if left is None else min(free, left)


def _left_in_cgroup(cgroup: Path) -> int | None:
    """Bytes left below the cgroup's limit (version 2, then 1); None without a limit. The file cache counts as free."""
    for limit, used, cache_name in (
        ("memory.max", "memory.current", "inactive_file"),
        ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes", "total_inactive_file"),
    ):
        try:
            left = int((cgroup / limit).read_text()) - int((cgroup / used).read_text())
            for line in (cgroup / limit).with_name("memory.stat").read_text().splitlines():
                name, _, value = line.partition(" ")
                if name == cache_name:
                    left += int(value)
            return max(left, 0)
        except (OSError, ValueError):  # no such file, or "max": no limit of this kind
            continue
    return None


class Lease:
    """Who computes on the GPUs now. The chat server and the batch engine each want every GPU, so one holds them at a time.

    shared: both fit (the stand-in on a CPU): everyone gets the lease.
    """

    def __init__(self, *, shared: bool = False) -> None:
        self.shared = shared
        self._holders: dict[Holder, Callable[[], Awaitable[None]]] = {}
        self._changing = asyncio.Lock()

    @property
    def holders(self) -> frozenset[Holder]:
        return frozenset(self._holders)

    async def acquire(self, who: Holder, stop: Callable[[], Awaitable[None]], *, takeover: bool = False) -> None:
        """Gives `who` the GPUs. stop: frees them again; called if another takes over, and `who` no longer holds them when it returns.

        Raises Failure("accelerators.held", holder=…) if another holds them and `takeover` was not confirmed. What the other's `stop`
        raises comes through, and then the other still holds them. Asking again for what one holds replaces `stop`.
        """
        async with self._changing:
            others = [holder for holder in self._holders if holder != who]
            if others and not self.shared:
                if not takeover:
                    raise Failure("accelerators.held", holder=others[0])
                for holder in others:
                    await self._holders[holder]()
                    self._holders.pop(holder, None)  # its stop may have called release() already
            self._holders[who] = stop

    def release(self, who: Holder) -> None:
        """`who` has freed the GPUs (or never had them: then nothing happens)."""
        self._holders.pop(who, None)
