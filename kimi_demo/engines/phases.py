"""What a line of vLLM's log says about its start. Pure; for the server's log and for the in-process engine's alike.

The texts are those of vLLM 0.32 (file names relative to the package); a line that no rule knows says nothing, so a newer vLLM
with other words costs phases, not the start.
"""

import re
from dataclasses import dataclass

from kimi_demo.dialect.events import Phase

READY = "server.ready"

ORDER = (
    "server.starting",
    "server.reading_model",
    "server.starting_engine",
    "server.downloading",
    "server.loading_weights",
    "server.profiling",
    "server.compiling",
    "server.kv_cache",
    "server.warming_up",
    "server.graphs",
    "server.opening",
    READY,
)
"""The phases, in the order in which a start goes through them (no start has all)."""

_BAR = r":?\s+\d+%.*?\|\s*(?P<done>\d+)/(?P<total>\d+) \["
"""The end of tqdm's bar: "  50% Completed | 1/2 [00:01<00:01, …" or "  50%|█████     | 10/20 [00:01<…"."""

_RULES: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (name, re.compile(pattern))
    for name, pattern in (
        # model_executor/model_loader/weight_utils.py: "Loading safetensors checkpoint shards", "Multi-thread loading shards", …
        ("server.loading_weights", r"[Ll]oading (?:\w+ )?(?:checkpoint )?shards" + _BAR),
        ("server.loading_weights", r"Starting to load model "),  # v1/worker/{cpu,gpu}_model_runner.py
        # huggingface_hub's and modelscope's snapshot_download
        ("server.downloading", r"(?:Fetching|Downloading) \d+ files" + _BAR),
        ("server.downloading", r"Downloading (?:Model from|\[)"),
        ("server.reading_model", r"Resolved architecture: "),  # config/model.py
        ("server.starting_engine", r"Initializing a V1 LLM engine "),  # v1/engine/core.py
        ("server.profiling", r"(?:Model loading took|Loading weights took) "),  # v1/worker/gpu_model_runner.py, default_loader.py
        ("server.compiling", r"Using cache directory: .* torch\.compile"),  # compilation/backends.py
        ("server.compiling", r"Dynamo bytecode transform time: |Compiling a graph for compile range "),
        ("server.compiling", r"Directly load the compiled graph\(s\) for compile range "),
        ("server.compiling", r"Warming up model for the compilation"),  # v1/worker/cpu_model_runner.py
        ("server.kv_cache", r"Available KV cache memory: "),  # v1/worker/gpu_worker.py
        ("server.kv_cache", r"(?:Explicitly|Auto) set \(.*\) GiB for KV cache"),  # v1/worker/cpu_worker.py
        ("server.kv_cache", r"\w+ KV cache size: [\d,]+ tokens"),  # v1/core/kv_cache_utils.py
        ("server.warming_up", r"Compile and warming up model for size "),  # v1/worker/gpu_worker.py
        # model_executor/warmup/
        ("server.warming_up", r"Warming up .*(?:attention|kernels|compile_units)|DeepGEMM warmup:|JIT kernel warmup "),
        ("server.graphs", r"Capturing CUDA graphs(?: \([^)]*\))?" + _BAR),  # v1/worker/gpu_model_runner.py
        ("server.opening", r"init engine \(profile, create kv cache, warmup model\) took "),  # v1/engine/core.py
        ("server.opening", r"Starting vLLM (?:API )?server"),  # entrypoints/…/entry.py
    )
)


def phase_of(line: str) -> Phase | None:
    """The phase that `line` tells of; done/total are weight files, downloaded files or graphs. None for most lines."""
    for name, pattern in _RULES:
        if match := pattern.search(line):
            counts = match.groupdict()
            if "done" in counts:
                return Phase(name, int(counts["done"]), int(counts["total"]))
            return Phase(name)
    return None


@dataclass
class Progress:
    """Keeps the phases of several processes (each rank writes its own lines) in order: a start never goes back."""

    at: int = -1
    last: Phase | None = None

    def step(self, phase: Phase) -> bool:
        """Whether `phase` is news: a later phase than the last, or the same one further on."""
        place = ORDER.index(phase.name)
        if place < self.at or phase == self.last:
            return False
        if place == self.at and self.last is not None and (phase.done or 0) <= (self.last.done or 0) and self.last.done is not None:
            return False
        self.at, self.last = place, phase
        return True
