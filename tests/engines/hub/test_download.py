"""Downloads through the real clients from a hub on this machine: whole, broken off, short, refused, wrong, out of space, cancelled."""

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import SecretStr

from kimi_demo.dialect.events import Event, Phase
from kimi_demo.dialect.failure import Failure
from kimi_demo.engines.hub import on_disk
from kimi_demo.engines.hub.complete import inspect
from kimi_demo.engines.hub.download import clock, download, job_for, readable, target
from kimi_demo.engines.hub.job import Job, Source
from kimi_demo.engines.hub.listing import RemoteFile
from tests import local_hub
from tests.engines.hub.models import model_files
from tests.local_hub import MODEL, LocalHub

SOURCES: tuple[Source, ...] = ("huggingface", "modelscope")
both = pytest.mark.parametrize("source", SOURCES)
LARGE = 24_000_000
"""Bytes of a shard: huggingface_hub writes in pieces of 10 MB, and what is smaller begins anew."""

SHARD = "model-00001-of-00002.safetensors"


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[LocalHub]:
    with local_hub.running(files=model_files()) as running:
        home = tmp_path / "home"
        home.mkdir()
        for name in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "MODELSCOPE_API_TOKEN", "MODELSCOPE_DOMAIN", "HF_HOME", "HF_HUB_CACHE"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("HOME", str(home))
        monkeypatch.setenv("HF_ENDPOINT", running.address)
        monkeypatch.setenv("MODELSCOPE_ENDPOINT", running.address)
        monkeypatch.setenv("MODELSCOPE_DOWNLOAD_MAX_RETRIES", "1")
        monkeypatch.setenv("HF_HUB_OFFLINE", "1")  # as an engine's environment may have it
        yield running


def job(source: Source, tmp_path: Path, token: str | None = None, revision: str | None = None) -> Job:
    wanted = job_for(source, MODEL, tmp_path / "models", revision, SecretStr(token) if token else None, workers=2)
    return wanted.model_copy(update={"tries": 2})


async def downloaded(job: Job) -> list[Phase]:
    events: list[Event] = []
    folder = await download(job, events.append)
    assert str(folder) == job.folder
    return [event for event in events if isinstance(event, Phase)]


async def failed(job: Job) -> Failure:
    with pytest.raises(Failure) as caught:
        await downloaded(job)
    return caught.value


def holds(folder: Path, hub: LocalHub) -> bool:
    return all((folder / path).read_bytes() == content for path, content in hub.files.items())


@both
async def test_a_whole_model(source: Source, hub: LocalHub, tmp_path: Path) -> None:
    wanted = job(source, tmp_path)
    phases = await downloaded(wanted)
    folder = tmp_path / "models" / "moonshotai" / "Tiny"
    assert Path(wanted.folder) == folder and holds(folder, hub) and inspect(folder).complete
    total = sum(map(len, hub.files.values()))
    assert [phase.name for phase in phases][0] == "weights.listing"
    last = [phase for phase in phases if phase.name == "weights.downloading"][-1]
    assert (last.done, last.total, last.params["files"], last.params["files_total"]) == (total, total, "5", "5")
    before = len(hub.requests)
    await downloaded(wanted)
    assert {path for _, path, _ in hub.requests[before:]} <= {
        "listing",
        "config.json",
        "model.safetensors.index.json",
        "tokenizer/vocab.txt",
    }


@both
async def test_a_broken_connection_is_gone_on_with(source: Source, hub: LocalHub, tmp_path: Path) -> None:
    hub.files = model_files(size=LARGE)
    hub.breaks = {SHARD: 2}
    await downloaded(wanted := job(source, tmp_path))
    assert holds(Path(wanted.folder), hub)
    assert any(asked.startswith("bytes=") and not asked.startswith("bytes=0") for asked in hub.ranges(SHARD))


@both
async def test_a_second_run_goes_on_where_the_first_was_cancelled(source: Source, hub: LocalHub, tmp_path: Path) -> None:
    hub.files = model_files(size=LARGE)
    hub.rate = 30_000_000
    wanted = job(source, tmp_path)
    events: list[Event] = []
    task = asyncio.create_task(download(wanted, events.append))
    await asyncio.to_thread(hub.wait_sent, SHARD, 16_000_000)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    kept, _ = on_disk.progress(Path(wanted.folder), _remote(hub))
    assert kept > 9_000_000 and not inspect(Path(wanted.folder)).complete
    hub.rate = None
    hub.requests.clear()
    phases = await downloaded(wanted)
    assert holds(Path(wanted.folder), hub)
    assert any(asked.startswith("bytes=") and not asked.startswith("bytes=0") for asked in hub.ranges(SHARD))
    first = next(phase for phase in phases if phase.name == "weights.downloading")
    assert (first.done or 0) >= kept // 2


async def test_speed_and_time_left_are_told(hub: LocalHub, tmp_path: Path) -> None:
    hub.files = model_files(size=8_000_000)
    hub.rate = 5_000_000
    phases = [phase for phase in await downloaded(job("modelscope", tmp_path)) if phase.name == "weights.downloading"]
    sizes = [phase.done or 0 for phase in phases]
    assert sizes == sorted(sizes) and len(set(sizes)) > 2
    assert any(phase.params["speed"].endswith("B") and ":" in phase.params["left"] for phase in phases)


@both
async def test_contents_that_do_not_match_their_checksum_are_downloaded_again(source: Source, hub: LocalHub, tmp_path: Path) -> None:
    hub.wrong = {SHARD: 1}
    await downloaded(wanted := job(source, tmp_path))
    assert holds(Path(wanted.folder), hub)


@pytest.mark.parametrize("source", ["huggingface", pytest.param("modelscope", marks=pytest.mark.soak)])
async def test_contents_that_never_match_are_a_failure_that_names_the_file(source: Source, hub: LocalHub, tmp_path: Path) -> None:
    hub.wrong = {SHARD: 100}
    failure = await failed(wanted := job(source, tmp_path))
    assert (failure.code, failure.params["file"]) == ("weights.checksum", SHARD)
    assert not (Path(wanted.folder) / SHARD).exists()


@both
async def test_a_file_that_stays_short(source: Source, hub: LocalHub, tmp_path: Path) -> None:
    hub.short = {SHARD}
    failure = await failed(wanted := job(source, tmp_path))
    assert failure.code in ("weights.broke_off", "weights.short", "weights.failed")
    assert not inspect(Path(wanted.folder)).complete


@both
@pytest.mark.parametrize(
    ("status", "code"),
    [
        (401, "weights.needs_token"),
        pytest.param(403, "weights.forbidden", marks=pytest.mark.soak),
        pytest.param(404, "weights.not_found", marks=pytest.mark.soak),
    ],
)
async def test_a_listing_that_is_refused(source: Source, status: int, code: str, hub: LocalHub, tmp_path: Path) -> None:
    hub.status = {"listing": status}
    assert (await failed(job(source, tmp_path))).code == code


@both
@pytest.mark.parametrize(("status", "code"), [(403, "weights.forbidden"), pytest.param(404, "weights.not_found", marks=pytest.mark.soak)])
async def test_a_file_that_is_refused(source: Source, status: int, code: str, hub: LocalHub, tmp_path: Path) -> None:
    hub.status = {SHARD: status}
    assert (await failed(job(source, tmp_path))).code == code


@pytest.mark.parametrize("source", ["huggingface", pytest.param("modelscope", marks=pytest.mark.soak)])
async def test_a_model_and_a_revision_that_are_not_there(source: Source, hub: LocalHub, tmp_path: Path) -> None:
    elsewhere = job_for(source, "moonshotai/Other", tmp_path / "models")
    assert (await failed(elsewhere)).code == "weights.not_found"
    assert (await failed(job(source, tmp_path, revision="v9"))).code in ("weights.unknown_revision", "weights.not_found")


@both
async def test_the_token_opens_a_private_model_and_is_nowhere_afterwards(source: Source, hub: LocalHub, tmp_path: Path) -> None:
    hub.token = "hf_verysecretvalue"
    assert (await failed(job(source, tmp_path))).code in ("weights.needs_token", "weights.not_found")
    private = job(source, tmp_path, token="hf_verysecretvalue")
    await downloaded(private)
    assert holds(Path(private.folder), hub)
    assert "verysecret" not in repr(private)
    written = [path for place in (tmp_path,) for path in place.rglob("*") if path.is_file()]
    assert written and not [path for path in written if b"verysecret" in path.read_bytes()]


@both
@pytest.mark.soak
async def test_a_wrong_token_is_not_repeated_to_anyone(source: Source, hub: LocalHub, tmp_path: Path) -> None:
    hub.token = "hf_right"
    failure = await failed(job(source, tmp_path, token="hf_wrongsecret"))
    assert "wrongsecret" not in str(failure)


@both
async def test_too_little_room_is_said_before_a_byte_is_asked_for(source: Source, hub: LocalHub, tmp_path: Path) -> None:
    hub.listed = {SHARD: 10**17}
    failure = await failed(job(source, tmp_path))
    assert failure.code == "weights.no_space" and failure.params["needed"] == "100,000,000.0"
    assert {path for _, path, _ in hub.requests} == {"listing"}


@both
async def test_a_disk_that_fills_up(source: Source, hub: LocalHub, tmp_path: Path) -> None:
    wanted = job(source, tmp_path)
    _fills_up(Path(wanted.folder) / f"{SHARD}.incomplete")
    failure = await failed(wanted)
    assert (failure.code, failure.params["folder"]) == ("weights.disk_full", wanted.folder)


@both
async def test_a_name_that_would_leave_the_folder_is_refused(source: Source, hub: LocalHub, tmp_path: Path) -> None:
    hub.files = {"../outside.txt": b"x", "config.json": b"{}"}
    failure = await failed(job(source, tmp_path))
    assert (failure.code, failure.params["file"]) == ("weights.odd_listing", "../outside.txt")
    assert {path for _, path, _ in hub.requests} == {"listing"}


async def test_two_downloads_of_one_folder(hub: LocalHub, tmp_path: Path) -> None:
    hub.files = model_files(size=LARGE)
    hub.rate = 1_000_000
    first = asyncio.create_task(downloaded(job("huggingface", tmp_path)))
    await asyncio.to_thread(hub.wait_sent, SHARD, 200_000)
    assert (await failed(job("huggingface", tmp_path))).code == "weights.in_use"
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)


async def test_nobody_answers(hub: LocalHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    assert (await failed(job("huggingface", tmp_path))).code == "weights.broke_off"


async def test_the_process_ends_with_its_parent(hub: LocalHub, tmp_path: Path) -> None:
    hub.files = model_files(size=3_000_000)
    hub.rate = 300_000
    wanted = job("huggingface", tmp_path)
    process = await asyncio.create_subprocess_exec(
        "sh",
        "-c",
        "exec python -m kimi_demo.engines.hub.worker",
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.DEVNULL,
        env=os.environ | {"PATH": f"{Path(os.sys.executable).parent}:{os.environ['PATH']}"},  # type: ignore[attr-defined]
    )
    assert process.stdin is not None
    process.stdin.write(wanted.model_dump_json().encode() + b"\n")
    await asyncio.to_thread(hub.wait_sent, SHARD, 100_000)
    process.stdin.close()
    async with asyncio.timeout(10):
        assert await process.wait() == 1


@pytest.mark.parametrize("name", ["", "Kimi", "/etc/passwd", "a/b/c", "../x", "a/..", "a b/c", "a/b?x=1", "-a/b", "a/" + "b" * 97, "月/暗"])
def test_names_that_are_none(name: str, tmp_path: Path) -> None:
    with pytest.raises(Failure) as caught:
        job_for("huggingface", name, tmp_path)
    assert caught.value.code == "weights.bad_name"


def test_other_input_that_cannot_be() -> None:
    with pytest.raises(Failure) as caught:
        job_for("modelscope", MODEL, Path("/tmp"), token=SecretStr("two words"))
    assert caught.value.code == "weights.bad_token"
    with pytest.raises(Failure) as caught:
        job_for("modelscope", MODEL, Path("/tmp"), revision=" ")
    assert caught.value.code == "weights.unknown_revision"
    assert target(Path("/data"), "moonshotai/Kimi-K2.5") == Path("/data/moonshotai/Kimi-K2.5")


def test_sizes_and_times_for_people() -> None:
    assert [readable(size) for size in (0, 999, 12_345, 595e9)] == ["0 B", "999 B", "12.3 kB", "595.0 GB"]
    assert [clock(seconds) for seconds in (5, 65, 3723, 1e9)] == ["0:05", "1:05", "1:02:03", "99:59:59"]


def _fills_up(part: Path) -> None:
    """Every write there ends as on a full disk."""
    part.parent.mkdir(parents=True)
    part.symlink_to("/dev/full")


def _remote(hub: LocalHub) -> list[RemoteFile]:
    return [RemoteFile(path, len(content)) for path, content in hub.files.items()]
