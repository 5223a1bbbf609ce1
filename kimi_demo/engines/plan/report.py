"""A plan in figures for programs and tables: `plan --json` prints it, the page shows it."""

from math import ceil

from pydantic import BaseModel, ConfigDict

from kimi_demo.engines.plan.cache import average_bytes_per_token, curve
from kimi_demo.engines.plan.fit import CPU, GB, Plan


class Concurrency(BaseModel):
    """How many requests of `context` tokens, prompt and reply together, the cache holds at once."""

    model_config = ConfigDict(frozen=True)

    context: int
    requests: float


class NodeLine(BaseModel):
    """What to run on one of several hosts, in this order."""

    model_config = ConfigDict(frozen=True)

    host: str
    line: str


class PlanReport(BaseModel):
    """GB are 10⁹ bytes. reason: a sentence, why it fits or does not; reason_code: the failure's, None where it fits.

    kv_bytes_per_token_per_gpu: with decode context parallelism a GPU holds one token of so many, and this is the average.
    kv_cache_tokens, max_concurrency (requests of the full context): of all data parallel replicas together.
    """

    model_config = ConfigDict(frozen=True)

    fits: bool
    reason: str
    reason_code: str | None
    model: str
    machine: str
    gpus: int
    on_cpu: bool
    gpu_memory_gb: float
    tensor_parallel_size: int
    pipeline_parallel_size: int
    data_parallel_size: int
    decode_context_parallel_size: int
    max_model_len: int
    gpu_memory_utilization: float
    attention: str
    weights_gb_per_gpu: float
    activations_gb_per_gpu: float
    graphs_gb_per_gpu: float
    runtime_gb_per_gpu: float
    kv_cache_gb_per_gpu: float
    kv_bytes_per_token_per_gpu: int
    kv_cache_tokens: int
    max_concurrency: float
    concurrency_by_context: tuple[Concurrency, ...]
    warnings: tuple[str, ...]
    nodes: tuple[NodeLine, ...] = ()
    nodes_note: str = ""


def report(plan: Plan, model: str, reason: str, warnings: list[str]) -> PlanReport:
    """model: as a person named it; reason and warnings: in that person's language."""
    shape, layout = plan.shape, plan.layout
    points = curve(shape, layout, plan.left) if plan.fits else []
    return PlanReport(
        fits=plan.fits,
        reason=reason,
        reason_code=plan.refusal.code if plan.refusal is not None else None,
        model=model,
        machine=plan.machine.name,
        gpus=plan.machine.gpus,
        on_cpu=plan.machine.key == CPU,
        gpu_memory_gb=_gb(plan.machine.gpu_bytes),
        tensor_parallel_size=layout.tensor,
        pipeline_parallel_size=layout.pipeline,
        data_parallel_size=layout.data,
        decode_context_parallel_size=layout.decode_context,
        max_model_len=layout.context,
        gpu_memory_utilization=layout.utilization,
        attention=shape.attention,
        weights_gb_per_gpu=_gb(plan.weights),
        activations_gb_per_gpu=_gb(plan.overhead.activations),
        graphs_gb_per_gpu=_gb(plan.overhead.graphs),
        runtime_gb_per_gpu=_gb(plan.overhead.runtime),
        kv_cache_gb_per_gpu=max(0.0, _gb(plan.left)),
        kv_bytes_per_token_per_gpu=ceil(average_bytes_per_token(shape, layout)),
        kv_cache_tokens=plan.cache.tokens * layout.data if plan.fits else 0,
        max_concurrency=round(plan.cache.concurrency * layout.data, 2) if plan.fits else 0.0,
        concurrency_by_context=tuple(Concurrency(context=context, requests=round(requests, 2)) for context, requests in points),
        warnings=tuple(warnings),
    )


def _gb(size: int) -> float:
    return round(size / GB, 2)
