"""What becomes of a viewer's runs at the gate: refused in a sentence with its time, in line with a place, stopped when too long."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from kimi_demo.dialect.events import AnswerDelta, Asked, Failed, Phase, Usage
from kimi_demo.dialect.failure import Failure
from kimi_demo.limits.gate import Gate
from kimi_demo.runs.registry import Registry
from kimi_demo.runs.run import Run
from kimi_demo.runs.store import Store
from kimi_demo.settings import Settings
from kimi_demo.ui.texts import texts

ANN, BOB, OPERATOR = "v" + "a" * 31, "v" + "b" * 31, "c" * 32
NOON = datetime(2026, 12, 1, 22, 30, tzinfo=UTC)


class Clock:
    def __init__(self) -> None:
        self.passed = 0.0

    def __call__(self) -> float:
        return self.passed

    def now(self) -> datetime:
        return NOON + timedelta(seconds=self.passed)


class Place:
    """A registry behind a gate, and runs that end when they are told to."""

    def __init__(self, folder: Path, **limits: Any) -> None:
        self.clock = Clock()
        self.settings = Settings(_env_file=None, data=folder, public=True, **limits)
        self.gate = Gate(self.settings, self.clock, self.clock.now)
        self.registry = Registry(Store(folder / "runs.db"), max_at_once=2)
        self.registry.gate = self.gate
        self.ending: dict[str, asyncio.Event] = {}

    def start(self, owner: str = ANN, *, text: str = "hello", max_tokens: int = 50) -> Run:
        async def work(run: Run) -> None:
            run.append(AnswerDelta("yes"))
            await self.ending.setdefault(run.id, asyncio.Event()).wait()
            run.append(Usage(prompt_tokens=5, completion_tokens=max_tokens))

        return self.registry.start(owner, "chat", work, title="t", asked=Asked(text, {"max_tokens": max_tokens}))

    async def end(self, run: Run) -> None:
        self.ending.setdefault(run.id, asyncio.Event()).set()
        await run.wait()
        await asyncio.sleep(0)


@contextmanager
def refused(code: str) -> Iterator[list[Failure]]:
    found: list[Failure] = []
    with pytest.raises(Failure) as caught:
        yield found
    assert caught.value.code == code
    found.append(caught.value)


async def until(run: Run, kind: type) -> Any:
    async for entries in run.follow():
        for item in entries:
            if isinstance(item.event, kind):
                return item.event
    raise AssertionError(f"{run.state} without {kind.__name__}")


async def test_the_third_waits_with_a_place_that_is_said_and_gets_its_turn(tmp_path: Path) -> None:
    place = Place(tmp_path, public_runs=1, public_requests_per_minute=50)
    first, second, third = place.start(ANN), place.start(BOB), place.start("v" + "d" * 31)
    await until(first, AnswerDelta)
    assert (await until(second, Phase)).params == {"place": "1"} and (await until(third, Phase)).params == {"place": "2"}
    assert "place 2" in texts("en").say("phase.in_line", place="2") and place.gate.line.going == 1
    second.cancel()  # who leaves the line moves the others up
    assert await second.wait() == "stopped"
    await place.end(first)
    await until(third, AnswerDelta)
    assert [item.event.params["place"] for item in third.entries if isinstance(item.event, Phase)] == ["2", "1"]
    await place.end(third)
    assert place.gate.line.going == place.gate.line.waiting == 0


async def test_the_operator_is_not_in_the_line_and_has_no_limits(tmp_path: Path) -> None:
    place = Place(tmp_path, public_runs=1, public_requests_per_minute=1)
    viewer, operator = place.start(ANN), place.start(OPERATOR, text="x" * 100_000, max_tokens=100_000)
    await until(operator, AnswerDelta)
    await place.end(operator)
    await place.end(viewer)
    assert place.gate.left(ANN) == place.settings.public_tokens_per_day - 55


async def test_too_often_is_told_with_when_it_is_free(tmp_path: Path) -> None:
    place = Place(tmp_path, public_requests_per_minute=2, public_line_each=9)
    runs = [place.start(), place.start()]
    place.clock.passed = 20.0
    with refused("limits.pace") as found:
        place.start()
    assert "room again in 40 s" in texts("en").sentence(found[0])
    runs.append(place.start(BOB))  # another visitor is not slowed
    place.clock.passed = 61.0
    runs.append(place.start())
    for run in runs:
        run.cancel()
        await run.wait()


async def test_visitors_without_a_cookie_are_one_to_the_limits(tmp_path: Path) -> None:
    place = Place(tmp_path, public_requests_per_minute=1)
    run = place.start("w" + "1" * 31)
    with refused("limits.pace"):
        place.start("w" + "2" * 31)
    await place.end(run)


async def test_a_day_s_tokens_end_and_come_back_at_midnight(tmp_path: Path) -> None:
    place = Place(tmp_path, public_tokens_per_day=150)
    first = place.start(max_tokens=100)
    with refused("limits.tokens"):  # 100 of them are held back while it runs
        place.start(max_tokens=100)
    await place.end(first)
    with refused("limits.tokens") as found:
        place.start(max_tokens=100)
    assert "you have 45 of today's 150 left" in texts("en").sentence(found[0]) and "in 1 h 30 min" in texts("en").sentence(found[0])
    again = Gate(place.settings, place.clock, place.clock.now)
    assert again.left(ANN) == 45  # a restart gives nothing back
    place.clock.passed = 3 * 3600.0
    await place.end(place.start(max_tokens=100))


async def test_all_visitors_together_have_a_day_s_tokens_too(tmp_path: Path) -> None:
    place = Place(tmp_path, public_tokens_per_day_all=150)
    run = place.start(ANN, max_tokens=100)
    with refused("limits.tokens_of_all"):
        place.start(BOB, max_tokens=100)
    await place.end(run)


async def test_what_is_stopped_before_its_first_step_leaves_the_line(tmp_path: Path) -> None:
    place = Place(tmp_path, public_tokens_per_day=100)
    run = place.start(max_tokens=90)
    run.cancel()
    await run.wait()
    await asyncio.sleep(0)
    assert place.gate.line.going == 0 and place.gate.left(ANN) == 100


async def test_a_run_that_takes_too_long_is_ended_with_a_sentence(tmp_path: Path) -> None:
    place = Place(tmp_path, public_run_s=0.05)
    run = place.start()
    assert await run.wait() == "failed"
    failed = next(item.event for item in run.entries if isinstance(item.event, Failed))
    assert failed.code == "limits.too_long" and "0.05 seconds" in texts("en").failure(failed.code, failed.params)[0]


async def test_the_line_s_end_is_said(tmp_path: Path) -> None:
    place = Place(tmp_path, public_runs=1, public_line=1)
    runs = [place.start(ANN), place.start(BOB)]
    with refused("limits.line_full"):
        place.start("v" + "d" * 31)
    for run in runs:
        run.cancel()
        await run.wait()
