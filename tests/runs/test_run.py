"""A run: following it, ending it. Times are given to `follow`; what is counted is batches and wake-ups, not seconds."""

import asyncio
import logging
import threading
from typing import Any

import pytest

from kimi_demo.dialect.events import AnswerDelta, Asked, Ended, Event, Failed, Phase, Timed
from kimi_demo.dialect.failure import Failure
from kimi_demo.runs.run import Run, State

LONG = 3600.0


def new_run() -> Run:
    run = Run(owner="me", kind="chat", title="t")
    run.append(Asked("?"))
    return run


async def gather(run: Run, cursor: int = 0, **more: Any) -> list[list[Timed]]:
    return [batch async for batch in run.follow(cursor, **more)]


def texts(batches: list[list[Timed]]) -> str:
    return "".join(item.event.text for batch in batches for item in batch if isinstance(item.event, AnswerDelta))


async def ended_with(work: object) -> tuple[State, list[Event]]:
    run = new_run()
    run.start(work)  # type: ignore[arg-type]
    state = await run.wait()
    return state, [item.event for item in run.entries]


# Following


async def test_a_run_takes_over_an_earlier_one_with_its_times() -> None:
    run = Run(owner="me", kind="tools", title="t")
    run.append(Asked("?"))
    run.carry([Timed(10.0, Phase("a")), Timed(100.0, Phase("b"))])
    run.append(Phase("c"))
    assert [item.at for item in run.entries[1:3]] == [10.0, 100.0]
    assert 100.0 <= run.entries[3].at < 160.0
    run.carry([])
    assert len(run.entries) == 4


async def test_what_is_there_comes_at_once_and_the_end_ends_it() -> None:
    run = new_run()
    run.append(AnswerDelta("a"))
    run.append(Ended("done"))
    batches = await asyncio.wait_for(gather(run, interval=LONG, heartbeat=LONG), 30)
    assert [[item.event.type for item in batch] for batch in batches] == [["asked", "answer_delta", "ended"]]


async def test_after_a_batch_the_next_waits_for_the_interval_and_holds_all_that_came(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    over = asyncio.Event()

    async def pause(seconds: float) -> None:
        pauses.append(seconds)
        await over.wait()

    run = new_run()
    follower = run.follow(interval=LONG, heartbeat=LONG)
    assert len(await anext(follower)) == 1
    monkeypatch.setattr(asyncio, "sleep", pause)
    second = asyncio.ensure_future(anext(follower))
    for number in range(100):
        run.append(AnswerDelta(str(number)))
        await asyncio.wait([second], timeout=0)
    assert len(pauses) == 1 and LONG - 60 < pauses[0] <= LONG and not second.done()
    over.set()
    assert len(await second) == 100


async def test_what_only_opens_a_reply_does_not_hold_up_its_first_word() -> None:
    run = new_run()
    follower = run.follow(interval=LONG, heartbeat=LONG, opening=(Asked, Phase))
    assert len(await anext(follower)) == 1
    for event in (Phase("prompt"), AnswerDelta("first")):
        waiting = asyncio.ensure_future(anext(follower))
        await asyncio.wait([waiting], timeout=0.01)
        run.append(event)
        assert [item.event for item in await asyncio.wait_for(waiting, 30)] == [event]
    run.append(Phase("between words"))
    paced = asyncio.ensure_future(anext(follower))
    assert not (await asyncio.wait([paced], timeout=0.05))[0]  # from the first word on, the interval is kept
    paced.cancel()


async def test_an_event_after_a_longer_silence_comes_at_once() -> None:
    run = new_run()
    follower = run.follow(interval=0.0, heartbeat=LONG)
    await anext(follower)
    waiting = asyncio.ensure_future(anext(follower))
    await asyncio.wait([waiting], timeout=0.05)
    run.append(AnswerDelta("a"))
    assert [item.event for item in await asyncio.wait_for(waiting, 30)] == [AnswerDelta("a")]


async def test_silence_is_told_by_empty_batches() -> None:
    run = new_run()
    follower = run.follow(interval=0.0, heartbeat=0.01)
    assert await anext(follower)
    assert [await anext(follower) for _ in range(3)] == [[], [], []]
    run.append(Ended("done"))
    assert [item.event for item in await anext(follower)] == [Ended("done")]


async def test_late_and_simultaneous_followers_get_the_same() -> None:
    run = new_run()
    early = [asyncio.create_task(gather(run, interval=interval)) for interval in (0.0, 0.01, 0.05)]
    await write(run, 50)
    late = await gather(run)
    whole = "".join(str(number) for number in range(50))
    assert [texts(await follower) for follower in early] == [whole] * 3
    assert texts(late) == whole and len(late) == 1


async def test_a_cursor_continues_where_another_left_off() -> None:
    run = new_run()
    await write(run, 10)
    assert [item.event for item in (await gather(run, 8))[0]] == [AnswerDelta("7"), AnswerDelta("8"), AnswerDelta("9"), Ended("done")]
    assert await gather(run, len(run.entries)) == []
    assert await gather(run, 10_000) == []
    assert len((await gather(run, -5))[0]) == 12


async def test_a_follower_that_leaves_disturbs_nobody() -> None:
    run = new_run()
    leaving, staying = asyncio.create_task(gather(run)), asyncio.create_task(gather(run))
    await asyncio.sleep(0)
    leaving.cancel()
    await write(run, 5)
    assert texts(await staying) == "01234"
    with pytest.raises(asyncio.CancelledError):
        await leaving


async def test_ten_thousand_events_wake_followers_a_few_times(monkeypatch: pytest.MonkeyPatch) -> None:
    wakes = 0
    wait = Run._wait_for_news

    async def counted(self: Run, seconds: float) -> bool:
        nonlocal wakes
        wakes += 1
        return await wait(self, seconds)

    monkeypatch.setattr(Run, "_wait_for_news", counted)
    run = new_run()
    tasks_before = len(asyncio.all_tasks())
    followers = [asyncio.create_task(gather(run, interval=LONG, heartbeat=LONG)) for _ in range(10)]
    await asyncio.sleep(0)
    for number in range(10_000):
        run.append(AnswerDelta("x"))
        if number % 100 == 0:
            await asyncio.sleep(0)
    assert len(asyncio.all_tasks()) == tasks_before + 10
    assert wakes == 0  # all of them sleep for their interval: no event costs them anything
    for follower in followers:
        follower.cancel()
    await asyncio.gather(*followers, return_exceptions=True)
    reader = asyncio.create_task(gather(run, len(run.entries), interval=0.0, heartbeat=LONG))
    await asyncio.sleep(0)
    for _ in range(10_000):
        run.append(AnswerDelta("y"))  # in one go: one wake-up
    run.append(Ended("done"))
    assert [len(batch) for batch in await reader] == [10_001]
    assert wakes == 1


async def test_followers_share_the_events() -> None:
    run = new_run()
    await write(run, 5)
    first, second = await gather(run), await gather(run)
    assert all(one is other for one, other in zip(first[0], second[0], strict=True))


# Appending


async def test_events_from_another_thread_come_in_their_order() -> None:
    async def work(run: Run) -> None:
        def engine() -> None:
            for number in range(1_000):
                run.append_threadsafe(AnswerDelta(f"{number},"))

        await asyncio.to_thread(engine)

    state, events = await ended_with(work)
    assert state == "done"
    assert "".join(event.text for event in events if isinstance(event, AnswerDelta)) == "".join(f"{n}," for n in range(1_000))


async def test_times_never_go_back() -> None:
    run = new_run()
    started = threading.Event()

    async def work(_: Run) -> None:
        def engine() -> None:
            run.append_threadsafe(AnswerDelta("thread"))
            started.set()

        thread = threading.Thread(target=engine)
        thread.start()
        started.wait(30)  # blocks the loop on purpose: the thread's event is stamped, and arrives after the next one
        run.append(AnswerDelta("loop"))
        await asyncio.sleep(0)
        thread.join()

    run.start(work)
    await run.wait()
    assert [item.event.text for item in run.entries if isinstance(item.event, AnswerDelta)] == ["loop", "thread"]
    at = [item.at for item in run.entries]
    assert at == sorted(at)


async def test_nothing_follows_the_end() -> None:
    run = new_run()
    run.append(Ended("done"))
    run.append(AnswerDelta("late"))
    run.append(Ended("failed"))
    assert [item.event.type for item in run.entries] == ["asked", "ended"]
    assert run.state == "done"


# Ending


async def test_work_that_returns_is_done() -> None:
    async def work(run: Run) -> None:
        run.append(AnswerDelta("a"))

    assert await ended_with(work) == ("done", [Asked("?"), AnswerDelta("a"), Ended("done")])


async def test_a_failure_is_told_by_its_code() -> None:
    async def work(run: Run) -> None:
        raise Failure("endpoint.refused", url="http://x")

    assert await ended_with(work) == ("failed", [Asked("?"), Failed("endpoint.refused", {"url": "http://x"}), Ended("failed")])


async def test_a_mistake_is_told_shortly_and_logged_in_full(caplog: pytest.LogCaptureFixture) -> None:
    async def work(run: Run) -> None:
        raise ValueError("bad\n" + "x" * 500)

    with caplog.at_level(logging.ERROR):
        state, events = await ended_with(work)
    assert state == "failed"
    assert isinstance(events[1], Failed) and events[1].code == "unexpected"
    assert events[1].params["error"].startswith("ValueError: bad x") and len(events[1].params["error"]) == 200
    assert caplog.records[0].exc_info is not None


async def test_cancel_ends_silence_at_once_and_waits_for_the_clean_up() -> None:
    waiting, cleaning, cleaned = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def work(run: Run) -> None:
        try:
            waiting.set()
            await asyncio.Event().wait()
        finally:
            await cleaning.wait()
            cleaned.set()

    run = new_run()
    run.start(work)
    follower = asyncio.create_task(gather(run, heartbeat=LONG))
    await waiting.wait()
    run.cancel()
    await asyncio.sleep(0)
    run.cancel()  # must not break into the clean-up
    assert not run.ended
    cleaning.set()
    assert await asyncio.wait_for(run.wait(), 30) == "stopped"
    assert cleaned.is_set()
    run.cancel()
    assert (await follower)[-1][-1].event == Ended("stopped")


async def test_cancel_before_the_first_step_ends_it_as_well() -> None:
    begun = False

    async def work(run: Run) -> None:
        nonlocal begun
        begun = True

    run = new_run()
    run.start(work)
    run.cancel()
    assert await asyncio.wait_for(run.wait(), 30) == "stopped"
    assert not begun


async def test_work_that_fails_while_it_is_stopped_is_stopped() -> None:
    async def work(run: Run) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            raise Failure("endpoint.closed")

    run = new_run()
    run.start(work)
    await asyncio.sleep(0)
    run.cancel()
    assert await run.wait() == "stopped"
    assert [item.event.type for item in run.entries] == ["asked", "ended"]


async def write(run: Run, count: int, pause: float = 0.0) -> None:
    for number in range(count):
        run.append(AnswerDelta(str(number)))
        await asyncio.sleep(pause)
    run.append(Ended("done"))
