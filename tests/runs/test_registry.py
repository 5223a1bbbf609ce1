"""The runs of all people: who finds what, how many at once, and what is left of them later."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from kimi_demo.dialect.events import AnswerDelta, Asked, Ended, Event
from kimi_demo.dialect.failure import Failure
from kimi_demo.runs.registry import Registry
from kimi_demo.runs.run import Run
from kimi_demo.runs.store import Store
from tests.engines.living import until
from tests.runs.files import fill

Work = Callable[[Run], Awaitable[None]]


@pytest.fixture
async def registry(tmp_path: Path) -> AsyncIterator[Registry]:
    store = Store(tmp_path / "runs.sqlite")
    registry = Registry(store, max_at_once=4, keep=2)
    yield registry
    await registry.aclose()
    store.close()


async def answers(run: Run) -> None:
    run.append(AnswerDelta("a"))


async def talks(run: Run) -> None:
    run.append(AnswerDelta("a" * 100_000))


async def hangs(run: Run) -> None:
    await asyncio.Event().wait()


def start(registry: Registry, work: Work = answers, owner: str = "me", kind: str = "chat", group: str | None = None) -> Run:
    return registry.start(owner, kind, work, title="t", group=group, asked=Asked("?", {"thinking": True}))


async def finished(registry: Registry, **more: str) -> Run:
    run = start(registry, **more)  # type: ignore[arg-type]
    await run.wait()
    return run


async def push_out(registry: Registry) -> None:
    """Lets so many runs follow that the earlier ones are on disk only."""
    for _ in range(3):
        await asyncio.to_thread(registry.store.flush)
        await finished(registry)


def events_of(run: Run) -> list[Event]:
    return [item.event for item in run.entries]


async def unknown(registry: Registry, run_id: str, owner: str) -> Failure:
    with pytest.raises(Failure) as raised:
        await registry.get(run_id, owner)
    return raised.value


async def test_a_run_begins_with_its_question_and_ends(registry: Registry) -> None:
    run = start(registry)
    assert run.asked == Asked("?", {"thinking": True}) and run.state == "running"
    await run.wait()
    assert events_of(run) == [Asked("?", {"thinking": True}), AnswerDelta("a"), Ended("done")]


async def test_another_owner_gets_the_same_answer_as_for_a_run_that_never_was(registry: Registry) -> None:
    going, gone = start(registry, hangs), await finished(registry)
    await push_out(registry)
    assert registry._in_memory(gone.id) is None
    told = [await unknown(registry, run_id, "you") for run_id in (going.id, gone.id, "never", "")]
    assert {(failure.code, str(failure.params)) for failure in told} == {("runs.unknown", "{}")}
    assert (await registry.get(going.id, "me")) is going
    assert (await registry.get(gone.id, "me")).id == gone.id


async def test_a_run_that_is_on_disk_only_is_read_once(registry: Registry) -> None:
    run = await finished(registry)
    await push_out(registry)
    first, second = await asyncio.gather(registry.get(run.id, "me"), registry.get(run.id, "me"))
    assert first is second and first is not run
    assert events_of(first) == events_of(run)


async def test_only_so_many_at_once(registry: Registry) -> None:
    going = [start(registry, hangs, owner=f"owner {number}") for number in range(4)]
    with pytest.raises(Failure) as raised:
        start(registry)
    assert (raised.value.code, raised.value.params) == ("runs.too_many", {"limit": "4"})
    going[0].cancel()
    await going[0].wait()
    await finished(registry)


async def test_a_group_is_in_order_of_creation_wherever_its_runs_are(registry: Registry) -> None:
    runs = [await finished(registry, group="g") for _ in range(4)]
    runs.append(start(registry, hangs, group="g"))
    await finished(registry, group="other")
    await finished(registry, group="g", owner="you")
    assert [run.id for run in await registry.group("g", "me")] == [run.id for run in runs]
    assert await registry.group("g", "nobody") == []


async def test_with_a_full_disk_runs_go_on_and_are_found(registry: Registry) -> None:
    fill(registry.store)
    runs = [start(registry, talks, group="g") for _ in range(4)]
    for run in runs:
        assert await run.wait() == "done"
        await asyncio.to_thread(registry.store.flush)
    assert registry.store.trouble is not None
    assert await registry.group("g", "me") == runs
    assert await registry.latest("me", "chat") is runs[-1]


async def test_the_latest_of_a_kind(registry: Registry) -> None:
    assert await registry.latest("me", "chat") is None
    chat = start(registry, hangs)
    tools = await finished(registry, kind="tools")
    await finished(registry, owner="you")
    assert await registry.latest("me", "chat") is chat
    assert await registry.latest("me", "tools") is tools
    newer = await finished(registry)
    assert await registry.latest("me", "chat") is newer


async def test_active_runs(registry: Registry) -> None:
    first, second, others = start(registry, hangs), start(registry, hangs, kind="tools"), start(registry, hangs, owner="you")
    await finished(registry)
    assert registry.active("me") == [first, second]
    assert registry.active("me", "tools") == [second]
    assert registry.active("you") == [others]
    assert registry.active("nobody") == []


async def test_deleting_stops_and_removes(registry: Registry) -> None:
    going, done = start(registry, hangs, group="g"), await finished(registry, group="g")
    for owner in ("you", ""):
        with pytest.raises(Failure, match=r"runs\.unknown"):
            await registry.delete(going.id, owner)
    assert not going.ended
    await registry.delete(going.id, "me")
    await registry.delete(done.id, "me")
    assert going.state == "stopped"
    assert await registry.group("g", "me") == []
    assert (await unknown(registry, going.id, "me")).code == "runs.unknown"
    assert registry.store.trouble is None


async def test_closing_stops_everything_and_writes_it(tmp_path: Path) -> None:
    store = Store(tmp_path / "runs.sqlite", commit_every=3600)
    registry = Registry(store, max_at_once=4)
    cleaned = asyncio.Event()

    async def work(run: Run) -> None:
        try:
            run.append(AnswerDelta("so far"))
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            cleaned.set()

    run = start(registry, work)
    await asyncio.sleep(0)
    await registry.aclose()
    assert cleaned.is_set() and run.state == "stopped"
    with pytest.raises(Failure, match=r"runs\.closing"):
        start(registry)
    store.close()
    again = Store(tmp_path / "runs.sqlite")
    found = await Registry(again, 4).get(run.id, "me")
    again.close()
    assert events_of(found) == events_of(run) and found.state == "stopped"


async def test_runs_outlive_the_application(tmp_path: Path) -> None:
    for expected in (1, 2, 3):
        store = Store(tmp_path / "runs.sqlite")
        registry = Registry(store, 4)
        await finished(registry, group="g")
        assert [run.state for run in await registry.group("g", "me")] == ["done"] * expected
        await registry.aclose()
        store.close()


async def test_half_a_surrogate_pair_in_a_question_stops_neither_the_store_nor_the_run(registry: Registry) -> None:
    broken = "a\ud800b \ud83d\ude00"
    run = registry.start("me", "chat", answers, title=broken, asked=Asked(broken, {}))
    await run.wait()
    assert run.title == "a\ufffdb 😀" and run.asked is not None and run.asked.text == run.title
    registry.add_finished("me", "chat", [Asked("?", {})], title=broken)
    later = await finished(registry)
    # Asks for no write: the store's own thread has to be alive.
    assert await asyncio.to_thread(until, lambda: registry.store.holds(later.id), 5.0)
    loaded = await asyncio.to_thread(registry.store.load, run.id, "me")
    assert loaded is not None and events_of(loaded) == events_of(run) and loaded.title == run.title
