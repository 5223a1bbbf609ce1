"""Two versions of a batch, row by row, from their tables; sums are kept for as long as neither grows."""

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass

from kimi_demo.batches.comparing import Agreement, Comparison, Pair, compare, summary
from kimi_demo.batches.finished import Finished

_AT_ONCE = 256
_KEPT = 8


@dataclass(frozen=True)
class Listed:
    """sums: over all rows; indices: of the rows that are listed."""

    sums: Comparison
    indices: list[int]


def pairs_of(first: Finished, second: Finished, start: int = 0, stop: int | None = None) -> Iterator[Pair]:
    """The rows from `start` to before `stop` that either has, in the order of their file."""
    end = max(first.highest, second.highest) + 1
    for low in range(start, end if stop is None else min(stop, end), _AT_ONCE):
        high = min(low + _AT_ONCE, end if stop is None else stop)
        one, other = ({result.index: result for result in table.between(low, high)} for table in (first, second))
        for index in sorted(one.keys() | other.keys()):
            yield compare(one.get(index), other.get(index))


class SideBySide:
    """May be used from any thread: two that ask for the same at once do the same work twice, no more."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[str, str, int, int, Agreement | None], Listed] = OrderedDict()

    def listed(self, first: Finished, second: Finished, only: Agreement | None) -> Listed:
        """only: lists rows of this agreement; None for all."""
        key = (str(first.path), str(second.path), len(first), len(second), only)
        found = self._kept.get(key)
        if found is None:
            indices: list[int] = []
            sums = summary(_noted(pairs_of(first, second), only, indices))
            found = self._kept[key] = Listed(sums, indices)
            while len(self._kept) > _KEPT:
                self._kept.popitem(last=False)
        return found


def _noted(found: Iterator[Pair], only: Agreement | None, indices: list[int]) -> Iterator[Pair]:
    for pair in found:
        if only is None or pair.agreement == only:
            indices.append(pair.index)
        yield pair
