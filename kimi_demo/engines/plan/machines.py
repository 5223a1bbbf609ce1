"""Machines to plan for: this one, or one from a list."""

from collections.abc import Sequence
from dataclasses import dataclass

from kimi_demo.engines.accelerators import Gpu

_MIB = 2**20


@dataclass(frozen=True)
class Machine:
    """`gpus` equal GPUs of `gpu_bytes` each, in `hosts` hosts. free: bytes free on the fullest GPU, None where unknown."""

    key: str
    name: str
    gpus: int
    gpu_bytes: int
    free: int | None = None
    hosts: int = 1


MACHINES: tuple[Machine, ...] = (
    # As nvidia-smi and rocm-smi report the memory, which is what vLLM takes its share of; MiB.
    Machine("8xh200", "8 × H200 (141 GB)", 8, 143_771 * _MIB),
    Machine("8xh100", "8 × H100 (80 GB)", 8, 81_559 * _MIB),
    Machine("8xh20", "8 × H20 (96 GB)", 8, 97_871 * _MIB),
    Machine("8xb200", "8 × B200 (180 GB)", 8, 183_359 * _MIB),
    Machine("4xgb200", "4 × GB200 (186 GB)", 4, 189_471 * _MIB),
    Machine("8xa100", "8 × A100 (80 GB)", 8, 81_920 * _MIB),
    Machine("8xrtxpro6000", "8 × RTX PRO 6000 (96 GB)", 8, 97_887 * _MIB),
    Machine("8xmi300x", "8 × MI300X (192 GB)", 8, 196_592 * _MIB),
    Machine("8xmi325x", "8 × MI325X (256 GB)", 8, 262_128 * _MIB),
    Machine("8xmi355x", "8 × MI355X (288 GB)", 8, 294_896 * _MIB),
    Machine("16xh100", "2 hosts of 8 × H100 (80 GB)", 16, 81_559 * _MIB, hosts=2),
    Machine("16xh200", "2 hosts of 8 × H200 (141 GB)", 16, 143_771 * _MIB, hosts=2),
)


def machine(key: str) -> Machine | None:
    """By its key, whatever the case; spaces and × are taken, too ("8 × H200")."""
    wanted = "".join(key.lower().replace("×", "x").split())
    return next((one for one in MACHINES if one.key == wanted), None)


def this_machine(gpus: Sequence[Gpu]) -> Machine | None:
    """The machine with these GPUs; None without any. Unequal ones count as the smallest: a model is spread evenly."""
    if not gpus:
        return None
    smallest = min(gpu.memory for gpu in gpus)
    return Machine("this", f"{len(gpus)} × {gpus[0].name}", len(gpus), smallest, min(gpu.free for gpu in gpus))
