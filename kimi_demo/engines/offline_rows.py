"""A batch on its way through the engine: its rows, which of them compute now, and the events that tell of it. No vllm import."""

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Protocol

from kimi_demo.dialect.conversation import Message, user
from kimi_demo.dialect.events import BatchProgress, BatchStarted, Event, RowFinished
from kimi_demo.dialect.failure import Failure
from kimi_demo.dialect.reply import split_thought
from kimi_demo.dialect.sampling import Sampling

BatchRow = str | Sequence[Message]
"""A prompt, or the messages of a conversation that ends with a user's."""

PROGRESS_INTERVAL_S = 0.25


def messages_of(row: BatchRow) -> list[Message]:
    return [user(row)] if isinstance(row, str) else list(row)


def prompt_of(row: BatchRow) -> str:
    """What the row asks, for people: the text of its last user message."""
    if isinstance(row, str):
        return row
    asked = next((message.get("content") for message in reversed(row) if message.get("role") == "user"), "")
    return asked if isinstance(asked, str) else str(asked)


def own_seed(sampling: Sampling, index: int) -> Sampling:
    """`sampling` with a seed of row `index`'s own: with one for all, equal prompts would get equal answers."""
    return sampling if sampling.seed is None else sampling.model_copy(update={"seed": (sampling.seed + index) % 2**63})


@dataclass(frozen=True, slots=True)
class Entered:
    """A row that is in the engine. internal_id: vLLM's own name of the request; entered_at: monotonic seconds.

    rendered: the prompt as the chat template wrote it, where that is kept.
    """

    index: int
    prompt_tokens: int
    entered_at: float
    internal_id: str
    rendered: str | None = None


@dataclass(frozen=True, slots=True)
class RowAsk:
    """What one row asks of the engine: its messages, its parameters (its own seed among them), and whether it thinks."""

    messages: Sequence[Message]
    sampling: Sampling
    thinking: bool = True


@dataclass(frozen=True, slots=True)
class Written:
    """What vLLM returned for a row: its whole text, thought included."""

    text: str
    tokens: int
    finish_reason: str | None


@dataclass(frozen=True, slots=True)
class Standing:
    """How far the rows in the engine are: `running` of them write, `tokens` so far in all; the others have not been read yet."""

    running: int
    tokens: int


class Job(Protocol):
    """Rows that go through the engine together. Belongs to the engine's thread once it is given over."""

    entered: dict[str, Entered]
    done: "Future[None]"

    @property
    def has_rows_left(self) -> bool: ...

    @property
    def is_over(self) -> bool: ...

    def start(self) -> None: ...

    def take(self) -> int: ...

    def ask(self, index: int) -> RowAsk: ...

    def reject(self, index: int, failure: Failure) -> None: ...

    def finish(self, request_id: str, written: Written, now: float) -> None: ...

    def report(self, standing: Callable[[Mapping[str, Entered]], Standing], now: float) -> None: ...

    def end(self, failure: Failure | None = None) -> None: ...


@dataclass(eq=False)
class Batch:
    """One call of `OfflineEngine.generate`. Belongs to the engine's thread once it is given over.

    send: takes events, in order; done: resolved after the last of them.
    """

    rows: Sequence[BatchRow]
    sampling: Sampling
    thinking: bool
    send: Callable[[list[Event]], None]
    done: "Future[None]" = field(default_factory=Future)
    entered: dict[str, Entered] = field(default_factory=dict)
    _next: int = 0
    _finished: int = 0
    _tokens: int = 0
    _events: list[Event] = field(default_factory=list)
    _told: BatchProgress | None = None
    _told_at: float = float("-inf")

    def start(self) -> None:
        self._events.append(BatchStarted(len(self.rows)))

    @property
    def has_rows_left(self) -> bool:
        return self._next < len(self.rows)

    @property
    def is_over(self) -> bool:
        return self._finished == len(self.rows)

    def take(self) -> int:
        """The index of the next row to enter."""
        self._next += 1
        return self._next - 1

    def ask(self, index: int) -> RowAsk:
        return RowAsk(messages_of(self.rows[index]), own_seed(self.sampling, index), self.thinking)

    def reject(self, index: int, failure: Failure, prompt_tokens: int = 0) -> None:
        """The row cannot run; the others go on."""
        self._finished += 1
        self._events.append(
            RowFinished(index, prompt_of(self.rows[index]), prompt_tokens=prompt_tokens, error=failure.code, error_params=failure.params)
        )

    def finish(self, request_id: str, written: Written, now: float) -> None:
        """The row has its last token. now: monotonic seconds."""
        row = self.entered.pop(request_id)
        reasoning, answer = split_thought(written.text, thinking=self.thinking)
        self._finished += 1
        self._tokens += written.tokens
        self._events.append(
            RowFinished(
                row.index,
                prompt_of(self.rows[row.index]),
                reasoning=reasoning,
                answer=answer,
                finish_reason=written.finish_reason,
                prompt_tokens=row.prompt_tokens,
                completion_tokens=written.tokens,
                seconds=now - row.entered_at,
            )
        )

    def report(self, standing: Callable[[Mapping[str, Entered]], Standing], now: float) -> None:
        """Sends what has happened, and how far the batch is: at most every PROGRESS_INTERVAL_S, and once at its end.

        standing is only asked when it will be told: its cost grows with the rows in the engine.
        """
        if self.is_over or now - self._told_at >= PROGRESS_INTERVAL_S:
            there = standing(self.entered)
            progress = BatchProgress(
                done=self._finished,
                running=there.running,
                waiting=len(self.rows) - self._finished - there.running,
                generated_tokens=self._tokens + there.tokens,
            )
            if progress != self._told:
                self._told, self._told_at = progress, now
                self._events.append(progress)
        if self._events:
            events, self._events = self._events, []
            self.send(events)

    def end(self, failure: Failure | None = None) -> None:
        """Sends what is left and lets `generate` return, or raise `failure`."""
        if self._events:
            events, self._events = self._events, []
            self.send(events)
        if not self.done.done():
            if failure is None:
                self.done.set_result(None)
            else:
                self.done.set_exception(failure)


def now() -> float:
    """Seconds of the clock that `Entered` and `Batch` count in."""
    return time.monotonic()
