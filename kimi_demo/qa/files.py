"""Reports on the disk."""

import os
import tempfile
from pathlib import Path

from kimi_demo.dialect.failure import Failure


def write_whole(path: Path, text: str) -> None:
    """Whoever reads `path` meanwhile finds the old file or the new one. Raises Failure: qa.unwritable (path, error)."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, part = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with open(descriptor, "w", encoding="utf-8", errors="backslashreplace") as file:
                file.write(text)
            umask = os.umask(0)
            os.umask(umask)
            os.chmod(part, 0o666 & ~umask)  # mkstemp's files are for their user alone; a report is for others
            os.replace(part, path)
        except BaseException:
            os.unlink(part)
            raise
    except OSError as error:
        raise Failure("qa.unwritable", path=path, error=error.strerror or error) from error


def require_writable(path: Path) -> None:
    """Told before an hour of questions, not after it."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir():
            raise IsADirectoryError(21, "is a folder")
        with tempfile.TemporaryFile(dir=path.parent):
            pass
    except OSError as error:
        raise Failure("qa.unwritable", path=path, error=error.strerror or error) from error
