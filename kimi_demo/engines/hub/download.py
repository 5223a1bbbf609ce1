"""Downloading a model: free space first, bytes and files with speed and time left, cancelled at once, gone on with where it stopped."""

import asyncio
import logging
import os
import sys
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from pydantic import SecretStr, ValidationError

from kimi_demo.dialect.events import Event, Phase
from kimi_demo.dialect.failure import Failure
from kimi_demo.engines.hub.job import LINE, Ended, Job, Source, Told

log = logging.getLogger(__name__)

_WINDOW_S = 15.0
"""Over which the speed is taken."""

_GRACE_S = 2.0
_LONGEST_LINE = 2**20


def target(cache: Path, model: str) -> Path:
    """Where a model goes below `cache`: as the deployment guide's script puts it, cache/owner/name."""
    return cache.expanduser().joinpath(*model.split("/"))


def job_for(source: Source, model: str, cache: Path, revision: str | None = None, token: SecretStr | None = None, workers: int = 8) -> Job:
    """Raises Failure: weights.bad_name, weights.bad_token."""
    owner, _, name = model.partition("/")
    if not (_is_name(owner) and _is_name(name)):
        raise Failure("weights.bad_name", model=model[:100])
    if revision is not None and (not revision.strip() or len(revision) > 200 or revision != revision.strip() or ".." in revision):
        raise Failure("weights.unknown_revision", revision=revision[:100], model=model, source=source)
    if token is not None:
        plain = token.get_secret_value().strip()
        if not plain.isascii() or not plain.isprintable() or " " in plain:
            raise Failure("weights.bad_token")
        token = SecretStr(plain) if plain else None
    folder = str(target(cache, model).absolute())
    return Job(source=source, model=model, folder=folder, revision=revision, token=token, workers=max(1, min(64, workers)))


async def download(job: Job, on_event: Callable[[Event], None]) -> Path:
    """The folder, complete and checked. on_event gets Phases `weights.<stage>`: done and total in bytes, and as `params` what
    `phase.weights.<stage>` in ui/texts mentions: size, of, files, files_total, speed (bytes a second), left (seconds, "" unknown).

    Cancelling ends it at once; what is there stays, and the next download of the same folder goes on with it.
    Raises Failure: codes of the `weights.` family.
    """
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "kimi_demo.engines.hub.worker"),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=_environment(),
        start_new_session=True,  # Ctrl-C is for this program, which then ends it
        limit=_LONGEST_LINE,
    )
    assert process.stdin is not None and process.stdout is not None and process.stderr is not None
    said = asyncio.create_task(_last_words(process.stderr))
    try:
        process.stdin.write(job.model_dump_json().encode() + b"\n")  # and it stays open: its end would end the process
        with suppress(ConnectionError):
            await process.stdin.drain()
        speed = _Speed()
        while line := await process.stdout.readline():
            told = _read(line)
            if isinstance(told, Ended):
                if told.code is not None:
                    raise Failure(told.code, **told.params)
                return Path(job.folder)
            if told is not None:
                on_event(_phase(told, speed))
        words = await said
        raise Failure("weights.failed", model=job.model, source=job.source, reason=_without(words, job) or "the download ended")
    finally:
        await _end(process)
        said.cancel()
        with suppress(asyncio.CancelledError):
            await said


def _is_name(text: str) -> bool:
    """As both hubs take them: letters, digits, "-", "_", "."; no ".." and no dash or dot at the ends."""
    return (
        0 < len(text) <= 96
        and all(character.isascii() and (character.isalnum() or character in "-_.") for character in text)
        and text.strip("-.") == text
        and ".." not in text
        and "--" not in text
    )


def _environment() -> dict[str, str]:
    """Without this application's own variables: some are secrets, and the token goes another way."""
    return {name: value for name, value in os.environ.items() if not name.upper().startswith("KIMI_DEMO_")}


def _read(line: bytes) -> Told | Ended | None:
    try:
        return LINE.validate_json(line)
    except ValidationError:
        log.warning("a line of the download that is none: %r", line[:200])
        return None


class _Speed:
    """Bytes a second over the last seconds of a stage, by this process's clock."""

    def __init__(self) -> None:
        self._stage = ""
        self._seen: deque[tuple[float, int]] = deque()

    def add(self, told: Told) -> float | None:
        now = asyncio.get_running_loop().time()
        if told.stage != self._stage:
            self._stage = told.stage
            self._seen.clear()
        self._seen.append((now, told.done))
        while now - self._seen[0][0] > _WINDOW_S:
            self._seen.popleft()
        seconds = now - self._seen[0][0]
        return max(0, told.done - self._seen[0][1]) / seconds if seconds > 0.5 else None


def _phase(told: Told, speed: _Speed) -> Phase:
    rate = speed.add(told)
    left = (told.total - told.done) / rate if rate else None
    params = {
        "size": readable(told.done),
        "of": readable(told.total),
        "files": str(told.files),
        "files_total": str(told.files_total),
        "speed": "–" if rate is None else readable(rate),
        "left": "–" if left is None else clock(left),
        "attempt": str(told.attempt),
    }
    return Phase(f"weights.{told.stage}", told.done, told.total, params)


def readable(size: float) -> str:
    """Bytes for people, in units of 1,000: "12.3 GB"."""
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000 or unit == "GB":
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:,.1f} {unit}"
        size /= 1000
    raise AssertionError("unreachable")


def clock(seconds: float) -> str:
    """ "1:02:03", "2:03"."""
    whole = min(round(seconds), 359_999)
    hours, minutes = divmod(whole // 60, 60)
    return f"{hours}:{minutes:02}:{whole % 60:02}" if hours else f"{minutes}:{whole % 60:02}"


async def _last_words(stream: asyncio.StreamReader) -> str:
    """The last line that the process said; read on, so that it never waits for us."""
    last = b""
    while data := await stream.read(65536):
        last = (last + data)[-4000:]
    lines = [line for line in last.decode(errors="replace").splitlines() if line.strip()]
    return lines[-1].strip()[:200] if lines else ""


def _without(words: str, job: Job) -> str:
    return words.replace(job.token.get_secret_value(), "…") if job.token is not None else words


async def _end(process: asyncio.subprocess.Process) -> None:
    """It has nothing to tidy up: half a file is half a file."""
    if process.returncode is None:
        assert process.stdin is not None
        process.stdin.close()
        try:
            async with asyncio.timeout(_GRACE_S):
                await asyncio.shield(process.wait())
        except (TimeoutError, asyncio.CancelledError):
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()
