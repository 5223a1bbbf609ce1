"""The guardian: a small process of its own that ends the engines' processes when the application is gone, however it went.

A parent-death signal would not do: it fires when the *thread* that forked ends, and grandchildren do not inherit it.
Standard library only, so that the guardian starts in a few milliseconds and takes a few MB.
"""

import os
import select
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import FrameType

from kimi_demo.engines.processes import Kind, Watch, end, look_at

GRACE_S = 4.0
"""How long the watched may take after SIGTERM once the application is gone."""

_LOOK_S = 0.5
"""How often the guardian notes who belongs to the watched, so that it knows them when their parent is gone."""

_MOST_BUSY = 0.02
"""Looks are further apart where looking takes long (thousands of processes), so that they take at most this share of a core."""

_START = "import sys; sys.path.append(sys.argv[1]); from kimi_demo.engines.guardian import main; main(int(sys.argv[2]))"


class Guardian:
    """The application's end of it. One for the whole application, safe to use from any thread; the process starts when first needed.

    Should somebody end the guardian's process, the next call starts another that watches the same. On systems without /proc
    it does nothing (no local engine runs there).
    """

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._watched: set[tuple[Kind, int]] = set()
        self._lock = threading.Lock()

    @property
    def pid(self) -> int | None:
        """The guardian's process; None while there is none."""
        return self._process.pid if self._process is not None else None

    def watch(self, pid: int) -> None:
        """Ends process `pid` and everything below it when the application is gone."""
        self._tell("tree", pid)

    def watch_session(self, leader: int) -> None:
        """The same for the whole session that process `leader` leads (start_new_session=True), also after its leader's end."""
        self._tell("session", leader)

    def forget(self, pid: int) -> None:
        """`pid` is gone with all that belonged to it (or may outlive the application)."""
        with self._lock:
            self._watched = {(kind, watched) for kind, watched in self._watched if watched != pid}
            self._write(f"forget {pid}\n")

    def close(self) -> None:
        """Ends what is still watched and the guardian itself; returns when they are gone."""
        with self._lock:
            self._watched.clear()
            process, self._process = self._process, None
        if process is not None:
            assert process.stdin is not None
            process.stdin.close()
            process.wait()

    def _tell(self, kind: Kind, pid: int) -> None:
        if not os.path.isdir("/proc/self"):
            return
        with self._lock:
            self._watched.add((kind, pid))
            if self._process is None or self._process.poll() is not None or not self._write(f"{kind} {pid}\n"):
                self._start()

    def _start(self) -> None:
        root = str(Path(__file__).resolve().parents[2])
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _START, root, str(os.getpid())],
            stdin=subprocess.PIPE,
            start_new_session=True,  # so that Ctrl-C in the terminal, or its end, does not reach it
            bufsize=0,
            cwd="/",
        )
        for kind, pid in self._watched:
            self._write(f"{kind} {pid}\n")

    def _write(self, line: str) -> bool:
        if self._process is None or self._process.stdin is None:
            return False
        try:
            self._process.stdin.write(line.encode())
        except OSError:
            return False
        return True


def main(application: int) -> None:
    """The guardian's process. Reads "tree PID", "session PID", "forget PID", a line each; ends the watched at the end of input.

    A forked child of the application holds the other end of the input too, so the application's end is also seen by its being
    no longer the parent.
    """
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
        signal.signal(number, _ignore)
    watches: dict[int, Watch] = {}
    rest, pause, orphaned = b"", _LOOK_S, False
    while True:
        orphaned = orphaned or os.getppid() != application
        ready, _, _ = select.select([0], [], [], 0 if orphaned else pause)
        data = os.read(0, 65536) if ready else b""
        if not data and (ready or orphaned):
            break
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            _obey(line.decode(), watches)
        began = time.monotonic()
        if watches:
            look_at(watches.values())
        pause = max(_LOOK_S, (time.monotonic() - began) / _MOST_BUSY)
    end(lambda: look_at(watches.values()), GRACE_S)


def _obey(line: str, watches: dict[int, Watch]) -> None:
    command, pid = line.split()
    if command == "forget":
        watches.pop(int(pid), None)
    elif command in ("tree", "session"):
        watches[int(pid)] = Watch("tree" if command == "tree" else "session", int(pid))


def _ignore(number: int, frame: FrameType | None) -> None:
    """Not SIG_IGN: that would be inherited. The guardian goes when the application has gone."""
