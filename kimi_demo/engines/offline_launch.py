"""How the batch engine's `vllm.LLM` is made: its arguments and its environment, from the settings. No vllm import here."""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from kimi_demo.settings import Settings

_READY_TIMEOUT_S = 4 * 60 * 60
"""How long vLLM waits for its engine process. Its own 600 s are too few: Kimi K2.5 took 1 h 45 min from a network disk."""

_REHEARSAL_GPU_SHARE = 0.3
"""Share of a GPU for the stand-in unless a person sets another: it is small, and the chat server has its own beside it."""

_CPU_MAX_NUM_BATCHED_TOKENS = 4096
"""Tokens of one step; vLLM's own default for LLM on a CPU."""

CPU_MAX_NUM_SEQS = 32
"""Rows that compute at once on a CPU: more slow every row down without raising the sum."""


@dataclass(frozen=True)
class OfflineLaunch:
    """What is loaded, and how. named: a person chose the model, so its own code is trusted (Kimi's tokenizer is such code).

    tensor_parallel_size: GPUs (processes, on a CPU); max_model_len: tokens; cpu_kv_cache_gb: GiB per process, on a CPU only;
    vllm_args: more arguments as on vLLM's command line; log: the file that vLLM's own output goes to.
    """

    model: str
    log: Path
    named: bool = False
    model_source: Literal["huggingface", "modelscope"] = "huggingface"
    tensor_parallel_size: int = 1
    max_model_len: int = 8192
    gpu_memory_utilization: float = 0.92
    cpu_kv_cache_gb: int = 1
    vllm_args: str = ""

    @classmethod
    def from_settings(cls, settings: Settings, model: str) -> "OfflineLaunch":
        """model: the folder or hub id, as `ModelFolder.path` gives it."""
        share = settings.gpu_memory_utilization
        if settings.rehearsal and "gpu_memory_utilization" not in settings.model_fields_set:
            share = _REHEARSAL_GPU_SHARE
        return cls(
            model=model,
            log=settings.data.resolve() / "logs" / "batch-engine.log",
            named=not settings.rehearsal,
            model_source=settings.model_source,
            tensor_parallel_size=settings.tp,
            max_model_len=settings.max_model_len,
            gpu_memory_utilization=share,
            cpu_kv_cache_gb=settings.cpu_kv_cache_gb,
            vllm_args=settings.vllm_args,
        )

    @property
    def folder(self) -> Path | None:
        """The model's folder; None when the model is an id on a hub."""
        path = Path(self.model)
        return path if path.is_dir() else None


def llm_arguments(launch: OfflineLaunch, *, on_cpu: bool, log_config: Path) -> dict[str, Any]:
    """Keyword arguments of `vllm.LLM`, without those of `launch.vllm_args`."""
    arguments: dict[str, Any] = {
        "model": launch.model,
        "tensor_parallel_size": launch.tensor_parallel_size,
        "max_model_len": launch.max_model_len,
        "trust_remote_code": launch.named,
        "reasoning_parser": "kimi_k2",  # offline it parses nothing; it makes `thinking_token_budget` work
        "disable_log_stats": True,
        "log_config_file": str(log_config),
    }
    if on_cpu:
        arguments |= {
            "enforce_eager": True,
            "max_num_seqs": CPU_MAX_NUM_SEQS,
            # A seeded row whose prompt is read in parts kills vLLM 0.32 on a CPU: v1/worker/gpu_model_runner.py rewinds the row's
            # generator after each part, and torch answers "CPU Generator does not use offset". So a prompt is read in one step,
            # which has room for the longest of them beside a token of each row that is writing.
            "enable_chunked_prefill": False,
            "max_num_batched_tokens": max(_CPU_MAX_NUM_BATCHED_TOKENS, launch.max_model_len + CPU_MAX_NUM_SEQS),
        }
    else:
        arguments["gpu_memory_utilization"] = launch.gpu_memory_utilization
    return arguments


def environment(launch: OfflineLaunch, *, on_cpu: bool, cores: Sequence[int]) -> dict[str, str]:
    """Variables that vLLM reads when it is imported or loads a model. cores: the CPU cores that this process may use."""
    variables = {
        "VLLM_NO_USAGE_STATS": "1",
        "VLLM_ENGINE_READY_TIMEOUT_S": str(_READY_TIMEOUT_S),
        # Forking a process that has threads (the page's, by then) can deadlock the child.
        "VLLM_WORKER_MULTIPROC_METHOD": "spawn",
    }
    if launch.folder is not None:
        variables["HF_HUB_OFFLINE"] = "1"
    elif launch.model_source == "modelscope":
        # Read when vllm is imported; set later, half of vLLM would still ask Hugging Face.
        variables["VLLM_USE_MODELSCOPE"] = "1"
    if on_cpu:
        variables["VLLM_CPU_KVCACHE_SPACE"] = str(launch.cpu_kv_cache_gb)
        if launch.tensor_parallel_size > 1:
            variables["VLLM_CPU_OMP_THREADS_BIND"] = bind_threads(cores, launch.tensor_parallel_size)
        elif len(cores) == 2:
            # vLLM leaves one core free and puts every engine on the first: beside the chat server, both would starve on it.
            variables["VLLM_CPU_OMP_THREADS_BIND"] = str(cores[1])
    return variables


def bind_threads(cores: Sequence[int], ranks: int) -> str:
    """VLLM_CPU_OMP_THREADS_BIND: the cores of each rank, "0,1|2,3". With fewer cores than ranks, neighbours share one.

    vLLM's automatic binding wants a NUMA node per rank and refuses to start on a machine with fewer.
    """
    shares = [cores[rank * len(cores) // ranks : (rank + 1) * len(cores) // ranks] for rank in range(ranks)]
    return "|".join(",".join(map(str, share or [cores[rank * len(cores) // ranks]])) for rank, share in enumerate(shares))


@contextmanager
def set_environment(variables: Mapping[str, str]) -> Iterator[None]:
    """os.environ with `variables`, put back afterwards so that other child processes do not inherit them. A person's own values win."""
    added = {name: value for name, value in variables.items() if name not in os.environ}
    os.environ.update(added)
    try:
        yield
    finally:
        for name in added:
            os.environ.pop(name, None)
