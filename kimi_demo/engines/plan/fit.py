"""The verdict: does the model fit, and what is left for requests."""

from dataclasses import dataclass, replace

from kimi_demo.dialect.failure import Failure
from kimi_demo.engines.offline_checks import CORE_OVERHEAD, RANK_OVERHEAD
from kimi_demo.engines.plan.cache import CacheRoom, bytes_per_token, room
from kimi_demo.engines.plan.layout import Layout
from kimi_demo.engines.plan.machines import Machine
from kimi_demo.engines.plan.memory import API_OVERHEAD, GIB, Overhead, overhead
from kimi_demo.engines.plan.remark import Remark
from kimi_demo.engines.plan.shape import ModelShape
from kimi_demo.engines.plan.weights import bytes_per_gpu

GB = 10**9
CPU = "cpu"
"""The key of the machine that `plan_on_cpu` plans for."""

_CPU_BLOCK, _CPU_LATENT_BLOCK = 128, 16
"""Tokens of a cache block on a CPU (0.32, platforms/cpu.py)."""


@dataclass(frozen=True)
class Plan:
    """Bytes on the fullest GPU. budget: what vLLM takes of it; left: for the cache (negative: that much is missing).
    On a CPU: bytes of a rank; its share of the free memory; the cache that it was given.

    refusal: why it does not fit, None where it does. One replica's cache; `replicas` of them.
    """

    shape: ModelShape
    layout: Layout
    machine: Machine
    weights: int
    overhead: Overhead
    budget: int
    left: int
    kv_bytes_per_token: int
    cache: CacheRoom
    refusal: Failure | None
    remarks: tuple[Remark, ...] = ()

    @property
    def fits(self) -> bool:
        return self.refusal is None

    @property
    def replicas(self) -> int:
        return self.layout.data


def plan(shape: ModelShape, layout: Layout, machine: Machine, on_disk: int | None = None) -> Plan:
    """on_disk: bytes of the model's weight files, where known."""
    unable = unable_to_split(shape, layout, machine)
    weights = bytes_per_gpu(shape, layout, on_disk)
    beside = overhead(shape, layout, machine.gpu_bytes)
    budget = int(machine.gpu_bytes * layout.utilization)
    left = budget - weights - beside.total
    cache = room(shape, layout, left)
    refusal = unable or _no_room(shape, layout, machine, weights, beside, budget, cache)
    return Plan(
        shape=shape,
        layout=layout,
        machine=machine,
        weights=weights,
        overhead=beside,
        budget=budget,
        left=left,
        kv_bytes_per_token=bytes_per_token(shape, layout),
        cache=cache,
        refusal=refusal,
        remarks=tuple(_remarks(shape, layout, machine)),
    )


def plan_on_cpu(shape: ModelShape, layout: Layout, free_memory: int, cache_gib: int, on_disk: int | None = None) -> Plan:
    """On a CPU the cache is given (VLLM_CPU_KVCACHE_SPACE, GiB a rank), and the question is whether memory holds everything.

    free_memory: bytes of the host; its ranks share it. cache_gib: GiB. The overheads of the processes were measured (`offline_checks`).
    """
    ranks = layout.gpus
    shared = (API_OVERHEAD + CORE_OVERHEAD * layout.data) // ranks
    beside = Overhead(activations=0, graphs=0, runtime=RANK_OVERHEAD + shared)
    machine = Machine(CPU, "CPU", ranks, free_memory // ranks)
    weights = bytes_per_gpu(shape, layout, on_disk)
    layout = replace(layout, block=_CPU_LATENT_BLOCK if shape.latent is not None else _CPU_BLOCK)
    cache = room(shape, layout, cache_gib * GIB)
    refusal = unable_to_split(shape, layout, machine)
    if refusal is None and weights + beside.total + cache_gib * GIB > machine.gpu_bytes:
        needed = ranks * (weights + beside.total + cache_gib * GIB)
        refusal = Failure("plan.host_memory", needed=_gb(needed), free=_gb(free_memory))
    if refusal is None and cache.concurrency < 1:
        refusal = Failure("plan.context_too_long", asked=layout.context, tokens=cache.tokens, left=_gb(cache_gib * GIB))
    return Plan(
        shape=shape,
        layout=layout,
        machine=machine,
        weights=weights,
        overhead=beside,
        budget=machine.gpu_bytes,
        left=cache_gib * GIB,
        kv_bytes_per_token=bytes_per_token(shape, layout),
        cache=cache,
        refusal=refusal,
        remarks=tuple(_remarks(shape, layout, machine)),
    )


def unable_to_split(shape: ModelShape, layout: Layout, machine: Machine) -> Failure | None:
    """What vLLM refuses whatever the memory (0.32, config/model.py `verify_with_parallel_config`, config/parallel.py, layers/linear.py)."""
    if layout.gpus > machine.gpus:
        return Failure("plan.too_few_gpus", needed=layout.gpus, found=machine.gpus)
    if shape.heads % layout.tensor:
        return Failure("plan.heads", heads=shape.heads, size=layout.tensor)
    if shape.latent is None and shape.kv_heads % layout.tensor and layout.tensor % shape.kv_heads:
        return Failure("plan.kv_heads", heads=shape.kv_heads, size=layout.tensor)
    if layout.pipeline > shape.layers:
        return Failure("plan.stages", layers=shape.layers, size=layout.pipeline)
    if shape.experts is not None and shape.experts.inner % layout.tensor:
        return Failure("plan.experts", inner=shape.experts.inner, size=layout.tensor)
    if layout.decode_context > 1:
        if layout.tensor % layout.decode_context:
            return Failure("plan.decode_context", size=layout.decode_context, tensor=layout.tensor)
        if shape.latent is None and layout.decode_context * shape.kv_heads > layout.tensor:
            return Failure("plan.decode_context_heads", size=layout.decode_context, tensor=layout.tensor, heads=shape.kv_heads)
    if shape.context is not None and layout.context > shape.context:
        return Failure("plan.context_beyond_model", asked=layout.context, most=shape.context)
    return None


def _no_room(
    shape: ModelShape, layout: Layout, machine: Machine, weights: int, beside: Overhead, budget: int, cache: CacheRoom
) -> Failure | None:
    told = {"weights": _gb(weights), "budget": _gb(budget), "size": _gb(machine.gpu_bytes), "share": f"{layout.utilization:g}"}
    if weights > budget:
        return Failure("plan.weights_too_large", **told)
    if weights + beside.total >= budget or cache.tokens < 1:
        return Failure("plan.nothing_left", beside=_gb(beside.total), **told)
    if cache.concurrency < 1:
        return Failure("plan.context_too_long", asked=layout.context, tokens=cache.tokens, left=_gb(budget - weights - beside.total))
    if machine.free is not None and machine.free < budget:
        return Failure("plan.gpu_in_use", free=_gb(machine.free), budget=_gb(budget))
    return None


def _remarks(shape: ModelShape, layout: Layout, machine: Machine) -> list[Remark]:
    found = []
    if layout.gpus < machine.gpus:
        found.append(Remark("gpus_unused", {"used": str(layout.gpus), "found": str(machine.gpus)}))
    if shape.latent is None and layout.tensor > shape.kv_heads:
        found.append(Remark("kv_repeated", {"heads": str(shape.kv_heads), "size": str(layout.tensor)}))
    if shape.windowed:
        found.append(Remark("windowed", {"layers": str(shape.windowed)}))
    if shape.sparse:
        found.append(Remark("sparse", {}))
    if machine.hosts > 1 and layout.tensor > machine.gpus // machine.hosts:
        found.append(Remark("tensor_across_hosts", {"size": str(layout.tensor), "gpus": str(machine.gpus // machine.hosts)}))
    return found


def _gb(size: int) -> str:
    return f"{size / GB:.1f}"
