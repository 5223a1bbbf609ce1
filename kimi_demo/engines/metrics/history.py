"""The last minutes of a server's metrics: a ring of readings, and what is derived from two of them."""

from collections import deque
from dataclasses import dataclass
from math import inf

from kimi_demo.engines.metrics.reading import Buckets, Reading


@dataclass(frozen=True)
class Moment:
    """A reading, and when it was taken (time.monotonic())."""

    at: float
    reading: Reading


@dataclass(frozen=True)
class Rates:
    """Between two readings. Tokens a second; hits: share of prompt tokens that the prefix cache had, 0 to 1; None: not known."""

    prompt: float | None
    generation: float | None
    hits: float | None
    preemptions: float | None


class History:
    """Keeps the readings of the last `seconds`, at most `most` of them."""

    def __init__(self, seconds: float = 900.0, most: int = 2000) -> None:
        self._seconds = seconds
        self._moments: deque[Moment] = deque(maxlen=most)

    @property
    def moments(self) -> tuple[Moment, ...]:
        """Oldest first."""
        return tuple(self._moments)

    def add(self, at: float, reading: Reading) -> None:
        """A server that was restarted counts from zero again: what was before is forgotten."""
        if self._moments and restarted(self._moments[-1].reading, reading):
            self._moments.clear()
        self._moments.append(Moment(at, reading))
        while self._moments[0].at < at - self._seconds:
            self._moments.popleft()

    def rates(self, window_s: float) -> Rates | None:
        """Over the last `window_s` seconds, or as much of them as is known; None before there are two readings."""
        pair = self._pair(window_s)
        return None if pair is None else rates(*pair)

    def percentile(self, name: str, share: float, window_s: float) -> float | None:
        """Seconds that `share` (0.5, 0.95) of the observations of the last `window_s` seconds stayed below; None without any.

        name: a histogram of `Reading`: first_token, between_tokens, whole, queue.
        """
        pair = self._pair(window_s)
        if pair is None:
            return None
        return percentile(getattr(pair[0].reading, name), getattr(pair[1].reading, name), share)

    def _pair(self, window_s: float) -> tuple[Moment, Moment] | None:
        if len(self._moments) < 2:
            return None
        last = self._moments[-1]
        first = next(moment for moment in self._moments if moment.at >= last.at - window_s)
        return (self._moments[-2], last) if first is last else (first, last)


def rates(earlier: Moment, later: Moment) -> Rates:
    seconds = later.at - earlier.at
    old, new = earlier.reading, later.reading
    queries, hits = _grown(old.prefix_queries, new.prefix_queries), _grown(old.prefix_hits, new.prefix_hits)
    return Rates(
        prompt=_per_second(old.prompt_tokens, new.prompt_tokens, seconds),
        generation=_per_second(old.generation_tokens, new.generation_tokens, seconds),
        hits=hits / queries if hits is not None and queries else None,
        preemptions=_grown(old.preemptions, new.preemptions),
    )


def percentile(earlier: Buckets, later: Buckets, share: float) -> float | None:
    """The quantile of what was observed between two readings, as Prometheus' histogram_quantile estimates it.

    Inside a bucket the observations are taken as spread evenly; in the last one, which has no end, its beginning is the answer.
    """
    bounds = sorted(later)
    counts = [later[bound] - earlier.get(bound, 0.0) for bound in bounds]
    if not counts or counts[-1] <= 0:
        return None
    wanted = share * counts[-1]
    below, start = 0.0, 0.0
    for bound, count in zip(bounds, counts, strict=True):
        if count >= wanted and count > below:
            return start if bound == inf else start + (bound - start) * (wanted - below) / (count - below)
        below, start = count, bound
    return start


def restarted(earlier: Reading, later: Reading) -> bool:
    """Whether a counter went back."""
    pairs = ((earlier.prompt_tokens, later.prompt_tokens), (earlier.generation_tokens, later.generation_tokens))
    return any(old is not None and new is not None and new < old for old, new in pairs)


def _grown(old: float | None, new: float | None) -> float | None:
    return None if old is None or new is None else max(0.0, new - old)


def _per_second(old: float | None, new: float | None, seconds: float) -> float | None:
    grown = _grown(old, new)
    return None if grown is None or seconds <= 0 else grown / seconds
