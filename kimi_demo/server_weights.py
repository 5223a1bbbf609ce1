"""Models on the disk of this machine: which there are, and the download that is going on. One download at a time, of the application's."""

import asyncio
import logging
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from pydantic import SecretStr

from kimi_demo.dialect.events import Event, Phase
from kimi_demo.dialect.failure import Failure
from kimi_demo.engines.hub.complete import inspect
from kimi_demo.engines.hub.download import download, job_for
from kimi_demo.engines.hub.job import Job, Source

log = logging.getLogger(__name__)

_MOST_SHOWN = 100


@dataclass(frozen=True)
class Downloaded:
    """A model's folder below the cache. name: "owner/name"; complete: as far as its files say; weights: whole weight files."""

    name: str
    folder: Path
    complete: bool
    weights: int


class Weights:
    """cache: the folder below which models are kept as owner/name. token: for private repositories; it is never shown.

    phase: what the download does, None while there is none; failure: why the last one ended, if not well.
    """

    def __init__(self, cache: Path, token: SecretStr | None = None) -> None:
        self._cache = cache
        self._token = token
        self._task: asyncio.Task[None] | None = None
        self.job: Job | None = None
        self.phase: Phase | None = None
        self.failure: Failure | None = None
        self.done = False
        self.began = 0.0
        self.known: tuple[Downloaded, ...] = ()

    @property
    def going(self) -> bool:
        return self._task is not None and not self._task.done()

    def start(self, source: Source, model: str, revision: str, token: str = "") -> None:
        """token: for this download alone; "" takes the one of the settings.

        Raises Failure: weights.busy, weights.bad_name, weights.bad_token, weights.unknown_revision.
        """
        if self.going:
            raise Failure("weights.busy", model=self.job.model if self.job is not None else "")
        secret = SecretStr(token) if token.strip() else self._token
        self.job = job_for(source, model.strip(), self._cache, revision.strip() or None, secret)
        self.phase, self.failure, self.done, self.began = None, None, False, time.monotonic()
        self._task = asyncio.create_task(self._run(self.job), name="weights")

    async def stop(self) -> None:
        """What is there stays; the next download of the same model goes on with it."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def look(self) -> None:
        """Looks again at what is on the disk."""
        self.known = await asyncio.to_thread(downloaded, self._cache)

    async def _run(self, job: Job) -> None:
        def hear(event: Event) -> None:
            if isinstance(event, Phase):
                self.phase = event

        try:
            await download(job, hear)
            self.done = True
        except Failure as failure:
            self.failure = failure
        except OSError as error:  # the downloading process could not even be started
            log.exception("The download could not be started")
            self.failure = Failure("unexpected", error=error)
        finally:
            self.phase = None
            with suppress(OSError):
                await self.look()


def downloaded(cache: Path) -> tuple[Downloaded, ...]:
    """The folders cache/owner/name that hold something, in alphabetical order. Reads headers only."""
    found = []
    folders = sorted(path for path in cache.glob("*/*") if path.is_dir() and not path.name.startswith(".")) if cache.is_dir() else []
    for folder in folders[:_MOST_SHOWN]:
        seen = inspect(folder)
        found.append(Downloaded(f"{folder.parent.name}/{folder.name}", folder, seen.complete and seen.weights > 0, seen.weights))
    return tuple(found)
