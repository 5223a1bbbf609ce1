"""System packages, where this may install them: as root on Debian or Ubuntu."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path


def usable() -> bool:
    return hasattr(os, "geteuid") and os.geteuid() == 0 and shutil.which("apt-get") is not None


def install(packages: list[str], log: Path) -> bool:
    """Whether apt-get installed them all. Its output goes to the log. Waits up to two minutes for another apt."""
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    patient = ["-o", "DPkg::Lock::Timeout=120", "-o", "Acquire::Retries=3"]
    commands = (
        ["apt-get", *patient, "update"],
        ["apt-get", *patient, "install", "-y", "--no-install-recommends", *packages],
    )
    done = False
    with log.open("a", encoding="utf-8") as record:
        for command in commands:  # a failed update may leave lists that are good enough
            print("$", *command, file=record, flush=True)
            ran = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, stdout=record, stderr=record, check=False)
            done = ran.returncode == 0
    return done
