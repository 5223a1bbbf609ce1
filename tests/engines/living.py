"""Which processes live: the tests' own way of looking, beside the one that they test."""

import time
from collections.abc import Callable, Iterable

import psutil


def alive(pids: Iterable[int]) -> set[int]:
    """Those of `pids` that run; a zombie has ended and waits for its parent only."""
    running = set()
    for pid in pids:
        try:
            if psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
                running.add(pid)
        except psutil.NoSuchProcess:
            pass
    return running


def tree(pid: int) -> set[int]:
    """`pid` and everything below it."""
    return {pid, *(child.pid for child in psutil.Process(pid).children(recursive=True))}


def until(condition: Callable[[], bool], seconds: float) -> bool:
    """Whether `condition` comes true within `seconds`."""
    deadline = time.monotonic() + seconds
    while not (true := condition()) and time.monotonic() < deadline:
        time.sleep(0.02)
    return true
