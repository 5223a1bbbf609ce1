"""Finding and ending processes through /proc, also those whose parent is gone. Standard library only: the guardian runs on it.

A process that was killed leaves its children to init, so neither a parent's pid nor a tree finds them; but they keep their session,
and what was once seen below a watched process stays known by its pid and start time. Linux only; elsewhere nothing is ever found.
"""

import os
import signal
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

Kind = Literal["tree", "session"]
"""tree: a process and everything below it; session: everything in the session that a process leads, and everything below."""

_LOOK_AGAIN_S = 0.05
_TRACKER_S = 2.0
"""How long a resource tracker may take to remove the shared memory of the processes that were killed."""


@dataclass(frozen=True, slots=True)
class Process:
    """One living process (no zombie). started: clock ticks after boot; with the pid it names a process for good."""

    pid: int
    parent: int
    session: int
    started: int


def living(proc: Path = Path("/proc")) -> dict[int, Process]:
    """Every process by pid, without zombies: they hold nothing and wait for their parent only."""
    found = {}
    try:
        names = os.listdir(proc)
    except OSError:
        return {}
    for name in names:
        if name.isdigit():
            try:
                stat = (proc / name / "stat").read_bytes()
            except OSError:  # it ended meanwhile
                continue
            # proc(5): pid (comm) state ppid pgrp session … starttime (field 22). The name may hold spaces and brackets.
            fields = stat[stat.rindex(b")") + 2 :].split()
            if fields[0] not in (b"Z", b"X"):
                found[int(name)] = Process(int(name), int(fields[1]), int(fields[3]), int(fields[19]))
    return found


@dataclass
class Watch:
    """What is watched, and whom that has meant so far."""

    kind: Kind
    pid: int
    _known: dict[int, Process] = field(default_factory=dict)
    _sessions: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        if self.kind == "session":
            self._sessions.add(self.pid)
        elif (root := living().get(self.pid)) is not None:
            self._known[root.pid] = root

    def look(self, processes: dict[int, Process] | None = None) -> list[Process]:
        """The watched processes that live now. What is seen once stays watched, also when its parent or its session's leader ends."""
        now = living() if processes is None else processes
        self._known = {pid: known for pid, known in self._known.items() if pid in now and now[pid].started == known.started}
        pending = [process for process in now.values() if process.pid in self._known or process.session in self._sessions]
        children: dict[int, list[Process]] = {}
        for process in now.values():
            children.setdefault(process.parent, []).append(process)
        found: dict[int, Process] = {}
        while pending:
            process = pending.pop()
            if process.pid not in found:
                found[process.pid] = process
                pending += children.get(process.pid, [])
                if process.session == process.pid:
                    self._sessions.add(process.session)
        self._known = found
        self._sessions &= {process.session for process in found.values()}  # the number of an empty one may be given anew
        return list(found.values())


def look_at(watches: Iterable[Watch]) -> list[Process]:
    """The living processes of all watches, in one pass over /proc."""
    processes = living()
    return list({process.pid: process for watch in watches for process in watch.look(processes)}.values())


def end(look: Callable[[], list[Process]], grace_s: float) -> None:
    """Ends what `look` finds until it finds nothing: SIGTERM to each, after grace_s seconds SIGKILL. Returns when they are gone.

    Python's resource trackers get SIGKILL last: when the others are gone they remove their shared memory and end by themselves.
    Gives up (two seconds later) on a process that not even SIGKILL ends, such as one in an uninterruptible system call.
    """
    asked: set[int] = set()
    deadline = time.monotonic() + grace_s
    while alive := look():
        if time.monotonic() >= deadline:
            break
        for process in alive:
            if process.pid not in asked:
                asked.add(process.pid)
                _send(process, signal.SIGTERM)
        time.sleep(_LOOK_AGAIN_S)
    for spare_trackers in (True, False):
        deadline = time.monotonic() + _TRACKER_S
        while (alive := look()) and time.monotonic() < deadline:
            for process in alive:
                if not (spare_trackers and _is_tracker(process)):
                    _send(process, signal.SIGKILL)
            time.sleep(_LOOK_AGAIN_S)


def _send(process: Process, number: signal.Signals) -> None:
    try:
        os.kill(process.pid, number)
    except (ProcessLookupError, PermissionError):  # it ended meanwhile, or became another user's
        pass


def _is_tracker(process: Process) -> bool:
    try:
        return b"multiprocessing.resource_tracker" in Path("/proc", str(process.pid), "cmdline").read_bytes()
    except OSError:
        return False
