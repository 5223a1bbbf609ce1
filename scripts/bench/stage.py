"""What the measurements share: the scripted server, the app attached to it, a browser, and how much is measured."""

import time
from dataclasses import dataclass

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
