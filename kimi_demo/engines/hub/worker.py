"""The process that downloads: `python -m kimi_demo.engines.hub.worker`, a Job on standard input, lines of `Told` on standard output.

A process of its own because the hubs' clients cannot be stopped from outside while they wait for the network, and because it can be ended
without harm: what is written is gone on with by the next one. It ends when its standard input does, which is when its parent has died.
"""

import glob
import os
import shutil
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TypeVar

from kimi_demo.dialect.failure import Failure
from kimi_demo.engines.hub import huggingface, on_disk
from kimi_demo.engines.hub.faults import failure_of, transient
from kimi_demo.engines.hub.job import Ended, Job, Told
from kimi_demo.engines.hub.listing import RemoteFile, list_files

Found = TypeVar("Found")

_LOOK_S = 0.25
_SPARE = 64 * 2**20
"""Bytes that stay free beside the files: the clients' own notes."""

_WAITS_S = (1.0, 2.0, 5.0, 10.0, 20.0)
"""Before the second, third, … attempt. Within each, the clients themselves try several times."""

LOCK = ".kimi-demo-download.lock"


class Worker:
    """One download. told: gets each line."""

    def __init__(self, job: Job, out: IO[str]) -> None:
        self._job = job
        self._folder = Path(job.folder)
        self._out = out
        self._writing = threading.Lock()
        self._over = threading.Event()
        self._files: list[RemoteFile] = []
        self._revision = job.revision
        self._total = 0

    def run(self) -> Ended:
        try:
            self._download()
        except Failure as failure:
            return Ended(code=failure.code, params=failure.params)
        except Exception as error:  # whatever the clients raise: `failure_of` knows what it means
            found = failure_of(error, self._job)
            return Ended(code=found.code, params=found.params)
        finally:
            self._over.set()
        return Ended()

    def say(self, line: Told | Ended) -> None:
        with self._writing:
            self._out.write(line.model_dump_json() + "\n")
            self._out.flush()

    def _download(self) -> None:
        self.say(Told(stage="listing"))
        listing = self._patiently(lambda: list_files(self._job))
        self._files, self._revision = list(listing.files), listing.revision
        if not self._files:
            raise Failure("weights.empty", model=self._job.model, source=self._job.source)
        self._total = sum(file.size for file in self._files)
        self._folder.mkdir(parents=True, exist_ok=True)
        with _locked(self._folder):
            self._room()
            for last in (False, True):
                self._fetch()
                wrong = self._check()
                if not wrong:
                    break
                if last:
                    raise Failure("weights.checksum", file=wrong[0].path)
            missing = [file for file in self._files if not self._whole(file)]
            if missing:
                raise Failure("weights.short", file=missing[0].path, count=len(missing))

    def _room(self) -> None:
        done, _ = on_disk.progress(self._folder, self._files)
        needed, free = self._total - done, shutil.disk_usage(self._folder).free
        if needed > max(0, free - _SPARE) and needed > 0:
            raise Failure("weights.no_space", needed=f"{needed / 1e9:,.1f}", free=f"{free / 1e9:,.1f}", folder=self._folder)

    def _fetch(self) -> None:
        watching = threading.Thread(target=self._watch, args=(done := threading.Event(),), daemon=True)
        watching.start()
        try:
            self._patiently(self._snapshot)
        finally:
            done.set()
            watching.join()

    def _watch(self, done: threading.Event) -> None:
        while not done.wait(_LOOK_S):
            self._progress("downloading")
        self._progress("downloading")

    def _progress(self, stage: str, attempt: int = 0) -> None:
        size, whole = on_disk.progress(self._folder, self._files)
        told = {"done": min(size, self._total), "total": self._total, "files": whole, "files_total": len(self._files)}
        self.say(Told.model_validate({"stage": stage, "attempt": attempt, **told}))

    def _snapshot(self) -> None:
        job = self._job
        if job.source == "huggingface":
            huggingface.fetch(job, self._revision, self._files)
            return
        from modelscope_hub.compat.snapshot_download import snapshot_download

        # What was checked before need not be looked at again: the client would read all of it to compare checksums.
        skip = [name for name in on_disk.checked(self._folder, self._files) if glob.escape(name) == name]
        snapshot_download(
            job.model,
            revision=self._revision,
            local_dir=job.folder,
            ignore_patterns=skip or None,
            max_workers=job.workers,
            token=job.token.get_secret_value() if job.token is not None else None,
        )

    def _patiently(self, what: Callable[[], Found]) -> Found:
        """Tries again, after a while, what the network has broken off; without end as long as more bytes arrive in between."""
        attempt, before = 0, -1
        while True:
            try:
                return what()
            except Exception as error:
                if not transient(error):
                    raise
                done, _ = on_disk.progress(self._folder, self._files)
                attempt = 1 if done > before and self._files else attempt + 1
                before = done
                if attempt >= self._job.tries:
                    raise
                self._progress("retrying", attempt)
                self._over.wait(_WAITS_S[min(attempt, len(_WAITS_S)) - 1])

    def _check(self) -> list[RemoteFile]:
        """The files whose checksum is wrong; they are gone."""
        todo = on_disk.unchecked(self._folder, self._files)
        if not todo:
            return []
        total, whole = sum(file.size for file in todo), len(self._files)
        counted = _Counter()
        over = threading.Event()

        def tell() -> None:
            while not over.wait(_LOOK_S):
                self.say(Told(stage="checking", done=counted.value, total=total, files=whole, files_total=whole))

        teller = threading.Thread(target=tell, daemon=True)
        teller.start()
        try:
            return on_disk.check(self._folder, todo, counted.add, self._over)
        finally:
            over.set()
            teller.join()

    def _whole(self, file: RemoteFile) -> bool:
        try:
            return (self._folder / file.path).stat().st_size == file.size
        except OSError:
            return False


class _Counter:
    def __init__(self) -> None:
        self.value = 0
        self._lock = threading.Lock()

    def add(self, more: int) -> None:
        with self._lock:
            self.value += more


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Raises Failure("weights.in_use") where another download writes to the folder."""
    if sys.platform == "win32":
        yield
        return
    import fcntl

    with (folder / LOCK).open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise Failure("weights.in_use", folder=folder) from None
        yield
    (folder / LOCK).unlink(missing_ok=True)


def _end_with_parent() -> None:
    while sys.stdin.buffer.read(1):
        pass
    os._exit(1)


def main() -> int:
    # The clients print; what they print must not come between our lines.
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    job = Job.model_validate_json(sys.stdin.buffer.readline())
    threading.Thread(target=_end_with_parent, daemon=True).start()
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    os.environ["HF_HUB_DISABLE_PROGRESS_BARS"] = "1"
    os.environ.pop("HF_HUB_OFFLINE", None)  # set for engines, which must not look for anything; here looking is the purpose
    worker = Worker(job, out)
    ended = worker.run()
    with suppress(BrokenPipeError):
        worker.say(ended)
    os._exit(0 if ended.code is None else 1)  # threads of a client that wait for the network would hold the process back


if __name__ == "__main__":
    main()
