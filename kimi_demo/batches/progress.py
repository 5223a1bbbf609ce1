"""How far a batch is, how fast, and how long it will take. Pure but for the clock that is handed in."""

from collections import deque
from dataclasses import dataclass

WINDOW_S = 20.0
"""Rates are of the last so many seconds: those of the whole run would hide that it became slower."""


@dataclass(frozen=True, slots=True)
class Progress:
    """total: rows to run; done: of them, failed and resumed ones included; resumed: done by an earlier process.

    running: rows that write now; waiting: the others that are not done. in_hand: rows in the engine, reading or writing, or on their
    way to the disk. Tokens: of this process. rates: per second; left_s: seconds to
    the end, None while nobody can say.
    """

    total: int
    done: int = 0
    resumed: int = 0
    failed: int = 0
    cut_off: int = 0
    running: int = 0
    waiting: int = 0
    in_hand: int = 0
    prompt_tokens: int = 0
    generated_tokens: int = 0
    seconds: float = 0.0
    prompt_rate: float = 0.0
    generated_rate: float = 0.0
    left_s: float | None = None


class Meter:
    """Rates out of counts that are noted now and then."""

    def __init__(self) -> None:
        self._notes: deque[tuple[float, int, int, int]] = deque()

    def note(self, now: float, done: int, prompt_tokens: int, generated_tokens: int) -> None:
        """now: seconds on a clock that stands still during pauses."""
        if self._notes and now - self._notes[-1][0] < 0.1:
            self._notes[-1] = (self._notes[-1][0], done, prompt_tokens, generated_tokens)
            return
        self._notes.append((now, done, prompt_tokens, generated_tokens))
        while len(self._notes) > 2 and now - self._notes[1][0] > WINDOW_S:
            self._notes.popleft()

    def rates(self) -> tuple[float, float, float]:
        """Rows, prompt tokens and generated tokens per second; zeros before there is anything to compare."""
        if len(self._notes) < 2:
            return 0.0, 0.0, 0.0
        first, last = self._notes[0], self._notes[-1]
        seconds = last[0] - first[0]
        rows, prompt, generated = (max(0, last[at] - first[at]) / seconds for at in (1, 2, 3))
        return rows, prompt, generated
