"""How the vLLM server is started: its command line and its environment, from the settings. Pure, no vllm import."""

import os
import secrets
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from kimi_demo.dialect.failure import Failure
from kimi_demo.engines.availability import find_vllm
from kimi_demo.engines.offline_launch import bind_threads
from kimi_demo.settings import Settings

_CPU_MAX_NUM_SEQS = 16
"""Replies that compute at once on a CPU; more only slow each other down."""

_REHEARSAL_GPU_SHARE = 0.3
"""Share of a GPU for the stand-in unless a person sets another: the batch engine has its own beside it, and it is small."""

_READY_TIMEOUT_S = 4 * 60 * 60
"""How long vLLM's API server waits for its engine. Its own 600 s are too few: Kimi K2.5 took 1 h 45 min from a network disk."""

_OURS = ("--host", "--port", "--uds", "--api-key", "--model", "--headless", "--ssl-keyfile", "--ssl-certfile")
"""Arguments that say where the server is and who may use it; the demo could not find it if they were changed under it."""


@dataclass(frozen=True)
class Launch:
    """What is served, and how.

    model: folder or hub id; named: a person chose it, so its own code is trusted (Kimi's tokenizer is such code);
    max_model_len: tokens; cpu_kv_cache_gb: GiB per rank, on a CPU only; gpu_memory_utilization: share of each GPU, on GPUs only;
    extra: more arguments, which come last and win; anyway: start even where the plan says that the GPUs cannot hold the model;
    port: 0 for a free one; logs: folder of the log file;
    cores: the CPU cores that may be used; api_key: what requests must carry ("": nothing), never part of the command line.
    """

    model: str
    logs: Path
    named: bool = False
    model_source: Literal["huggingface", "modelscope"] = "huggingface"
    tensor_parallel_size: int = 1
    max_model_len: int = 8192
    gpu_memory_utilization: float = 0.92
    cpu_kv_cache_gb: int = 1
    extra: tuple[str, ...] = ()
    on_cpu: bool = True
    cores: tuple[int, ...] = (0,)
    port: int = 0
    anyway: bool = False
    api_key: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)

    @classmethod
    def from_settings(cls, settings: Settings, model: str, port: int = 0) -> "Launch":
        """model: as `ModelFolder.path` gives it. Raises Failure("server.argument_ours", argument=…) for one that only the demo may set."""
        extra = tuple(shlex.split(settings.vllm_args))
        refuse_ours(extra)
        build = find_vllm()
        share = settings.gpu_memory_utilization
        if settings.rehearsal and "gpu_memory_utilization" not in settings.model_fields_set:
            share = _REHEARSAL_GPU_SHARE
        made = cls(
            model=model,
            logs=settings.data.resolve() / "logs",
            named=not settings.rehearsal,
            model_source=settings.model_source,
            tensor_parallel_size=settings.tp,
            max_model_len=settings.max_model_len,
            gpu_memory_utilization=share,
            cpu_kv_cache_gb=settings.cpu_kv_cache_gb,
            extra=extra,
            on_cpu=build is not None and build.on_cpu,
            cores=tuple(sorted(os.sched_getaffinity(0))) if hasattr(os, "sched_getaffinity") else (0,),
            port=port or settings.server_port or 0,
        )
        key = settings.server_api_key
        return made if key is None else replace(made, api_key=key.get_secret_value())

    @property
    def rehearsal(self) -> bool:
        return not self.named

    @property
    def folder(self) -> Path | None:
        """The model's folder; None when the model is an id on a hub."""
        return Path(self.model) if Path(self.model).is_dir() else None

    @property
    def looks_like_path(self) -> bool:
        """Whether `model` cannot be a hub id, which is "name" or "owner/name"."""
        return self.model.startswith((".", "/", "~")) or self.model.count("/") > 1

    def command(self) -> list[str]:
        """The command line. `vllm serve` would do the same, but that script does not start in the CPU build (0.32)."""
        line = [
            *(sys.executable, "-m", "vllm.entrypoints.openai.api_server"),
            *("--model", self.model),
            *("--host", "127.0.0.1"),
            *("--port", str(self.port)),
            *("--tensor-parallel-size", str(self.tensor_parallel_size)),
            *("--max-model-len", str(self.max_model_len)),
            *("--tool-call-parser", "kimi_k2"),
            *("--reasoning-parser", "kimi_k2"),
            # Without it, vLLM answers every request that carries tools with status 400.
            "--enable-auto-tool-choice",
        ]
        if self.named:
            line.append("--trust-remote-code")
        if self.on_cpu:
            # A prompt read in parts ends the whole engine when its request has a seed (0.32: "CPU Generator does not use offset").
            step = str(self.max_model_len + _CPU_MAX_NUM_SEQS)
            line += ["--enforce-eager", "--max-num-seqs", str(_CPU_MAX_NUM_SEQS)]
            line += ["--no-enable-chunked-prefill", "--max-num-batched-tokens", step]
        else:
            line += ["--gpu-memory-utilization", str(self.gpu_memory_utilization)]
        return [*line, *self.extra]

    def environment(self) -> dict[str, str]:
        """What the child's environment has beyond what it inherits."""
        variables = {
            "VLLM_NO_USAGE_STATS": "1",
            "VLLM_ENGINE_READY_TIMEOUT_S": str(_READY_TIMEOUT_S),
            "PYTHONUNBUFFERED": "1",  # so that a line of the log is there when it was written
            "NO_COLOR": "1",
        }
        if self.api_key:
            variables["VLLM_API_KEY"] = self.api_key
        if self.folder is not None:
            variables["HF_HUB_OFFLINE"] = "1"
        elif self.model_source == "modelscope":
            variables["VLLM_USE_MODELSCOPE"] = "1"
        if self.on_cpu:
            variables["VLLM_CPU_KVCACHE_SPACE"] = str(self.cpu_kv_cache_gb)
            if self.tensor_parallel_size > 1:
                variables["VLLM_CPU_OMP_THREADS_BIND"] = bind_threads(self.cores, self.tensor_parallel_size)
        return variables

    def child_environment(self, inherited: Mapping[str, str]) -> dict[str, str]:
        """The child's whole environment: `inherited` without this application's own variables (some are secrets), with the additions.

        A thread binding that a person set is kept: it knows the machine better.
        """
        added = self.environment()
        if inherited.get("VLLM_CPU_OMP_THREADS_BIND"):
            added.pop("VLLM_CPU_OMP_THREADS_BIND", None)
        kept = {name: value for name, value in inherited.items() if not name.upper().startswith("KIMI_DEMO_") and name != "VLLM_API_KEY"}
        return kept | added


def refuse_ours(extra: Sequence[str]) -> None:
    """Raises Failure("server.argument_ours", argument=…) for an argument that only the demo may set. vLLM takes "_" for "-" in names."""
    for argument in extra:
        name = argument.partition("=")[0].replace("_", "-")
        # argparse also takes the beginning of a name ("--por").
        if name.startswith("--") and (name in _OURS or (len(name) > 3 and any(ours.startswith(name) for ours in _OURS))):
            raise Failure("server.argument_ours", argument=argument.partition("=")[0])
