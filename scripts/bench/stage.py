"""What the measurements share: the scripted server, the app attached to it, a browser, and how much is measured."""

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

import psutil
from playwright.async_api import Browser

from scripts.bench.sizes import Sizes
from scripts.bench.upstream import Upstream
from tests.demo import Demo


@dataclass(frozen=True)
class Stage:
    sizes: Sizes
    upstream: Upstream
    demo: Demo
    browser: Browser

    @property
    def app(self) -> psutil.Process:
        return psutil.Process(self.demo.program.process.pid)


T = TypeVar("T")


async def in_turn(pairs: int, raw: Callable[[], Awaitable[T]], page: Callable[[], Awaitable[T]]) -> list[tuple[T, T]]:
    """So many (raw, page); who goes first changes, so that a machine that slows down favours nobody."""
    found: list[tuple[T, T]] = []
    for turn in range(pairs):
        if turn % 2:
            ours = await page()
            found.append((await raw(), ours))
        else:
            found.append((await raw(), await page()))
    return found


@dataclass(frozen=True)
class Clock:
    """Seconds of processor time of the app, of this process, and of the wall, at one moment."""

    app: float
    own: float
    wall: float

    @classmethod
    def now(cls, app: psutil.Process) -> "Clock":
        times = app.cpu_times()
        return cls(times.user + times.system, time.process_time(), time.perf_counter())

    def since(self, before: "Clock") -> "Clock":
        return Clock(self.app - before.app, self.own - before.own, self.wall - before.wall)


def memory_mb(process: psutil.Process) -> float:
    """Resident memory in MB of 10^6 bytes."""
    return float(process.memory_info().rss) / 1e6
