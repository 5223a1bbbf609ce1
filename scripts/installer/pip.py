"""Runs `pip install`, shows how far it is, and says in a sentence why it failed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TextIO

from scripts.installer.plan import Step
from scripts.installer.stop import Stop


class PipFailed(Exception):
    """pip's output, as lines."""

    def __init__(self, lines: list[str]) -> None:
        super().__init__("pip failed")
        self.lines = lines


def install(python: Path, step: Step, log: Path, held: int, scratch: Path) -> None:
    """Do one step. held: the lock's file descriptor, which pip keeps open, so that a pip whose parent was killed still counts as
    an installation in progress. scratch: where downloads lie meanwhile. Raises Stop."""
    try:
        _run(python, step.arguments, log, held, scratch, step.title)
    except PipFailed as failed:
        if not step.instead or no_room(failed.lines):
            raise Stop(sentence(failed.lines, log)) from None
        # Whatever else it was: a package that is not there also shows as conflicting constraints, or as a mirror's refusal.
        try:
            _run(python, step.instead, log, held, scratch, step.title)
        except PipFailed as again:
            raise Stop(sentence(again.lines, log, step.instead_from)) from None


def _run(python: Path, arguments: tuple[str, ...], log: Path, held: int, scratch: Path, title: str) -> None:
    scratch.mkdir(parents=True, exist_ok=True)
    command = [str(python), "-m", "pip", "install", "--progress-bar", "off", *arguments]
    lines: list[str] = []
    with log.open("a", encoding="utf-8") as record:
        print("$", *command, file=record, flush=True)
        inherited = {} if os.name == "nt" else {"pass_fds": (held,)}
        with subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            env=environment(scratch),
            **inherited,  # type: ignore[call-overload]
        ) as process:
            progress = Progress(title, sys.stderr)
            for line in process.stdout:
                record.write(line)
                lines.append(line.rstrip())
                progress.see(line)
            progress.clear()
    if process.returncode != 0:
        raise PipFailed(lines)


def environment(scratch: Path) -> dict[str, str]:
    """pip's variables: the person's own (index, proxy, certificates), less those that would install elsewhere or ask questions."""
    lost = {"PYTHONHOME", "PYTHONPATH", "PIP_TARGET", "PIP_PREFIX", "PIP_ROOT", "PIP_REQUIRE_HASHES", "PIP_REQUIREMENT", "PIP_NO_BINARY"}
    own = {name: value for name, value in os.environ.items() if name not in lost}
    own.update(PIP_USER="0", PIP_NO_INPUT="1", PIP_DISABLE_PIP_VERSION_CHECK="1", PIP_ROOT_USER_ACTION="ignore", TMPDIR=str(scratch))
    return own


class Progress:
    """One line on a terminal that counts what pip does; silent elsewhere."""

    def __init__(self, title: str, out: TextIO) -> None:
        self._title, self._out, self._count, self._live = title, out, 0, out.isatty()

    def see(self, line: str) -> None:
        words = line.split()
        if not self._live or not words:
            return
        if words[0] == "Collecting":
            self._count += 1
            self._show(f"{self._count}: {words[1]}")
        elif words[0] == "Installing":
            self._show("writing files")

    def clear(self) -> None:
        if self._live:
            self._out.write("\r\x1b[K")
            self._out.flush()

    def _show(self, text: str) -> None:
        self._out.write(f"\r\x1b[K  {self._title} … {text}"[:110])
        self._out.flush()


def no_room(lines: list[str]) -> bool:
    return any(mark in line for line in lines for mark in ("No space left on device", "Errno 28", "Disk quota exceeded"))


UNREACHABLE = (
    "NewConnectionError",
    "NameResolutionError",
    "Temporary failure in name resolution",
    "ConnectTimeoutError",
    "ReadTimeoutError",
    "Read timed out",
    "ProxyError",
    "Connection reset",
    "IncompleteRead",
    "Could not fetch URL",
)


def sentence(lines: list[str], log: Path, index: str = "The package index that pip is set up with") -> str:
    """Why pip failed and what to do, from its own output. index: where it looked. The log holds the whole of it."""
    text = "\n".join(lines)
    if no_room(lines):
        return f"The disk is full: make room and run this again; it goes on where it stopped. ({log})"
    if any(mark in text for mark in UNREACHABLE):
        return f"{index} cannot be reached: check the network or proxy and run this again; it goes on where it stopped. ({log})"
    if missing := re.search(r"No matching distribution found for (\S+)", text):
        return f"{index} does not have {missing[1]} for this Python and machine. ({log})"
    if "Permission denied" in text:
        return f"A file could not be written: .venv belongs to another user. Remove it and run this again. ({log})"
    last = next((line for line in reversed(lines) if line.startswith("ERROR")), lines[-1] if lines else "it printed nothing")
    return f"pip failed: {last} ({log})"
