"""Large files from Hugging Face, gone on with where an earlier run stopped.

`snapshot_download` (2.4) writes each file to a name that is new every time and throws it away when it is interrupted: with eight shards
of 10 GB under way that is up to 80 GB. So what has a checksum is fetched file by file, with the client's own `http_get`, which takes a
place to go on from; the small files, and any that plain HTTP does not serve, are left to `snapshot_download`.
"""

import os
from collections.abc import Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from pathlib import Path
from shutil import rmtree
from threading import Event
from typing import BinaryIO, cast

from kimi_demo.engines.hub.job import Job
from kimi_demo.engines.hub.listing import RemoteFile

_LARGEST = 50_000_000_000
"""Bytes; above, the hub does not serve a file over plain HTTP (`constants.MAX_HTTP_DOWNLOAD_SIZE`)."""


def fetch(job: Job, revision: str | None, files: Sequence[RemoteFile]) -> None:
    """All of a model's `files`. Raises what the client raises; unfinished large files stay for the next try."""
    from huggingface_hub import snapshot_download

    folder = Path(job.folder)
    rmtree(folder / ".cache" / "huggingface" / "download", ignore_errors=True)  # what an interrupted snapshot_download has left is lost
    large = [file for file in files if file.sha256 and file.size <= _LARGEST]
    _fetch_large(job, revision, folder, [file for file in large if not _is_whole(folder, file)])
    snapshot_download(
        job.model,
        revision=revision,
        local_dir=job.folder,
        allow_patterns=[_literal(file.path) for file in files if file not in large] or ["nothing of it"],
        max_workers=job.workers,
        token=_token(job),
    )


def _fetch_large(job: Job, revision: str | None, folder: Path, files: list[RemoteFile]) -> None:
    """job.workers at a time. The first failure ends the others at their next piece: a second try must be alone with their files."""
    stop = Event()
    with ThreadPoolExecutor(job.workers) as pool:
        running = [pool.submit(_fetch_one, job, revision, folder, file, stop) for file in files]
        done, waiting = wait(running, return_when=FIRST_EXCEPTION)
        if waiting:
            stop.set()
            for one in waiting:
                one.cancel()
    for one in done:
        one.result()


def _fetch_one(job: Job, revision: str | None, folder: Path, file: RemoteFile, stop: Event) -> None:
    from huggingface_hub import hf_hub_url
    from huggingface_hub.file_download import http_get
    from huggingface_hub.utils._headers import build_hf_headers

    final = folder / file.path
    part = folder / (file.path + ".incomplete")
    final.parent.mkdir(parents=True, exist_ok=True)
    if part.exists() and part.stat().st_size > file.size:
        part.unlink()
    with part.open("ab") as stream:
        http_get(
            hf_hub_url(job.model, file.path, revision=revision),
            cast(BinaryIO, _Stoppable(stream, stop)),
            resume_size=stream.tell(),
            headers=build_hf_headers(token=_token(job)),
            expected_size=file.size,
            displayed_filename=file.path,
        )
    os.replace(part, final)


class _Stopped(Exception):
    """Another file has failed."""


class _Stoppable:
    """What `http_get` needs of a file."""

    def __init__(self, stream: BinaryIO, stop: Event) -> None:
        self._stream, self._stop = stream, stop

    def write(self, data: bytes) -> int:
        if self._stop.is_set():
            raise _Stopped
        return self._stream.write(data)

    def seek(self, offset: int, whence: int = 0) -> int:
        return self._stream.seek(offset, whence)

    def tell(self) -> int:
        return self._stream.tell()

    def truncate(self, size: int | None = None) -> int:
        return self._stream.truncate(size)


def _is_whole(folder: Path, file: RemoteFile) -> bool:
    try:
        return (folder / file.path).stat().st_size == file.size
    except OSError:
        return False


def _literal(path: str) -> str:
    """`path` as a pattern of fnmatch that matches nothing else."""
    return "".join(f"[{character}]" if character in "*?[" else character for character in path)


def _token(job: Job) -> str | None:
    return job.token.get_secret_value() if job.token is not None else None
