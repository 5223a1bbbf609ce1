"""What vLLM's log and the driver say of a load, and what `plan` had said, side by side."""

import re
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from kimi_demo.dialect.events import Event, Phase
from kimi_demo.dialect.failure import Failure
from kimi_demo.engines.accelerators import free_host_memory, gpus
from kimi_demo.engines.gpu_use import gpu_use
from kimi_demo.engines.plan.fit import plan, plan_on_cpu
from kimi_demo.engines.plan.layout import Layout
from kimi_demo.engines.plan.machines import this_machine
from kimi_demo.engines.plan.model import find_model

_LOG = {
    "weights_gib": r"Model loading took ([\d.]+) GiB",
    "loading_s": r"Model loading took .* and ([\d.]+) seconds",
    "compile_s": r"torch\.compile took ([\d.]+) s",
    "cache_gib": r"Available KV cache memory: ([\d.]+) GiB",
    "cache_tokens": r"KV cache size: ([\d,]+) tokens",
    "concurrency": r"Maximum concurrency for [\d,]+ tokens per request: ([\d.]+)x",
    "graphs_gib": r"Graph capturing finished in .* took (-?[\d.]+) GiB",
    "graphs_s": r"Graph capturing finished in ([\d.]+) secs",
    "init_s": r"init engine \(.*\) took ([\d.]+) s",
}
_BACKEND = re.compile(r"Using (\S+ (?:attention|MLA|MoE|Fp8 MoE|WNA16 MoE)[^,.]*backend[^,.]{0,60}|\S*Marlin\S*[^,]{0,60})")


class Phases:
    """Takes events; `told` has the seconds that each phase took, in order, and the sum."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._seen: list[tuple[str, float]] = []

    def __call__(self, event: Event) -> None:
        if isinstance(event, Phase) and (not self._seen or self._seen[-1][0] != event.name):
            self._seen.append((event.name, time.monotonic()))

    @property
    def told(self) -> dict[str, Any]:
        end = time.monotonic()
        ends = [at for _, at in self._seen[1:]] + [end]
        each = [{"phase": name, "s": round(until - at, 1)} for (name, at), until in zip(self._seen, ends, strict=True)]
        return {"seconds": round(end - self._began, 1), "phases": each}


def of_log(lines: Iterable[str]) -> dict[str, Any]:
    """The figures that vLLM wrote at its start; what it did not write is left out."""
    text = "\n".join(lines)
    found: dict[str, Any] = {}
    for name, pattern in _LOG.items():
        if match := re.search(pattern, text):
            found[name] = float(match[1].replace(",", ""))
    found["backends"] = sorted({match.strip() for match in _BACKEND.findall(text)})[:8]
    return found


def gpu_memory() -> list[dict[str, Any]]:
    """By the driver: bytes used and in all, load, temperature and power of each GPU."""
    return [
        {"name": one.name, "used": one.used, "total": one.total, "load": one.load, "temperature": one.temperature, "power": one.power}
        for one in gpu_use()
    ]


def planned(model: str, layout: Layout, cache_gib: int) -> dict[str, Any]:
    """What `plan` says of it on this machine. cache_gib: of a CPU."""
    try:
        found = find_model(model)
        there = this_machine(gpus())
        if there is None:
            made = plan_on_cpu(found.shape, layout, free_host_memory(), cache_gib, found.on_disk)
        else:
            made = plan(found.shape, layout, there, found.on_disk)
    except Failure as failure:
        return {"failure": str(failure)}
    return {
        "weights_gib": made.weights / 2**30,
        "activations_gib": made.overhead.activations / 2**30,
        "graphs_gib": made.overhead.graphs / 2**30,
        "runtime_gib": made.overhead.runtime / 2**30,
        "cache_gib": made.left / 2**30,
        "cache_tokens": made.cache.tokens,
        "concurrency": made.cache.concurrency,
        "refusal": None if made.refusal is None else made.refusal.code,
    }


def read(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8", errors="replace").splitlines() if path.exists() else []
