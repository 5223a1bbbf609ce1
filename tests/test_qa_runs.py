"""The page's QA runs: one at a time, kept as they go, gone on with after a stop and after a restart, judged, held against each other."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from kimi_demo.dialect.failure import Failure
from kimi_demo.engines.accelerators import Lease
from kimi_demo.engines.chat_engine import ChatEngine
from kimi_demo.engines.guardian import Guardian
from kimi_demo.engines.model_folder import ModelFolder
from kimi_demo.qa.case import Overrides
from kimi_demo.qa.report import read_report
from kimi_demo.qa_books import Books
from kimi_demo.qa_runs import QaRuns
from kimi_demo.qa_suites import Catalogue
from kimi_demo.settings import Settings
from tests.qa.playing import playing
from tests.scripted_script import Ask, Script, thought_of, told
from tests.scripted_server import Scripted, running

SUITE = """
name: mine
title: Mine
at_once: 2
cases:
  - {id: one, ask: Number 1, checks: {answer: {contains: blue}}}
  - {id: two, ask: Number 2, checks: {answer: {contains: blue}}}
  - {id: three, ask: Number 3, manual: "Is it friendly?"}
"""


@pytest.fixture(scope="module")
def server() -> Iterator[Scripted]:
    with running() as started:
        yield started


@pytest.fixture
async def make(server: Scripted, tmp_path: Path) -> AsyncIterator[Callable[[], QaRuns]]:
    """Makes the application's part anew on the same folder, as a restart does."""
    settings = Settings(_env_file=None, data=tmp_path, base_url=server.base_url)
    (tmp_path / "suites").mkdir()
    (tmp_path / "suites" / "mine.yaml").write_text(SUITE)
    guardian = Guardian()
    engine = ChatEngine(settings, ModelFolder(settings), Lease(shared=True), guardian)
    made: list[QaRuns] = []

    def one() -> QaRuns:
        books = Books(tmp_path / "qa")
        books.recover()
        made.append(QaRuns(engine, books, Catalogue(tmp_path / "suites")))
        return made[-1]

    yield one
    for runs in made:
        await runs.aclose()
    await engine.stop()
    guardian.close()


def blue(ask: Ask) -> Script:
    return Script((*thought_of(ask, "Hm."), *told("content", "Blue.")))


def blue_but_two(ask: Ask) -> Script:
    return Script(told("content", "Red.")) if "Number 2" in str(ask.body["messages"]) else blue(ask)


def silent_after_one(ask: Ask) -> Script:
    return blue(ask) if "Number 1" in str(ask.body["messages"]) else Script((), silence_s=600)


async def ended(runs: QaRuns) -> None:
    assert runs.going is not None and runs.going.task is not None
    await asyncio.wait_for(asyncio.shield(runs.going.task), 30)
    assert runs.going is None


async def states(runs: QaRuns, run: str) -> dict[str, str]:
    report = await runs.report(run)
    assert report is not None
    return {case.id: case.state for case in report.cases}


async def until(seen: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while True:
            if seen():
                return
            await asyncio.sleep(0.02)


async def one_done(runs: QaRuns) -> None:
    await until(lambda: runs.going is not None and runs.going.run is not None and runs.going.run.report().counts["pass"] == 1)


async def test_a_run_is_kept_and_only_what_failed_is_asked_again(make: Callable[[], QaRuns], server: Scripted, tmp_path: Path) -> None:
    runs = make()
    with playing(server, blue_but_two):
        card = await runs.start("mine", Overrides(preset="guide_thinking"), 1)
        with pytest.raises(Failure) as caught:
            await runs.start("smoke", Overrides())
        assert caught.value.code == "qa_page.busy"
        for act in (runs.delete(card.id), runs.set_baseline(card.id)):
            with pytest.raises(Failure) as caught:
                await act
            assert caught.value.code == "qa_page.going"
        await ended(runs)
    assert await states(runs, card.id) == {"one": "pass", "two": "fail", "three": "open"}
    found = runs.card(card.id)
    assert (found.state, found.counts, found.model) == ("done", {"pass": 1, "fail": 1, "open": 1}, server.model_ids[0])
    written = read_report(tmp_path / "qa" / "runs" / card.id / "report.json")
    assert written == await runs.report(card.id) and written.at_once == 1 and written.overrides == {"preset": "guide_thinking"}

    again = make()
    with playing(server, blue):
        await again.again(card.id)
        await ended(again)
        assert len(server.chats) == 1 and server.chats[0].body["top_k"] == 20  # as the run was started
    assert await states(again, card.id) == {"one": "pass", "two": "pass", "three": "open"}
    with pytest.raises(Failure) as caught:
        await again.again(card.id)
    assert caught.value.code == "qa_page.nothing_again"


async def test_stop_closes_what_is_open_and_the_rest_can_be_run(make: Callable[[], QaRuns], server: Scripted) -> None:
    runs = make()
    with playing(server, silent_after_one):
        card = await runs.start("mine", Overrides())
        await one_done(runs)
        await server.arrived(3)
        await runs.stop()
        await server.aborted(2)
    assert runs.card(card.id).state == "stopped" and await states(runs, card.id) == {"one": "pass", "two": "waiting", "three": "waiting"}
    with playing(server, blue):
        await runs.again(card.id)
        await ended(runs)
        assert len(server.chats) == 2
    assert runs.card(card.id).state == "done" and await states(runs, card.id) == {"one": "pass", "two": "pass", "three": "open"}
    report = await runs.report(card.id)
    assert report is not None and not report.stopped


async def test_the_end_of_the_demo_interrupts_a_run_and_the_next_goes_on(make: Callable[[], QaRuns], server: Scripted) -> None:
    runs = make()
    with playing(server, silent_after_one):
        card = await runs.start("mine", Overrides())
        await one_done(runs)
        await runs.aclose()
    after = make()
    assert after.card(card.id).state == "interrupted" and after.card(card.id).counts == {"pass": 1, "waiting": 2}
    with playing(server, blue):
        await after.again(card.id)
        await ended(after)
        assert len(server.chats) == 2
    assert after.card(card.id).state == "done"


async def test_what_a_crash_leaves_is_what_had_finished(make: Callable[[], QaRuns], server: Scripted, tmp_path: Path) -> None:
    """The folder as it lies there in the middle of a run is what the next start finds."""
    runs = make()
    with playing(server, silent_after_one):
        card = await runs.start("mine", Overrides())
        path = tmp_path / "qa" / "runs" / card.id / "report.json"
        await until(lambda: path.exists() and bool(read_report(path).counts["pass"]))
        crashed = Books(tmp_path / "qa")
        crashed.recover()
        await runs.stop()
    assert crashed.get(card.id).state == "interrupted" and crashed.get(card.id).counts == {"pass": 1, "waiting": 2}


async def test_a_server_that_cannot_be_reached_is_the_runs_end_and_is_said(make: Callable[[], QaRuns], server: Scripted) -> None:
    runs = make()
    server.models_answer = "models_empty"
    try:
        card = await runs.start("mine", Overrides())
        await ended(runs)
    finally:
        server.reset()
    assert runs.card(card.id).state == "failed" and (runs.card(card.id).failure or "").startswith("endpoint.")
    assert await runs.report(card.id) is None
    with pytest.raises(Failure) as caught:
        await runs.set_baseline(card.id)
    assert caught.value.code == "qa_page.no_report"
    with playing(server, blue):
        await runs.again(card.id)
        await ended(runs)
    assert runs.card(card.id).state == "done" and runs.card(card.id).failure is None


async def test_a_report_never_mixes_two_models(make: Callable[[], QaRuns], server: Scripted) -> None:
    runs = make()
    with playing(server, blue_but_two):
        card = await runs.start("mine", Overrides())
        await ended(runs)
    before = await runs.report(card.id)
    assert before is not None
    other = before.model_copy(update={"server": before.server.model_copy(update={"model": "another"})})
    runs.books.save_report(card.id, other)
    with playing(server, blue):
        await runs.again(card.id)
        await ended(runs)
        assert not server.chats
    assert runs.card(card.id).failure == "qa_page.other_model" and await runs.report(card.id) == other


async def test_a_person_judges_now_or_later(make: Callable[[], QaRuns], server: Scripted) -> None:
    runs = make()
    with playing(server, blue):
        card = await runs.start("mine", Overrides())
        await ended(runs)
    await runs.judge(card.id, "three", good=False, note="too short")
    assert runs.card(card.id).counts == {"pass": 2, "fail": 1}
    after = make()
    report = await after.report(card.id)
    assert report is not None and report.cases[2].note == "too short" and report.cases[2].state == "fail"
    await after.judge(card.id, "three", good=True, note="")
    assert after.card(card.id).counts == {"pass": 3}
    for case in ("one", "none"):
        with pytest.raises(Failure) as caught:
            await after.judge(card.id, case, good=True, note="")
        assert caught.value.code == "qa_page.not_manual"


async def test_what_a_run_is_held_against(make: Callable[[], QaRuns], server: Scripted) -> None:
    runs = make()
    with playing(server, blue):
        first = await runs.start("mine", Overrides())
        await ended(runs)
        other = await runs.start("smoke", Overrides(), 32)
        await ended(runs)
    await runs.set_baseline(first.id)
    baseline = await runs.held_against("mine", "baseline")
    assert baseline is not None and baseline.cases == (await runs.held_against("mine", first.id)).cases  # type: ignore[union-attr]
    assert await runs.held_against("mine", other.id) is None and await runs.held_against("mine", "none") is None
    assert await runs.held_against("smoke", "baseline") is None
    await runs.delete(first.id)
    assert await runs.held_against("mine", "baseline") is not None
    await runs.drop_baseline(other.id)  # another suite's: nothing happens to ours
    assert await runs.baseline("mine") is not None


async def test_a_report_that_cannot_be_written_is_said_and_stays_in_memory(
    make: Callable[[], QaRuns], server: Scripted, tmp_path: Path
) -> None:
    runs = make()
    with playing(server, blue):
        card = await runs.start("mine", Overrides())
        (tmp_path / "qa" / "runs" / card.id / "report.json").mkdir()  # in its place, before the first case is finished
        await ended(runs)
    assert runs.trouble is not None and runs.trouble.code == "qa.unwritable"
    assert await states(runs, card.id) == {"one": "pass", "two": "pass", "three": "open"} and runs.card(card.id).state == "done"
