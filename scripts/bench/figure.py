"""A figure of the benchmark: its value, what it had to reach, and the raw numbers that it was made of. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal


@dataclass(frozen=True)
class Goal:
    """What a figure is to reach. limit: None where it is only reported; at: whether that is the least or the most it may be."""

    what: str
    unit: str
    limit: float | None
    at: Literal["least", "most"] = "most"


GOALS: Mapping[str, Goal] = {
    **{f"throughput_{n}": Goal(f"tokens/s through the page, {n} streams at 50/s", "× raw", 0.98, "least") for n in (1, 16, 64)},
    "throughput_vllm": Goal("the same on real vLLM, one stream", "× raw", 0.98, "least"),
    "ttft_p50_ms": Goal("added time to first token, median, worst load", "ms", 30),
    "ttft_p95_ms": Goal("added time to first token, 95 %, worst load", "ms", 100),
    "cpu_1": Goal("CPU of the app per token, one stream", "× client", 3),
    "cpu_64": Goal("CPU of the app per token, 64 streams", "× client", 3),
    "cpu_100_messages": Goal("CPU of the app per token below 100 messages, one stream", "× client", None),
    "bytes_1k": Goal("bytes per token to the browser at 1,000 tokens", "× upstream", 3),
    "bytes_10k": Goal("the same at 10,000", "× upstream", 3),
    "bytes_50k": Goal("the same at 50,000", "× upstream", 3),
    "bytes_growth": Goal("bytes per token at 50,000 against 1,000", "×", 1.5),
    "browser_1k": Goal("main thread per token at 1,000 tokens (the measure of the next three)", "ms", None),
    "browser_10k": Goal("the same at 10,000", "× 1k", 1.5),
    "browser_50k": Goal("the same at 50,000", "× 1k", 1.5),
    "browser_100_messages": Goal("the same at 1,000 below 100 messages", "× 1k", 1.5),
    "floor_ratio": Goal("main-thread CPU, 2,000 tokens at 200/s below 20 messages", "× bare page", 2.0),
    "lag_ms": Goal("same run: last token sent to seen", "ms", 200),
    "freeze_ms": Goal("same run: longest time without new text", "ms", 200),
    "longest_block_ms": Goal("same run: longest block of the main thread", "ms", 100),
    "enter_to_first_ms": Goal("Enter to the first token seen", "ms", 100),
    "stop_ms": Goal("Stop to upstream closed", "ms", 300),
    "stop_prefill_ms": Goal("the same before the first token", "ms", 300),
    "batch_ratio": Goal("batch wall time, 64 rows on the CPU", "× LLM.chat", 1.10),
    "batch_ratio_gpu": Goal("batch wall time, 1,000 rows on a GPU", "× LLM.chat", 1.03),
    "start_s": Goal("python app.py to its first byte", "s", 5),
    "interactive_s": Goal("from there to a page that takes text", "s", 3),
    "memory_200_streams_mb": Goal("memory of the app with 200 streams", "MB", None),
    "memory_10k_runs_mb": Goal("memory of the app after 10,000 runs", "MB", None),
}


@dataclass(frozen=True)
class Figure:
    """value: None where it could not be measured, and then `not_run` says why. raw: what it was made of, in the units of its keys."""

    key: str
    value: float | None
    raw: Mapping[str, Any]
    not_run: str | None = None

    @property
    def ok(self) -> bool | None:
        """Whether the goal is reached; None where there is none, or no value."""
        goal = GOALS[self.key]
        if self.value is None or goal.limit is None:
            return None
        return self.value >= goal.limit if goal.at == "least" else self.value <= goal.limit

    def as_json(self) -> dict[str, Any]:
        goal = GOALS[self.key]
        told = {"value": self.value, "unit": goal.unit, "limit": goal.limit, "limit_is": goal.at, "ok": self.ok, "raw": dict(self.raw)}
        return told | ({"not_run": self.not_run} if self.not_run else {})


def measured(key: str, value: float, **raw: Any) -> Figure:
    return Figure(key, round(value, 4), raw)


def not_run(key: str, reason: str) -> Figure:
    return Figure(key, None, {}, reason)
