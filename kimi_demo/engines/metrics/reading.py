"""One reading of vLLM's /metrics. Names as in 0.32 (v1/metrics/loggers.py), and before where they have changed."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import isfinite
from types import MappingProxyType
from typing import Any

from kimi_demo.dialect.failure import Failure

_LARGEST = 8 * 2**20

_GAUGES = {
    "running": ("vllm:num_requests_running",),
    "waiting": ("vllm:num_requests_waiting",),
    "cache_use": ("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc"),
}
_COUNTERS = {
    "prompt_tokens": ("vllm:prompt_tokens_total",),
    "generation_tokens": ("vllm:generation_tokens_total",),
    "prefix_queries": ("vllm:prefix_cache_queries_total", "vllm:gpu_prefix_cache_queries_total"),
    "prefix_hits": ("vllm:prefix_cache_hits_total", "vllm:gpu_prefix_cache_hits_total"),
    "preemptions": ("vllm:num_preemptions_total",),
}
_HISTOGRAMS = {
    "first_token": ("vllm:time_to_first_token_seconds",),
    "between_tokens": ("vllm:inter_token_latency_seconds", "vllm:time_per_output_token_seconds"),
    "whole": ("vllm:e2e_request_latency_seconds",),
    "queue": ("vllm:request_queue_time_seconds",),
}
_FINISHED = "vllm:request_success_total"

Buckets = Mapping[float, float]
"""Upper bound in seconds (the last is infinite) → how many observations were at most that, since the server started."""


@dataclass(frozen=True)
class Reading:
    """Sums over all engines of the server; cache_use is their mean, 0 to 1. None: the server does not say.

    Tokens, queries, hits, preemptions and finished (by reason) count since the server's start. Latencies in seconds.
    """

    running: float | None = None
    waiting: float | None = None
    cache_use: float | None = None
    prompt_tokens: float | None = None
    generation_tokens: float | None = None
    prefix_queries: float | None = None
    prefix_hits: float | None = None
    preemptions: float | None = None
    finished: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    first_token: Buckets = field(default_factory=lambda: MappingProxyType({}))
    between_tokens: Buckets = field(default_factory=lambda: MappingProxyType({}))
    whole: Buckets = field(default_factory=lambda: MappingProxyType({}))
    queue: Buckets = field(default_factory=lambda: MappingProxyType({}))


def read_metrics(text: str) -> Reading:
    """Raises Failure("metrics.unreadable", problem=…) for what is no exposition of Prometheus metrics."""
    from prometheus_client.parser import text_string_to_metric_families

    values: dict[str, list[float]] = {}
    finished: dict[str, float] = {}
    buckets: dict[str, dict[float, float]] = {}
    try:
        if len(text) > _LARGEST:
            raise ValueError("it is too long")
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                if not isfinite(sample.value):
                    continue
                if sample.name == _FINISHED:
                    reason = sample.labels.get("finished_reason", "?")
                    finished[reason] = finished.get(reason, 0.0) + sample.value
                elif sample.name.endswith("_bucket") and "le" in sample.labels:
                    counts = buckets.setdefault(sample.name.removesuffix("_bucket"), {})
                    bound = float(sample.labels["le"])
                    counts[bound] = counts.get(bound, 0.0) + sample.value
                else:
                    values.setdefault(sample.name, []).append(sample.value)
    except (ValueError, KeyError, IndexError, AttributeError) as error:
        raise Failure("metrics.unreadable", problem=str(error)[:200]) from error
    sums = {name: sum(found) for name, found in values.items()}
    cache = next((values[name] for name in _GAUGES["cache_use"] if name in values), None)
    found: dict[str, Any] = {name: _first(sums, names) for name, names in _COUNTERS.items()}
    for name, names in _HISTOGRAMS.items():
        counts = next((buckets[one] for one in names if one in buckets), {})
        found[name] = MappingProxyType(dict(sorted(counts.items())))
    return Reading(
        running=_first(sums, _GAUGES["running"]),
        waiting=_first(sums, _GAUGES["waiting"]),
        cache_use=sum(cache) / len(cache) if cache else None,
        finished=MappingProxyType(finished),
        **found,
    )


def _first(sums: dict[str, float], names: tuple[str, ...]) -> float | None:
    return next((sums[name] for name in names if name in sums), None)
