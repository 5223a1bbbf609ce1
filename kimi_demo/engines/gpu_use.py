"""How busy the NVIDIA GPUs are, by NVML, through the driver's own `nvidia-smi` (which needs no library of ours)."""

import os
import shutil
import subprocess
from dataclasses import dataclass

_FIELDS = "index,uuid,name,memory.used,memory.total,utilization.gpu,temperature.gpu,power.draw"
_TIMEOUT_S = 5.0


@dataclass(frozen=True)
class GpuUse:
    """memory in bytes; load: share of time in which something ran, 0 to 1; temperature in °C; power in W; None: the GPU does not say."""

    index: int
    uuid: str
    name: str
    used: int
    total: int
    load: float | None
    temperature: float | None
    power: float | None


def gpu_use() -> list[GpuUse]:
    """Of the GPUs that a process started from here would see; [] without a driver. Takes 20 to 200 ms a GPU: not for the event loop."""
    smi = shutil.which("nvidia-smi")
    if smi is None:
        return []
    query = [smi, f"--query-gpu={_FIELDS}", "--format=csv,noheader,nounits"]
    try:
        answer = subprocess.run(query, capture_output=True, text=True, timeout=_TIMEOUT_S, check=True)
    except (OSError, subprocess.SubprocessError):
        return []
    return seen(read_use(answer.stdout), os.environ.get("CUDA_VISIBLE_DEVICES"))


def read_use(text: str) -> list[GpuUse]:
    """The rows of nvidia-smi's CSV; memory comes in MiB. Rows without memory (a GPU that fell off the bus) are left out."""
    found = []
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.split(",")]
        if len(cells) == 8 and all(cells[at].isdigit() for at in (0, 3, 4)):
            index, uuid, name, used, total, load, temperature, power = cells
            share = _number(load)
            found.append(
                GpuUse(
                    int(index),
                    uuid,
                    name,
                    int(used) * 2**20,
                    int(total) * 2**20,
                    None if share is None else share / 100,
                    _number(temperature),
                    _number(power),
                )
            )
    return found


def seen(everything: list[GpuUse], chosen: str | None) -> list[GpuUse]:
    """What CUDA_VISIBLE_DEVICES leaves, as `accelerators.visible` does."""
    if chosen is None:
        return everything
    left: list[GpuUse] = []
    for name in (part.strip() for part in chosen.split(",")):
        match = next((gpu for gpu in everything if name and (name == str(gpu.index) or gpu.uuid.startswith(name))), None)
        if match is None:
            break
        left.append(match)
    return left


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:  # "[N/A]", "[Not Supported]"
        return None
