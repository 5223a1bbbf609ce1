"""How much of a download is on the disk already, and which files have been checked. Looks at files only: no client is asked."""

import hashlib
import json
import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

from kimi_demo.engines.hub.listing import RemoteFile

RECORD = ".kimi-demo-download.json"
"""Which files have been checked, with the size and time of change they had: a second run does not read 595 GB again."""

_BLOCK = 8 * 2**20
_PARTS = (".incomplete", ".parallel_tmp")
"""What a file is called that is not finished: ours (huggingface.py) and modelscope's."""


def progress(folder: Path, files: Iterable[RemoteFile]) -> tuple[int, int]:
    """(bytes, whole files) of `files` that are there, unfinished ones counted as far as they are written."""
    done, whole = 0, 0
    for file in files:
        size = _size(folder / file.path)
        if size == file.size:
            done, whole = done + size, whole + 1
        else:
            done += min(file.size, sum(_written(folder / (file.path + part)) for part in _PARTS))
    return done, whole


def unchecked(folder: Path, files: Iterable[RemoteFile]) -> list[RemoteFile]:
    """Files with a checksum that are there whole and have not been checked since they last changed."""
    record = _record(folder)
    return [
        file for file in files if file.sha256 and _size(folder / file.path) == file.size and record.get(file.path) != _stamp(folder, file)
    ]


def checked(folder: Path, files: Iterable[RemoteFile]) -> set[str]:
    """Files that are there and have been checked."""
    record = _record(folder)
    return {file.path for file in files if file.sha256 and record.get(file.path) == _stamp(folder, file)}


def check(folder: Path, files: list[RemoteFile], on_bytes: Callable[[int], None], cancelled: Event, workers: int = 4) -> list[RemoteFile]:
    """The files whose SHA-256 is another than the hub's; they are deleted, so that they are downloaded anew. Good ones are recorded.

    on_bytes gets the size of each piece read, from several threads.
    """

    def hashed(file: RemoteFile) -> bool:
        digest = hashlib.sha256()
        with (folder / file.path).open("rb") as stream:
            while not cancelled.is_set() and (block := stream.read(_BLOCK)):
                digest.update(block)
                on_bytes(len(block))
        return digest.hexdigest() == (file.sha256 or "").lower()

    record, wrong = _record(folder), []
    with ThreadPoolExecutor(workers) as pool:
        for file, good in zip(files, pool.map(hashed, files), strict=True):
            if cancelled.is_set():
                break
            if good:
                record[file.path] = _stamp(folder, file)
            else:
                (folder / file.path).unlink(missing_ok=True)
                wrong.append(file)
    _write(folder / RECORD, record)
    return wrong


def _stamp(folder: Path, file: RemoteFile) -> list[object]:
    try:
        found = (folder / file.path).stat()
    except OSError:
        return []
    return [found.st_size, found.st_mtime_ns, file.sha256]


def _record(folder: Path) -> dict[str, object]:
    try:
        found = json.loads((folder / RECORD).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _write(path: Path, record: dict[str, object]) -> None:
    temporary = path.with_suffix(".tmp")
    temporary.write_text(json.dumps(record, indent=1), encoding="utf-8")
    os.replace(temporary, path)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return -1


def _written(path: Path) -> int:
    """Bytes of an unfinished file: one that is written in parts has its full length from the beginning, but not its blocks."""
    try:
        found = path.stat()
    except OSError:
        return 0
    return min(found.st_size, found.st_blocks * 512) if hasattr(found, "st_blocks") else found.st_size
