"""One application per data folder: a lock that the operating system lets go of however the application ends."""

import os
import sys
import weakref
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from kimi_demo.dialect.failure import Failure

if sys.platform == "win32":
    import msvcrt

    def _lock(file: IO[str]) -> None:
        file.seek(0)
        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)

else:
    import fcntl

    def _lock(file: IO[str]) -> None:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


class DataLock:
    """Holds `folder` (made when missing, for its user only) until `release`, or the end of the process.

    Raises Failure: data.locked (folder) when another process or object holds it, data.unwritable (folder, error).
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._file = (folder / "lock").open("a", encoding="ascii")  # never removed: a new file would be a second lock
        except OSError as error:
            raise Failure("data.unwritable", folder=folder, error=error.strerror or error) from error
        try:
            _lock(self._file)
        except (BlockingIOError, PermissionError) as error:  # flock's answer, and that of Windows
            self._file.close()
            raise Failure("data.locked", folder=folder) from error
        except OSError as error:  # a network file system without locks
            self._file.close()
            raise Failure("data.unwritable", folder=folder, error=error.strerror or error) from error
        if hasattr(os, "register_at_fork"):
            # A forked worker inherits the descriptor, and with it the lock; left open there, it would outlive a killed application.
            file = weakref.ref(self._file)
            os.register_at_fork(after_in_child=lambda: _close(file()))

    def release(self) -> None:
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self.release()


def _close(file: IO[str] | None) -> None:
    if file is not None:
        file.close()
