"""Two finished batches over the same rows, side by side: thinking against instant, preset against preset. Pure but for `pairs`."""

import unicodedata
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from kimi_demo.batches.encoding import unreadable
from kimi_demo.batches.results import Result, from_line

Agreement = Literal["same", "alike", "different", "incomparable"]
"""same: the answers are equal but for case, spacing and punctuation. incomparable: one of the rows has no answer."""

ALIKE = 0.6
"""From this similarity on, two answers count as alike."""

_LONGEST = 20_000


@dataclass(frozen=True, slots=True)
class Pair:
    """One row in both batches; None where a batch does not have it (yet).

    similarity: of the answers, 0 to 1: the share of letter pairs that they have in common (works for Chinese too).
    more_thought, more_answer, more_tokens: the second's length less the first's, in characters and tokens.
    """

    index: int
    first: Result | None
    second: Result | None
    agreement: Agreement
    similarity: float = 0.0
    more_thought: int = 0
    more_answer: int = 0
    more_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Comparison:
    """Sums over pairs. same, alike, different, incomparable: counts that add up to `rows`; means are over rows that both have."""

    rows: int
    same: int
    alike: int
    different: int
    incomparable: int
    mean_similarity: float
    mean_thought: tuple[float, float]
    mean_answer: tuple[float, float]
    mean_tokens: tuple[float, float]


def compare(first: Result | None, second: Result | None) -> Pair:
    """Raises ValueError where both are None or are not of the same row."""
    either = first or second
    if either is None or (first is not None and second is not None and first.index != second.index):
        raise ValueError("two results of one row are needed")
    if first is None or second is None:
        return Pair(either.index, first, second, "incomparable")
    lengths = (
        len(second.reasoning or "") - len(first.reasoning or ""),
        len(second.answer) - len(first.answer),
        second.completion_tokens - first.completion_tokens,
    )
    if not first.answer.strip() or not second.answer.strip():
        return Pair(first.index, first, second, "incomparable", 0.0, *lengths)
    one, other = _plain(first.answer), _plain(second.answer)
    alike = similarity(one, other)
    agreement: Agreement = "same" if one == other else "alike" if alike >= ALIKE else "different"
    return Pair(first.index, first, second, agreement, alike, *lengths)


def _plain(text: str) -> str:
    """Letters, digits and signs that carry meaning ("-5" is not "5"), in one case and width."""
    folded = unicodedata.normalize("NFKC", text[:_LONGEST]).casefold()
    return " ".join("".join(" " if _is_gap(character) else character for character in folded).split()).strip(". ")


def _is_gap(character: str) -> bool:
    return character.isspace() or (unicodedata.category(character)[0] == "P" and character not in ".-%/")


def similarity(one: str, other: str) -> float:
    """Dice's coefficient over pairs of neighbouring characters: 1 for equal texts, 0 for texts without a common pair."""
    if one == other:
        return 1.0
    first, second = Counter(zip(one, one[1:], strict=False)), Counter(zip(other, other[1:], strict=False))
    total = first.total() + second.total()
    return 2 * (first & second).total() / total if total else 0.0


def summary(found: Iterable[Pair]) -> Comparison:
    """All pairs in one look."""
    counts: Counter[Agreement] = Counter()
    both = compared = 0
    alike = 0.0
    sums = [0, 0, 0, 0, 0, 0]
    for pair in found:
        counts[pair.agreement] += 1
        if pair.first is None or pair.second is None:
            continue
        both += 1
        for at, result in enumerate((pair.first, pair.second)):
            sums[at] += len(result.reasoning or "")
            sums[2 + at] += len(result.answer)
            sums[4 + at] += result.completion_tokens
        if pair.agreement != "incomparable":
            compared += 1
            alike += pair.similarity
    mean = [one / both if both else 0.0 for one in sums]
    return Comparison(
        rows=counts.total(),
        same=counts["same"],
        alike=counts["alike"],
        different=counts["different"],
        incomparable=counts["incomparable"],
        mean_similarity=alike / compared if compared else 0.0,
        mean_thought=(mean[0], mean[1]),
        mean_answer=(mean[2], mean[3]),
        mean_tokens=(mean[4], mean[5]),
    )


class Places:
    """Where each row's line begins in a results file: 8 bytes a row, so that any row of a large batch is at hand.

    Call `update` again while the file grows. Raises Failure("batches.unreadable").
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._at = array("q")
        self._end = 0
        self.update()

    def update(self) -> None:
        try:
            with self.path.open("rb") as file:
                file.seek(self._end)
                for line in file:
                    if not line.endswith(b"\n"):
                        break
                    index = from_line(line).index
                    while len(self._at) <= index:
                        self._at.append(-1)
                    self._at[index] = self._end
                    self._end += len(line)
        except OSError as error:
            raise unreadable(self.path, error) from error

    def __len__(self) -> int:
        """One more than the highest row number."""
        return len(self._at)

    def get(self, index: int) -> Result | None:
        """The row's result; None where it is not there."""
        if not 0 <= index < len(self._at) or self._at[index] < 0:
            return None
        try:
            with self.path.open("rb") as file:
                file.seek(self._at[index])
                return from_line(file.readline())
        except OSError as error:
            raise unreadable(self.path, error) from error


def pairs(first: Places, second: Places) -> Iterator[Pair]:
    """The rows that either has, in the order of the file that they came from."""
    for index in range(max(len(first), len(second))):
        one, other = first.get(index), second.get(index)
        if one is not None or other is not None:
            yield compare(one, other)
