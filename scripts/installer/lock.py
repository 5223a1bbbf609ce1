"""One installation at a time in one folder."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

if os.name == "nt":
    import msvcrt

    def _take(descriptor: int, wait: bool) -> None:
        msvcrt.locking(descriptor, msvcrt.LK_LOCK if wait else msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
else:
    import fcntl

    def _take(descriptor: int, wait: bool) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))


@contextmanager
def alone(path: Path, waiting: Callable[[], None]) -> Iterator[int]:
    """Hold the lock; the descriptor is yielded. Calls `waiting` once if another holds it. The system lets go of it however we end."""
    descriptor = os.open(str(path), os.O_RDWR | os.O_CREAT, 0o644)
    try:
        try:
            _take(descriptor, wait=False)
        except OSError:
            waiting()
            _take(descriptor, wait=True)
        yield descriptor
    finally:
        os.close(descriptor)
