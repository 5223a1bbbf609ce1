"""The journal of a batch: its results file itself, to which each finished row is appended, and on disk before anybody is told."""

import errno
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Self

from kimi_demo.batches.encoding import unreadable
from kimi_demo.batches.indices import Indices
from kimi_demo.batches.manifest import Manifest, read_manifest, sidecar
from kimi_demo.batches.results import Result, from_line
from kimi_demo.dialect.failure import Failure

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class Journal:
    """Open for appending, by one process at a time. Made by `create` or `resume`.

    done: the rows that are in it; failed, cut_off, prompt_tokens, completion_tokens: counts of them. repaired: bytes of a torn last
    line that were cut off.
    """

    def __init__(self, path: Path, manifest: Manifest, descriptor: int) -> None:
        self.path = path
        self.manifest = manifest
        self.done = Indices()
        self.failed = self.cut_off = self.prompt_tokens = self.completion_tokens = 0
        self.repaired = 0
        self._descriptor = descriptor
        self._end = 0
        self._torn = False

    @classmethod
    def create(cls, path: Path, manifest: Manifest) -> Self:
        """A new, empty one. Raises Failure: batches.exists, batches.in_use, batches.disk_full, batches.unwritable."""
        if path.exists():
            raise Failure("batches.exists", path=path)
        _write_manifest(path, manifest)
        return cls(path, manifest, _open(path, os.O_CREAT | os.O_EXCL))

    @classmethod
    def resume(cls, path: Path, manifest: Manifest) -> Self:
        """The one that is there, for the rows that it lacks; a new one where there is none.

        A last line that was torn by a crash is cut off: its row counts as not done.
        Raises Failure, and leaves the file as it is: batches.other_run (differences) where it was made with anything else,
        batches.no_manifest, batches.bad_manifest, batches.damaged (line), batches.in_use, batches.unwritable.
        """
        if not path.exists():
            return cls.create(path, manifest)
        before = read_manifest(path)
        if before is None and path.stat().st_size:
            raise Failure("batches.no_manifest", path=path, sidecar=sidecar(path).name)
        if before is not None and before.fingerprint != manifest.fingerprint:
            raise Failure("batches.other_run", path=path, differences="; ".join(before.differences(manifest)))
        journal = cls(path, manifest, _open(path, 0))
        try:
            journal._read()
            if before is None:
                _write_manifest(path, manifest)
        except BaseException:
            journal.close()
            raise
        return journal

    @property
    def size(self) -> int:
        """Bytes of the file that are settled; what lies behind them may be taken back."""
        return self._end

    def append(self, results: Sequence[Result]) -> None:
        """Returns when all of them are on disk. May be called from any thread, one call at a time.

        Raises Failure: batches.disk_full, batches.unwritable. Nothing of this call is in the file then, and it can be tried again.
        """
        data = b"".join(result.to_line() for result in results)
        try:
            if self._torn:
                os.ftruncate(self._descriptor, self._end)
                self._torn = False
            _write_all(self._descriptor, data)
            os.fsync(self._descriptor)
        except OSError as error:
            self._torn = True
            with suppress(OSError):  # if not now, then the next attempt does it
                os.ftruncate(self._descriptor, self._end)
            raise _failure(self.path, error) from error
        self._end += len(data)
        for result in results:
            self._count(result)

    def close(self) -> None:
        os.close(self._descriptor)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _count(self, result: Result) -> None:
        self.done.add(result.index)
        self.failed += result.error is not None
        self.cut_off += result.cut_off
        self.prompt_tokens += result.prompt_tokens
        self.completion_tokens += result.completion_tokens

    def _read(self) -> None:
        """Takes in what is there, and cuts off a torn last line."""
        run = self.manifest.fingerprint
        with self.path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                if not line.endswith(b"\n"):
                    break
                try:
                    result = from_line(line)
                except ValueError:
                    if file.read(1):
                        raise Failure("batches.damaged", path=self.path, line=number) from None
                    break
                if result.run != run:
                    raise Failure("batches.other_run", path=self.path, differences=f"line {number}: run {result.run} → {run}")
                if result.index in self.done:
                    raise Failure("batches.damaged", path=self.path, line=number)
                self._count(result)
                self._end += len(line)
        self.repaired = self.path.stat().st_size - self._end
        if self.repaired:
            try:
                os.ftruncate(self._descriptor, self._end)
                os.fsync(self._descriptor)
            except OSError as error:
                raise _failure(self.path, error) from error


def _write_all(descriptor: int, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(descriptor, left) :]


def _open(path: Path, flags: int) -> int:
    """Raises Failure: batches.exists, batches.in_use, batches.disk_full, batches.unwritable."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | flags | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0), 0o644)
    except FileExistsError:
        raise Failure("batches.exists", path=path) from None
    except OSError as error:
        raise _failure(path, error) from error
    try:
        _lock(descriptor)
    except OSError:
        os.close(descriptor)
        raise Failure("batches.in_use", path=path) from None
    return descriptor


def _lock(descriptor: int) -> None:
    """The operating system lets go of it however the process ends."""
    try:
        import fcntl
    except ImportError:  # Windows: two batches into one file are then noticed by `resume` only
        return
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _write_manifest(path: Path, manifest: Manifest) -> None:
    """Whole or not at all."""
    target = sidecar(path)
    beside = target.with_name(target.name + ".new")
    try:
        with beside.open("w", encoding="utf-8") as file:
            file.write(manifest.to_json())
            file.flush()
            os.fsync(file.fileno())
        beside.replace(target)
        if hasattr(os, "O_DIRECTORY"):
            folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
    except OSError as error:
        raise _failure(target, error) from error


def _failure(path: Path, error: OSError) -> Failure:
    if error.errno in _FULL:
        return Failure("batches.disk_full", path=path)
    return Failure("batches.unwritable", path=path, error=error.strerror or error)


def standing(path: Path) -> tuple[Manifest, Indices]:
    """What a batch was made with and which rows it has, without opening it for writing; for offering to go on with it.

    Raises Failure: batches.no_manifest, batches.bad_manifest, batches.unreadable, batches.damaged.
    """
    manifest = read_manifest(path)
    if manifest is None:
        raise Failure("batches.no_manifest", path=path, sidecar=sidecar(path).name)
    done = Indices()
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                try:
                    done.add(from_line(line).index)
                except ValueError:
                    if line.endswith(b"\n") and file.read(1):
                        raise Failure("batches.damaged", path=path, line=number) from None
                    break
    except FileNotFoundError:
        pass
    except OSError as error:
        raise unreadable(path, error) from error
    return manifest, done
