"""The finished rows of a batch, at hand: which there are, filtered, ordered, searched, a window of them at a time.

About 50 bytes a row are in memory; the texts stay in the results file and are read when a window shows them.
"""

import threading
from array import array
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import BinaryIO, Literal, get_args

from kimi_demo.batches.encoding import unreadable
from kimi_demo.batches.indices import Indices
from kimi_demo.batches.results import Result, from_line

Show = Literal["all", "failed", "cut_off", "in_thought", "waiting"]
"""cut_off: by the token limit; in_thought: of these, those without an answer; waiting: rows that are not finished."""
Order = Literal["finished", "newest", "file"]
SHOWS: tuple[Show, ...] = get_args(Show)
ORDERS: tuple[Order, ...] = get_args(Order)

_FAILED, _CUT, _IN_THOUGHT = 1, 2, 4
_BITS = {"failed": _FAILED, "cut_off": _CUT, "in_thought": _IN_THOUGHT}
_MOST_SEARCHES = 4


@dataclass(frozen=True)
class Sight:
    """What somebody wants to see. search: a text in prompt, thought or answer, in any case."""

    show: Show = "all"
    order: Order = "finished"
    search: str = ""


@dataclass
class _Search:
    """seen: rows looked at; at: those that hold the text."""

    seen: int
    at: "array[int]"


class Finished:
    """Over one results file, which may grow. All methods may be called from any thread.

    thought, answer: characters of each row; tokens: generated; ended: seconds since 1970; took: seconds; all in order of finishing.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.thought, self.answer, self.tokens = array("l"), array("l"), array("l")
        self.ended, self.took = array("d"), array("d")
        self.done = Indices()
        self._at, self._index, self._flags = array("q"), array("l"), bytearray()
        self._position = array("l")
        self._end = 0
        self._searches: OrderedDict[str, _Search] = OrderedDict()
        self._lock = threading.RLock()

    def __len__(self) -> int:
        return len(self._at)

    def update(self, upto: int | None = None) -> None:
        """Takes in what is new, as far as byte `upto`: what lies behind may still be taken back. Raises Failure("batches.unreadable")."""
        with self._lock:
            try:
                with self.path.open("rb") as file:
                    file.seek(self._end)
                    while (upto is None or self._end < upto) and (line := file.readline()).endswith(b"\n"):
                        self._take(from_line(line))
                        self._end += len(line)
            except FileNotFoundError:
                return
            except OSError as error:
                raise unreadable(self.path, error) from error

    def _take(self, result: Result) -> None:
        flags = _FAILED * (result.error is not None) | _CUT * result.cut_off | _IN_THOUGHT * result.cut_off_in_thought
        while len(self._position) <= result.index:
            self._position.append(-1)
        self._position[result.index] = len(self._at)
        self.done.add(result.index)
        self._at.append(self._end)
        self._index.append(result.index)
        self._flags.append(flags)
        self.thought.append(len(result.reasoning or ""))
        self.answer.append(len(result.answer))
        self.tokens.append(result.completion_tokens)
        self.ended.append(_seconds(result.finished_at))
        self.took.append(result.seconds)

    def counts(self) -> dict[str, int]:
        """How many there are of each kind in `Show`, waiting ones apart."""
        with self._lock:
            return {"all": len(self._at)} | {name: sum(1 for flags in self._flags if flags & bit) for name, bit in _BITS.items()}

    def found(self, sight: Sight) -> Sequence[int]:
        """Positions (in order of finishing) of the rows that are wanted, in the order wanted. Raises Failure("batches.unreadable")."""
        with self._lock:
            positions: Sequence[int] = range(len(self._at))
            if sight.search.strip():
                positions = self._searched(sight.search.strip().casefold())
            bit = _BITS.get(sight.show)
            if sight.show == "waiting":
                return []
            if bit is not None:
                positions = [at for at in positions if self._flags[at] & bit]
            if sight.order == "newest":
                return positions[::-1]
            return sorted(positions, key=self._index.__getitem__) if sight.order == "file" else positions

    def read(self, positions: Sequence[int]) -> list[Result]:
        """The rows at these positions. Raises Failure("batches.unreadable")."""
        if not positions:
            return []  # there may be no file yet
        with self._lock:
            places = [self._at[at] for at in positions]
        try:
            with self.path.open("rb") as file:
                return [_line_at(file, place) for place in places]
        except OSError as error:
            raise unreadable(self.path, error) from error

    def get(self, index: int) -> Result | None:
        """The row with this number in its file; None where it has not finished."""
        with self._lock:
            at = self._position[index] if 0 <= index < len(self._position) else -1
        return self.read([at])[0] if at >= 0 else None

    @property
    def highest(self) -> int:
        """The highest row number that is there; -1 before the first."""
        return len(self._position) - 1

    def between(self, low: int, high: int) -> list[Result]:
        """The finished rows with numbers from `low` to before `high`, in that order."""
        with self._lock:
            positions = [at for at in self._position[max(0, low) : max(0, high)] if at >= 0]
        return self.read(positions)

    def in_file_order(self) -> Iterator[Result]:
        """All that are there now."""
        order = self.found(Sight(order="file"))
        for start in range(0, len(order), 256):
            yield from self.read(order[start : start + 256])

    def _searched(self, text: str) -> Sequence[int]:
        """Looks only at rows that were not there when the same was last searched for."""
        known = self._searches.pop(text, None) or _Search(0, array("l"))
        if known.seen == len(self._at):
            return self._kept(text, known)  # there may be no file yet
        try:
            with self.path.open("rb") as file:
                for at in range(known.seen, len(self._at)):
                    result = _line_at(file, self._at[at])
                    if any(text in part.casefold() for part in (result.prompt, result.answer, result.reasoning or "")):
                        known.at.append(at)
        except OSError as error:
            raise unreadable(self.path, error) from error
        known.seen = len(self._at)
        return self._kept(text, known)

    def _kept(self, text: str, known: _Search) -> Sequence[int]:
        self._searches[text] = known
        while len(self._searches) > _MOST_SEARCHES:
            self._searches.popitem(last=False)
        return known.at


def _line_at(file: BinaryIO, place: int) -> Result:
    file.seek(place)
    return from_line(file.readline())


def _seconds(moment: str) -> float:
    try:
        return datetime.fromisoformat(moment).timestamp()
    except ValueError:
        return 0.0
