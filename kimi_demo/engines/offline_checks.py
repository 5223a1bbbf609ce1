"""What can be said before a model is loaded, and what a failed load means in plain words."""

from collections.abc import Sequence
from pathlib import Path

from kimi_demo.dialect.failure import Failure
from kimi_demo.engines.accelerators import Gpu
from kimi_demo.engines.offline_launch import OfflineLaunch
from kimi_demo.engines.offline_log import root_cause

GIB = 2**30

RANK_OVERHEAD = int(0.9 * GIB)
"""Memory of one CPU worker beside weights and KV cache. Measured: 2.1 GB resident with 0.26 GB of weights and 1 GiB of cache."""

CORE_OVERHEAD = int(0.7 * GIB)
"""Memory of the EngineCore process, as measured."""

_OUT_OF_MEMORY = ("out of memory", "OutOfMemoryError", "MemoryError", "Cannot allocate memory", "can't allocate memory")
_LESS_THAN_WANTED = "is less than desired GPU memory utilization"
_NO_ROOM_FOR_CONTEXT = ("No available memory for the cache blocks", "is larger than the available KV cache memory", "max seq len")
_MOST_OF_A_REASON = 300


def weights_size(folder: Path) -> int:
    """Bytes of the model's weight files: *.safetensors, or *.bin where there are none."""
    for pattern in ("*.safetensors", "*.bin"):
        sizes = [path.stat().st_size for path in folder.glob(pattern)]
        if sizes:
            return sum(sizes)
    return 0


def check(launch: OfflineLaunch, *, on_cpu: bool, free_memory: int, gpus: Sequence[Gpu]) -> None:
    """Raises the Failure that loading would end in, where that is certain before it is tried. free_memory: bytes, of the host.

    Failures: model.path_missing, batch.no_model, batch.too_little_memory, accelerators.too_few, accelerators.too_small.
    """
    folder = launch.folder
    if folder is None and Path(launch.model).is_absolute():
        raise Failure("model.path_missing", path=launch.model)
    if folder is not None and not (folder / "config.json").is_file():
        raise Failure("batch.no_model", path=folder)
    weights = weights_size(folder) if folder is not None else 0
    ranks = launch.tensor_parallel_size
    if on_cpu:
        needed = weights + CORE_OVERHEAD + ranks * (RANK_OVERHEAD + launch.cpu_kv_cache_gb * GIB)
        if needed > free_memory:
            raise Failure("batch.too_little_memory", needed=_gib(needed), free=_gib(free_memory))
        return
    if len(gpus) < ranks:
        raise Failure("accelerators.too_few", needed=ranks, found=len(gpus))
    smallest = min(gpu.memory for gpu in gpus[:ranks])
    share = weights // ranks
    if share > smallest * launch.gpu_memory_utilization:
        raise Failure("accelerators.too_small", needed=_gib(share), size=_gib(smallest))


def explain(error: BaseException, log: Sequence[str]) -> Failure:
    """Why a load ended, from what it raised and what vLLM's processes had written."""
    if isinstance(error, Failure):
        return error
    told = str(error)
    cause = root_cause(log) or f"{type(error).__name__}: {told}"
    # "Failed core proc(s): {'EngineCore': -9}": SIGKILL, which on Linux is the kernel's way out when memory is short.
    killed = "Failed core proc" in told and ": -9" in told
    if killed or any(mark in cause for mark in _OUT_OF_MEMORY) or _LESS_THAN_WANTED in cause:
        return Failure("batch.out_of_memory", reason=_short("killed by the system" if killed else cause))
    if any(mark in cause for mark in _NO_ROOM_FOR_CONTEXT):
        return Failure("batch.context_too_long", reason=_short(cause))
    return Failure("batch.load_failed", reason=_short(cause))


def _short(text: str) -> str:
    """One line that a page can show."""
    line = " ".join(text.split())
    return line if len(line) <= _MOST_OF_A_REASON else line[: _MOST_OF_A_REASON - 1] + "…"


def _gib(size: int) -> str:
    return f"{size / GIB:.1f}"
