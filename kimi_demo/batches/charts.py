"""Figures behind the plots of a batch: how long thoughts and answers are, and how fast tokens came over time. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

BINS = 24
_STEPS = 60


@dataclass(frozen=True)
class Histogram:
    """counts: of values in bins of equal width from 0; the last also holds all that are larger. width: of one bin."""

    counts: tuple[int, ...]
    width: int
    largest: int
    mean: float


@dataclass(frozen=True)
class Rates:
    """per_second: tokens generated per second in steps of `step_s` seconds, from the first row's beginning to the last one's end.

    Sittings of a batch that was interrupted are put end to end: a gap in which no row was in the engine is left out.
    """

    per_second: tuple[float, ...]
    step_s: float


def histogram(values: Sequence[int]) -> Histogram:
    """Up to the 99th percentile, so that one very long text does not press all others into the first bin."""
    if not values:
        return Histogram((0,) * BINS, 1, 0, 0.0)
    ordered = sorted(values)
    high = ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))]
    width = _round(max(1, -(-(high + 1) // BINS)))
    counts = [0] * BINS
    for value in values:
        counts[min(BINS - 1, value // width)] += 1
    return Histogram(tuple(counts), width, ordered[-1], sum(values) / len(values))


def _round(width: int) -> int:
    """The next of 1, 2, 5, 10, 20, 50, …"""
    scale = 1
    while True:
        for base in (1, 2, 5):
            if base * scale >= width:
                return base * scale
        scale *= 10


def rates(tokens: Sequence[int], ended: Sequence[float], took: Sequence[float]) -> Rates:
    """Each row's tokens are spread evenly over the time that it was in the engine. ended: seconds since 1970; took: seconds."""
    spans = sorted((end - max(seconds, 0.001), end, count) for count, end, seconds in zip(tokens, ended, took, strict=True) if end > 0)
    if not spans:
        return Rates((), 1.0)
    placed, reach, shift = [], spans[0][0], spans[0][0]
    for start, end, count in spans:
        if start > reach:  # nothing was in the engine between
            shift += start - reach
        reach = max(reach, end)
        placed.append((start - shift, end - shift, count))
    total = reach - shift
    steps = min(_STEPS, max(1, round(total)))
    step_s = total / steps
    sums = [0.0] * steps
    for start, end, count in placed:
        first, last = min(steps - 1, int(start / step_s)), min(steps - 1, int(end / step_s))
        if first == last:
            sums[first] += count
            continue
        density = count / (end - start)
        sums[first] += density * ((first + 1) * step_s - start)
        sums[last] += density * (end - last * step_s)
        for at in range(first + 1, last):
            sums[at] += density * step_s
    return Rates(tuple(amount / step_s for amount in sums), step_s)
