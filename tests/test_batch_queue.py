"""The visitors' batches: in line, paused, stopped, failed, gone on with, run again; on a scripted engine."""

import asyncio
import errno
import os
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kimi_demo.batch_engines import Counting
from kimi_demo.batch_queue import Asked
from kimi_demo.dialect.failure import Failure
from kimi_demo.dialect.sampling import Sampling
from tests.batch_bench import ASKED, ME, OTHER, Bench, Words, numbered
from tests.batches.scripted_engine import ScriptedEngine


async def test_a_batch_runs_and_is_still_there_after_a_restart(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    entry = await bench.start("one\r\n\n  two \nthree")
    done = await bench.until(entry, "done")
    assert (done.rows, done.done, done.failed, done.title) == (3, 3, 0, "one")
    assert await bench.rows(done) == [(0, "You said: one"), (1, "You said: two"), (2, "You said: three")]
    await bench.batches.aclose()
    again = Bench(tmp_path)
    (kept,) = await again.batches.all_of(ME)
    assert kept == done and again.batches.progress(kept).done == 3 and await again.rows(kept) == await bench.rows(done)
    assert not list(bench.shelf.folder.glob(f"*/{'?' * 32}/input.part")) and len(list((bench.shelf.folder / ME).iterdir())) == 1


async def test_another_visitors_batch_is_unknown(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    entry = await bench.until(await bench.start("secret"), "done")
    batches = bench.batches
    for work in (
        batches.get(OTHER, entry.id),
        batches.stop(OTHER, entry.id),
        batches.pause(OTHER, entry.id),
        batches.resume(OTHER, entry.id),
        batches.delete(OTHER, entry.id),
        batches.rename(OTHER, entry.id, "mine"),
        batches.go_on(OTHER, entry.id),
        batches.again(OTHER, entry.id, "all", ASKED),
    ):
        with pytest.raises(Failure, match="batch_page.unknown"):
            await work
    assert await batches.all_of(OTHER) == [] and await batches.all_of(ME) == [entry]


async def test_one_visitors_batches_wait_in_line_and_anothers_do_not(tmp_path: Path) -> None:
    gate = asyncio.Event()
    bench = Bench(tmp_path, ScriptedEngine(gate=gate))
    first, second, third = [await bench.start(f"{name} prompt") for name in ("first", "second", "third")]
    other = await bench.start("other", OTHER)
    await bench.until(first, lambda now: bench.engine.inside == 2)
    assert [bench.batches.ahead(each) for each in (first, second, third, other)] == [0, 1, 2, 0]
    assert [(await bench.batches.get(ME, each.id)).state for each in (first, second, third)] == ["running", "queued", "queued"]
    await bench.batches.stop(ME, second.id)
    assert (await bench.batches.get(ME, second.id)).state == "stopped"
    gate.set()
    await bench.until(third, "done")
    assert (await bench.until(first, "done")).done == 1 and (await bench.until(other, "done")).done == 1
    assert bench.engine.asked == 3
    await bench.batches.aclose()


async def test_stop_keeps_what_is_done_and_going_on_runs_exactly_the_rest(tmp_path: Path) -> None:
    bench = Bench(tmp_path, ScriptedEngine(room=4, seconds=0.01))
    entry = await bench.start(numbered(200))
    await bench.until(entry, lambda now: bench.batches.progress(now).done >= 8)
    await bench.batches.stop(ME, entry.id)
    await bench.batches.stop(ME, entry.id)  # once more: nothing
    stopped = await bench.until(entry, "stopped")
    assert 8 <= stopped.done < 200 and bench.engine.inside == 0
    before, asked = await bench.rows(stopped), bench.engine.asked
    await bench.batches.go_on(ME, entry.id)
    done = await bench.until(entry, "done")
    assert done.done == 200 and [index for index, _ in await bench.rows(done)] == list(range(200))
    assert bench.engine.asked - asked == 200 - len(before)
    await bench.batches.go_on(ME, entry.id)  # of one that is done: nothing
    assert (await bench.batches.get(ME, entry.id)).state == "done"


async def test_pause_and_resume(tmp_path: Path) -> None:
    bench = Bench(tmp_path, ScriptedEngine(room=4, seconds=0.005))
    entry = await bench.start(numbered(300))
    await bench.until(entry, lambda now: bench.batches.progress(now).done > 0)
    await bench.batches.pause(ME, entry.id)
    await bench.until(entry, "paused")
    for _ in range(5):  # rows that were about to enter do so
        await asyncio.sleep(0)
    await bench.until(entry, lambda now: bench.engine.inside == 0)
    asked = bench.engine.asked
    assert asked < 300
    await asyncio.sleep(0.1)
    assert bench.engine.asked == asked
    await bench.batches.resume(ME, entry.id)
    assert (await bench.until(entry, "done")).done == 300


async def test_an_engine_that_dies_fails_the_batch_with_its_sentence_and_it_can_go_on(tmp_path: Path) -> None:
    bench = Bench(tmp_path, ScriptedEngine(room=1))
    bench.engines.failure = Failure("accelerators.held", holder="chat")
    entry = await bench.start("one\ntwo\nthree")
    failed = await bench.until(entry, "failed")
    assert (failed.failure, failed.failure_params, failed.done) == ("accelerators.held", {"holder": "chat"}, 0)
    bench.engines.failure = None
    await bench.batches.go_on(ME, entry.id)
    done = await bench.until(entry, "done")
    assert done.failure is None and done.done == 3
    entry = await bench.start("one\n[die]\nthree")
    assert (await bench.until(entry, "failed")).failure == "batch.engine_died"


async def test_another_model_is_not_mixed_into_the_results(tmp_path: Path) -> None:
    bench = Bench(tmp_path, ScriptedEngine(room=1, seconds=0.01))
    entry = await bench.start(numbered(50))
    await bench.until(entry, lambda now: bench.batches.progress(now).done >= 1)
    await bench.batches.stop(ME, entry.id)
    stopped = await bench.until(entry, "stopped")
    bench.engine.model = "scripted-2"
    await bench.batches.go_on(ME, entry.id)
    failed = await bench.until(entry, "failed")
    assert failed.failure == "batches.other_run" and "scripted-1 → scripted-2" in failed.failure_params["differences"]
    assert failed.failure_params["path"] == failed.title and len(await bench.rows(failed)) == stopped.done
    bench.engine.model = "scripted-1"
    await bench.batches.go_on(ME, entry.id)
    assert (await bench.until(entry, "done")).done == 50


async def test_run_again_makes_versions_of_the_rows_that_are_meant(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    first = await bench.until(await bench.start("a\n[too long]\n[cut] one\nb\n[cut] two"), "done")
    assert (first.done, first.failed, first.cut_off) == (5, 1, 2)
    asked = Asked("moonshot_instant", Sampling(max_tokens=256), False, "server")
    found = {}
    for which in ("failed", "cut_off", "all"):
        made = await bench.batches.again(ME, first.id, which, asked)
        done = await bench.until(made, "done")
        found[which] = [index for index, _ in await bench.rows(done)]
        assert done.rows == len(found[which]) and done.sampling.max_tokens == 256 and not done.thinking
    assert found == {"failed": [1], "cut_off": [2, 4], "all": [0, 1, 2, 3, 4]}
    versions = await bench.batches.versions(first)
    assert [one.version for one in versions] == [1, 2, 3, 4] and {one.root for one in versions} == {first.id}
    clean = await bench.until(await bench.start("fine"), "done")
    with pytest.raises(Failure, match="batches.nothing_again"):
        await bench.batches.again(ME, clean.id, "failed", asked)
    await bench.batches.delete(ME, first.id)  # its versions stand on their own
    last = versions[-1]
    assert len(await bench.rows(last)) == 5 and (await bench.until(await bench.batches.again(ME, last.id, "all", asked), "done")).done == 5


async def test_a_full_disk_pauses_with_its_sentence_and_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(tmp_path)
    full = True
    real = os.write

    def write(descriptor: int, data: bytes) -> int:
        if full and bytes(data).startswith(b'{"index"'):
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(descriptor, data)

    monkeypatch.setattr("kimi_demo.batches.journal.os.write", write)
    entry = await bench.start(numbered(20))
    paused = await bench.until(entry, "paused")
    assert (paused.failure, paused.failure_params["path"]) == ("batches.disk_full", paused.title)
    assert bench.batches.progress(paused).done == 0 and await bench.rows(paused) == []
    full = False
    await bench.batches.resume(ME, entry.id)
    done = await bench.until(entry, "done")
    assert done.failure is None and len(await bench.rows(done)) == 20 and bench.engine.asked == 20


async def test_the_end_of_the_application_interrupts_and_the_next_one_offers_to_go_on(tmp_path: Path) -> None:
    bench = Bench(tmp_path, ScriptedEngine(room=2, seconds=0.01))
    entry, waiting = await bench.start(numbered(100)), await bench.start("later")
    await bench.until(entry, lambda now: bench.batches.progress(now).done >= 2)
    await bench.batches.aclose()
    with pytest.raises(Failure, match="runs.closing"):
        await bench.start("too late")
    again = Bench(tmp_path)
    found = await again.batches.get(ME, entry.id)
    assert found.state == "interrupted" and 2 <= found.done < 100
    assert (await again.batches.get(ME, waiting.id)).state == "interrupted"
    await again.batches.go_on(ME, entry.id)
    assert (await again.until(entry, "done")).done == 100 and again.engine.asked == 100 - found.done


async def test_rows_that_cannot_run_are_refused_or_left_out_as_chosen(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.engines.counter = Counting(Words(), limit=100)
    text = f"fine\n{'word ' * 120}\nalso fine"
    with pytest.raises(Failure) as refused:
        await bench.start(text)
    assert refused.value.code == "batch_page.rows_cannot_run" and refused.value.params == {"count": "1", "line": "2"}
    assert await bench.batches.all_of(ME) == []
    entry = await bench.until(await bench.start(text, asked=replace(ASKED, skip=True)), "done")
    assert (entry.rows, entry.bad_rows) == (2, 1) and [index for index, _ in await bench.rows(entry)] == [0, 2]
    with pytest.raises(Failure, match="batches.no_rows"):
        await bench.start("word " * 120, asked=replace(ASKED, skip=True))


async def test_deleting_one_that_runs_stops_it_and_leaves_nothing(tmp_path: Path) -> None:
    bench = Bench(tmp_path, ScriptedEngine(gate=asyncio.Event()))
    entry, later = await bench.start("never done"), await bench.start("in line")
    await bench.until(entry, lambda now: bench.engine.inside == 1)
    await bench.batches.delete(ME, later.id)
    await bench.batches.delete(ME, entry.id)
    assert bench.engine.inside == 0 and await bench.batches.all_of(ME) == [] and list((bench.shelf.folder / ME).iterdir()) == []


async def test_a_title_is_a_title(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    entry = await bench.until(await bench.start("x"), "done")
    await bench.batches.rename(ME, entry.id, "  a \ud800 new\nname  ")
    assert (await bench.batches.get(ME, entry.id)).title == "a \ufffd new name"
    await bench.batches.rename(ME, entry.id, "   ")
    assert Bench(tmp_path).shelf.entries(ME)[0].title == "a \ufffd new name"


async def test_a_card_that_cannot_be_written_does_not_stop_the_batch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(tmp_path)
    entry = await bench.start(numbered(5))

    def full(self: object, entry: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("kimi_demo.batches.shelf.Shelf.save", full)
    assert (await bench.until(entry, "done")).done == 5
    assert len(await bench.rows(entry)) == 5


async def test_a_stop_while_the_journal_opens_leaves_it_to_the_next_try(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(tmp_path)
    opening, go = threading.Event(), threading.Event()
    real = bench.batches._journal

    def slow(*given: Any) -> Any:
        journal = real(*given)
        opening.set()
        go.wait(30)
        return journal

    monkeypatch.setattr(bench.batches, "_journal", slow)
    entry = await bench.start("one")
    await asyncio.to_thread(opening.wait, 30)
    await bench.batches.stop(ME, entry.id)
    go.set()
    await bench.until(entry, "stopped")
    await bench.batches.go_on(ME, entry.id)
    assert (await bench.until(entry, "done")).done == 1


async def test_rows_of_before_are_shown_while_the_engine_loads(tmp_path: Path) -> None:
    bench = Bench(tmp_path, ScriptedEngine(room=1, seconds=0.01))
    entry = await bench.start(numbered(50))
    await bench.until(entry, lambda now: bench.batches.progress(now).done >= 2)
    await bench.batches.aclose()
    again = Bench(tmp_path)
    loading = asyncio.Event()

    @asynccontextmanager
    async def never(name: object, on_event: object, *, takeover: bool) -> AsyncIterator[Any]:
        loading.set()
        await asyncio.Event().wait()
        yield None

    again.engines.open = never  # type: ignore[method-assign]
    await again.batches.go_on(ME, entry.id)
    await loading.wait()
    now = await again.batches.get(ME, entry.id)
    assert now.state == "running" and len(await again.rows(now)) == now.done >= 2
    await again.batches.stop(ME, entry.id)
    assert (await again.until(entry, "stopped")).done == now.done
