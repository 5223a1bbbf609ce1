"""What is plotted of a server's metrics: one point per look, kept for as long as it is worth looking back at."""

from collections import deque
from dataclasses import dataclass

from kimi_demo.engines.metrics.history import History, Moment, rates, restarted
from kimi_demo.engines.metrics.reading import Reading

MOST_POINTS = 900
"""Half an hour of looks every 2 s, or four hours of one every 15 s."""

WINDOW_S = 300.0
"""The last minutes that latencies are taken over: a single request says nothing about a 95th percentile."""


@dataclass(frozen=True)
class Point:
    """at: seconds since 1970. Tokens per second since the look before; latencies in seconds over the last minutes; shares 0 to 1.

    None: not known, or nothing to take it from.
    """

    at: float
    running: float | None = None
    waiting: float | None = None
    cache_use: float | None = None
    prompt_rate: float | None = None
    generation_rate: float | None = None
    first_token_p50: float | None = None
    first_token_p95: float | None = None
    between_p50: float | None = None
    between_p95: float | None = None
    prefix_hits: float | None = None


class Points:
    """The looks at one server. `forget` before another is looked at: counters of two servers have nothing to do with each other."""

    def __init__(self) -> None:
        self.points: deque[Point] = deque(maxlen=MOST_POINTS)
        self.last: Reading | None = None
        self._before: Moment | None = None
        self._window = History(seconds=WINDOW_S)

    def forget(self) -> None:
        self.points.clear()
        self.last, self._before, self._window = None, None, History(seconds=WINDOW_S)

    def add(self, at: float, reading: Reading) -> Point:
        """at: seconds since 1970, later than the one before."""
        now, before = Moment(at, reading), self._before
        if before is not None and restarted(before.reading, reading):
            before = None
        self._window.add(at, reading)
        speed = rates(before, now) if before is not None else None
        point = Point(
            at=at,
            running=reading.running,
            waiting=reading.waiting,
            cache_use=reading.cache_use,
            prompt_rate=speed.prompt if speed else None,
            generation_rate=speed.generation if speed else None,
            first_token_p50=self._window.percentile("first_token", 0.5, WINDOW_S),
            first_token_p95=self._window.percentile("first_token", 0.95, WINDOW_S),
            between_p50=self._window.percentile("between_tokens", 0.5, WINDOW_S),
            between_p95=self._window.percentile("between_tokens", 0.95, WINDOW_S),
            prefix_hits=speed.hits if speed else None,
        )
        self.points.append(point)
        self.last, self._before = reading, now
        return point
