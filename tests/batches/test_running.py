"""A batch as it runs, with a scripted engine: bounded, pausable, stoppable, and every row on disk before it is shown."""

import asyncio
import multiprocessing
import random
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from pickle import UnpicklingError

import psutil
import pytest

from kimi_demo.batches.indices import Indices
from kimi_demo.batches.journal import Journal
from kimi_demo.batches.reading import open_source
from kimi_demo.batches.results import Result
from kimi_demo.batches.running import BatchRun
from kimi_demo.batches.versions import again, select
from kimi_demo.dialect.failure import Failure
from tests.batches.scripted_engine import ScriptedEngine, batch, manifest, prompts, results, resumed


async def until(condition: Callable[[], bool], seconds: float = 20) -> None:
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 - of a condition that nobody signals
            await asyncio.sleep(0.005)


async def test_every_row_is_answered_once_and_carries_all_there_is_to_know(tmp_path: Path) -> None:
    source = prompts(tmp_path, 50)
    made = manifest(source)
    engine = ScriptedEngine(room=8, seconds=0.002)
    shown: list[int] = []

    def on_rows(group: Sequence[Result]) -> None:
        on_disk = {result.index for result in results(tmp_path / "out.jsonl")}
        assert on_disk >= {result.index for result in group}
        shown.extend(result.index for result in group)

    with Journal.create(tmp_path / "out.jsonl", made) as journal:
        run = batch(source, journal, engine, on_rows=on_rows)
        assert await run.run() == "done"
        progress = run.progress()
    assert (progress.done, progress.waiting, progress.running, progress.failed) == (50, 0, 0, 0)
    assert (progress.generated_tokens, progress.prompt_tokens, progress.left_s) == (150, 250, 0.0)
    assert engine.most_inside == 8 and sorted(shown) == list(range(50))
    by_index = {result.index: result for result in results(tmp_path / "out.jsonl")}
    assert len(by_index) == 50
    one = by_index[7]
    assert (one.line, one.prompt, one.reasoning, one.answer, one.finish_reason) == (8, "prompt 7", "why", "You said: prompt 7", "stop")
    assert (one.rendered_prompt, one.model, one.engine, one.versions) == ("<prompt 7>", "scripted-1", "scripted", {"scripted": "1"})
    assert one.parameters["temperature"] == 0.5 and one.run == made.fingerprint and one.finished_at.startswith("20")


async def test_rows_with_parameters_of_their_own_and_their_own_seeds(tmp_path: Path) -> None:
    path = tmp_path / "in.jsonl"
    body = '{"messages": [{"role": "user", "content": "x"}], "max_tokens": 9, "seed": 3, "chat_template_kwargs": {"thinking": false}}'
    path.write_text(f'"plain"\n{{"custom_id": "a", "body": {body}}}\n')
    source = open_source(path)
    engine = ScriptedEngine(room=1)
    asked = []
    answer = engine.answer

    async def noted(ask):  # type: ignore[no-untyped-def]
        asked.append(ask)
        return await answer(ask)

    engine.answer = noted  # type: ignore[method-assign]
    with Journal.create(tmp_path / "out.jsonl", manifest(source)) as journal:
        assert await batch(source, journal, engine).run() == "done"
    assert [(ask.sampling.max_tokens, ask.sampling.seed, ask.thinking) for ask in asked] == [(64, 7, True), (9, 3, False)]
    own = results(tmp_path / "out.jsonl")[1]
    assert own.custom_id == "a" and own.parameters["max_tokens"] == 9 and own.reasoning is None and not own.thinking


async def test_a_row_that_cannot_run_stops_no_other(tmp_path: Path) -> None:
    source = prompts(tmp_path, 6, lambda number: "[too long]" if number == 2 else "[cut]" if number == 3 else "ok")
    with Journal.create(tmp_path / "out.jsonl", manifest(source)) as journal:
        run = batch(source, journal, ScriptedEngine())
        assert await run.run() == "done" and run.progress().failed == 1 and run.progress().cut_off == 1
    found = {result.index: result for result in results(tmp_path / "out.jsonl")}
    assert len(found) == 6 and found[2].error == "batch.prompt_too_long" and found[2].error_params == {"tokens": "9000", "limit": "8192"}
    assert found[3].cut_off_in_thought and found[3].reasoning == "so far"


async def test_an_engine_that_dies_fails_the_run_and_not_the_rows(tmp_path: Path) -> None:
    source = prompts(tmp_path, 40, lambda number: "[die]" if number == 20 else f"ok {number}")
    made = manifest(source)
    with Journal.create(tmp_path / "out.jsonl", made) as journal:
        run = batch(source, journal, ScriptedEngine(room=4))
        assert await run.run() == "failed" and run.failure is not None and run.failure.code == "batch.engine_died"
    done = results(tmp_path / "out.jsonl")
    assert 0 < len(done) < 40 and all(result.error is None for result in done)
    engine = ScriptedEngine(room=4)
    engine.answer = ScriptedEngine(room=4).answer  # type: ignore[method-assign]
    with Journal.resume(tmp_path / "out.jsonl", made) as journal:
        assert len(journal.done) == len(done)


async def test_pause_lets_the_rows_in_the_engine_finish_and_feeds_no_more(tmp_path: Path) -> None:
    source = prompts(tmp_path, 40)
    gate = asyncio.Event()
    engine = ScriptedEngine(room=8, gate=gate)
    states: list[str] = []
    with Journal.create(tmp_path / "out.jsonl", manifest(source)) as journal:
        run: BatchRun = batch(source, journal, engine, on_state=lambda: states.append(run.state))
        going = asyncio.create_task(run.run())
        await until(lambda: engine.inside == 8)
        run.pause()
        gate.set()
        await until(lambda: len(journal.done) == 8)
        before = run.progress()
        await asyncio.sleep(0.3)
        assert engine.asked == 8 and len(results(tmp_path / "out.jsonl")) == 8 and not going.done()
        assert run.progress().seconds == before.seconds, "the clock stands still meanwhile"
        run.resume()
        assert await asyncio.wait_for(going, 20) == "done"
    assert engine.asked == 40 and states == ["running", "paused", "running", "done"]


@pytest.mark.parametrize("paused", [False, True])
async def test_stop_keeps_what_is_finished_and_aborts_the_rest_at_once(tmp_path: Path, paused: bool) -> None:
    source = prompts(tmp_path, 5000)  # more than can be done between two looks
    gate = asyncio.Event()
    engine = ScriptedEngine(room=8)
    made = manifest(source)
    with Journal.create(tmp_path / "out.jsonl", made) as journal:
        run = batch(source, journal, engine)
        going = asyncio.create_task(run.run())
        await until(lambda: engine.asked > 16)
        engine.gate = gate
        await until(lambda: engine.inside == 8)
        if paused:
            run.pause()
        asked = engine.asked
        began = time.monotonic()
        run.stop()
        assert await asyncio.wait_for(going, 20) == "stopped"
        assert time.monotonic() - began < 1
    assert engine.inside == 0 and engine.aborted == 8 and engine.asked == asked
    kept = [result.index for result in results(tmp_path / "out.jsonl")]
    assert len(kept) == len(set(kept)) == asked - 8, "every row that had finished"
    rest = ScriptedEngine(room=8)
    with Journal.resume(tmp_path / "out.jsonl", made) as journal:
        run = batch(source, journal, rest)
        assert await run.run() == "done" and run.progress().resumed == len(kept)
    assert rest.asked == 5000 - len(kept)
    assert sorted(result.index for result in results(tmp_path / "out.jsonl")) == list(range(5000))


async def test_cancelling_the_task_is_a_stop_that_writes(tmp_path: Path) -> None:
    source = prompts(tmp_path, 100)
    engine = ScriptedEngine(room=8, seconds=0.01)
    with Journal.create(tmp_path / "out.jsonl", manifest(source)) as journal:
        run = batch(source, journal, engine)
        going = asyncio.create_task(run.run())
        await until(lambda: engine.asked - engine.inside > 20)
        finished = engine.asked - engine.inside
        going.cancel()
        with pytest.raises(asyncio.CancelledError):
            await going
        assert run.state == "stopped" and engine.inside == 0
    assert len(results(tmp_path / "out.jsonl")) >= finished


async def test_a_full_disk_pauses_and_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = prompts(tmp_path, 60)
    engine = ScriptedEngine(room=8)
    with Journal.create(tmp_path / "out.jsonl", manifest(source)) as journal:
        append = Journal.append

        def full(self: Journal, group: Sequence[Result]) -> None:
            raise Failure("batches.disk_full", path=self.path)

        run = batch(source, journal, engine)
        with monkeypatch.context() as filled:
            filled.setattr(Journal, "append", full)
            going = asyncio.create_task(run.run())
            await until(lambda: run.state == "paused")
            assert run.failure is not None and run.failure.code == "batches.disk_full"
            asked = engine.asked
            run.resume()
            await until(lambda: run.state == "paused")
            await until(lambda: engine.inside == 0)
            assert results(tmp_path / "out.jsonl") == [] and asked <= engine.asked
        assert Journal.append is append
        run.resume()
        assert await asyncio.wait_for(going, 20) == "done" and run.failure is None
    assert engine.asked == 60 and sorted(result.index for result in results(tmp_path / "out.jsonl")) == list(range(60))


async def test_running_again_what_failed_or_was_cut_off_is_a_version_of_its_own(tmp_path: Path) -> None:
    source = prompts(tmp_path, 9, lambda number: ("[too long]", "[cut]", "fine")[number % 3])
    made = manifest(source)
    path = tmp_path / "out.jsonl"
    with Journal.create(path, made) as journal:
        await batch(source, journal, ScriptedEngine()).run()
    assert list(select(results(path), "failed")) == [0, 3, 6] and list(select(results(path), "unfinished")) == [0, 1, 3, 4, 6, 7]
    cut = select(results(path), "cut_off")
    second = path.with_name("out.v2.jsonl")
    assert second.name == "out.v2.jsonl"
    longer = again(made, "cut_off", len(cut), "2026-01-02", sampling={**made.sampling, "max_tokens": 128})
    assert longer.fingerprint != made.fingerprint
    with Journal.create(second, longer) as journal:
        run = batch(source, journal, ScriptedEngine(), wanted=cut)
        assert await run.run() == "done" and run.progress().total == 3
    assert sorted(result.index for result in results(second)) == [1, 4, 7]
    assert len(results(path)) == 9
    with pytest.raises(Failure) as nothing:
        again(made, "failed", len(Indices()), "")
    assert nothing.value.code == "batches.nothing_again"


async def test_a_hundred_thousand_rows_in_flat_memory(tmp_path: Path) -> None:
    """By what the system says of this process: to trace each object costs five times as long as the batch itself."""
    count, process = 100_000, psutil.Process()
    source = prompts(tmp_path, count, lambda number: f"prompt {number} " + "x" * 100)
    early = most = 0
    with Journal.create(tmp_path / "out.jsonl", manifest(source)) as journal:

        def on_rows(group: Sequence[Result]) -> None:
            nonlocal early, most
            most = max(most, process.memory_info().rss)
            if not early and len(journal.done) > count // 10:
                early = most

        assert await batch(source, journal, ScriptedEngine(room=256), on_rows=on_rows).run() == "done"
    assert len(journal.done) == count
    assert early and most < early + 48 * 2**20, "90,000 results as objects would be some 200 MB"


PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(["tests.batches.scripted_engine"])


def ended(folder: Path, seconds: float, after: float | None = None) -> tuple[set[int], str]:
    """(the rows that a process told, its last word), with SIGKILL `after` seconds from its start on, or at its own end."""
    reading, writing = PROCESSES.Pipe(duplex=False)
    process = PROCESSES.Process(target=resumed, args=(folder, seconds, writing))
    process.start()
    writing.close()
    before = reading.recv()
    assert isinstance(before, int)
    if after is not None:
        time.sleep(after)
        process.kill()
    told: set[int] = set()
    state = ""
    try:
        while True:
            word = reading.recv()
            if isinstance(word, str):
                state = word
            else:
                assert not told & set(word)
                told |= set(word)
    except (EOFError, UnpicklingError, OSError):  # the killed one's last word may be torn
        pass
    process.join()
    reading.close()
    return told, state


def test_fifty_kills_at_random_moments_lose_and_double_nothing(tmp_path: Path) -> None:
    """Rows that were told are there; each row is there once; and at the end there is none missing."""
    count, random_moment = 6000, random.Random(5)
    prompts(tmp_path, count)
    path = tmp_path / "out.jsonl"
    told: set[int] = set()
    torn = 0
    for _ in range(50):
        rows, state = ended(tmp_path, 0.05, random_moment.uniform(0.0, 0.35))
        assert not state, "more rows are needed, so that every kill meets a running batch"
        assert not told & rows, "a row that had been told was run again"
        told |= rows
        assert told <= {result.index for result in results(path)}, "a row was shown that is not on disk"
        if random_moment.random() < 0.5:  # what a crash of the machine adds: a line that was half written
            torn += 1
            with path.open("ab") as file:
                file.write(results(path)[0].to_line()[: random_moment.randrange(1, 200)] if told else b"{")
    assert 0 < len(told) < count and torn
    rows, state = ended(tmp_path, 0.0)
    assert state == "done" and not told & rows
    found = results(path)
    assert len(found) == count and sorted(result.index for result in found) == list(range(count))
    assert len({result.run for result in found}) == 1
