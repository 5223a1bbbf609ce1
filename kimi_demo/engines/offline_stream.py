"""Rows that come to the batch engine one by one, each with its own parameters, while others compute. No vllm import."""

import asyncio
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field

from kimi_demo.dialect.failure import Failure
from kimi_demo.dialect.reply import split_thought
from kimi_demo.engines.offline_rows import Entered, RowAsk, Standing, Written
from kimi_demo.engines.offline_thread import EngineThread

STANDING_INTERVAL_S = 0.25


@dataclass(frozen=True, slots=True)
class RowAnswer:
    """What became of a row. rendered: the prompt as the template wrote it; seconds: from its entering the engine to its last token.

    reasoning_tokens: None where the engine does not count them.
    """

    reasoning: str | None
    answer: str
    finish_reason: str | None
    prompt_tokens: int
    completion_tokens: int
    seconds: float
    rendered: str | None = None
    reasoning_tokens: int | None = None


@dataclass(eq=False)
class RowStream:
    """A `Job` without an end of its own. Everything but `done` belongs to the engine's thread.

    send: takes (row key, its answer or its Failure), several at a time. tell: takes how far the rows in the engine are.
    """

    send: Callable[[list[tuple[int, RowAnswer | Failure]]], None]
    tell: Callable[[Standing], None]
    done: "Future[None]" = field(default_factory=Future)
    entered: dict[str, Entered] = field(default_factory=dict)
    _waiting: "deque[tuple[int, RowAsk]]" = field(default_factory=deque)
    _asks: dict[int, RowAsk] = field(default_factory=dict)
    _answers: list[tuple[int, RowAnswer | Failure]] = field(default_factory=list)
    _told: Standing = field(default_factory=lambda: Standing(0, 0))
    _told_at: float = float("-inf")

    def add(self, rows: list[tuple[int, RowAsk]]) -> None:
        self._waiting.extend(rows)

    def drop(self, keys: set[int]) -> list[str]:
        """The request ids of those of `keys` that are in the engine; all of them are forgotten."""
        self._waiting = deque(row for row in self._waiting if row[0] not in keys)
        ids = [request_id for request_id, row in self.entered.items() if row.index in keys]
        for request_id in ids:
            del self._asks[self.entered.pop(request_id).index]
        return ids

    def start(self) -> None:
        pass

    @property
    def has_rows_left(self) -> bool:
        return bool(self._waiting)

    @property
    def is_over(self) -> bool:
        """Never by itself: it is aborted when its user is done."""
        return False

    def take(self) -> int:
        key, ask = self._waiting.popleft()
        self._asks[key] = ask
        return key

    def ask(self, index: int) -> RowAsk:
        return self._asks[index]

    def reject(self, index: int, failure: Failure) -> None:
        del self._asks[index]
        self._answers.append((index, failure))

    def finish(self, request_id: str, written: Written, now: float) -> None:
        row = self.entered.pop(request_id)
        reasoning, answer = split_thought(written.text, thinking=self._asks.pop(row.index).thinking)
        seconds = now - row.entered_at
        found = RowAnswer(reasoning, answer, written.finish_reason, row.prompt_tokens, written.tokens, seconds, row.rendered)
        self._answers.append((row.index, found))

    def report(self, standing: Callable[[Mapping[str, Entered]], Standing], now: float) -> None:
        if self._answers:
            answers, self._answers = self._answers, []
            self.send(answers)
        if now - self._told_at >= STANDING_INTERVAL_S:
            there = standing(self.entered)
            if there != self._told:
                self._told, self._told_at = there, now
                self.tell(there)

    def end(self, failure: Failure | None = None) -> None:
        if self._answers:
            answers, self._answers = self._answers, []
            self.send(answers)
        if not self.done.done():
            if failure is None:
                self.done.set_result(None)
            else:
                self.done.set_exception(failure)


class OfflineFeed:
    """A `RowStream` seen from the event loop. Made by `OfflineEngine.feed()`, which also closes it.

    standing: of the rows that are in the engine now, a quarter of a second old at most. room: rows that keep the engine busy.
    """

    def __init__(self, thread: EngineThread) -> None:
        self._loop = asyncio.get_running_loop()
        self._thread = thread
        self._keys = 0
        self._added: list[tuple[int, RowAsk]] = []
        self._dropped: set[int] = set()
        self._futures: dict[int, asyncio.Future[RowAnswer]] = {}
        self._failure: Failure | None = None
        self.standing = Standing(0, 0)
        self.room = thread.room
        self._stream = RowStream(lambda answers: self._post(self._settle, answers), lambda told: self._post(self._stand, told))
        self._stream.done.add_done_callback(lambda done: self._post(self._ended, done))
        thread.start(self._stream)

    async def answer(self, ask: RowAsk) -> RowAnswer:
        """The row's answer; cancelling takes the row out of the engine.

        Raises Failure: batch.prompt_too_long, batch.row_rejected (this row cannot run); batch.engine_died, batch.unloaded,
        batch.not_loaded (none can any more).
        """
        if self._failure is not None:
            raise self._failure
        key, self._keys = self._keys, self._keys + 1
        future: asyncio.Future[RowAnswer] = self._loop.create_future()
        self._futures[key] = future
        self._changed()
        self._added.append((key, ask))
        try:
            return await future
        finally:
            if self._futures.pop(key, None) is not None and future.cancelled():
                self._changed()
                self._dropped.add(key)

    async def close(self, patience_s: float) -> None:
        """Takes what is left out of the engine; waits for that, `patience_s` seconds at most."""
        self._thread.abort(self._stream)
        await asyncio.wait([asyncio.wrap_future(self._stream.done)], timeout=patience_s)
        if self._stream.done.done() and not self._stream.done.cancelled():
            self._stream.done.exception()

    def _changed(self) -> None:
        """The thread is told once per turn of the loop, whatever number of rows came or went in it."""
        if not self._added and not self._dropped:
            self._loop.call_soon(self._hand_over)

    def _hand_over(self) -> None:
        added, dropped = self._added, self._dropped
        self._added, self._dropped = [], set()
        stream = self._stream

        def change(take_out: Callable[[list[str]], None]) -> None:
            stream.add(added)
            if dropped:
                take_out(stream.drop(dropped))

        self._thread.change(stream, change)

    def _settle(self, answers: list[tuple[int, RowAnswer | Failure]]) -> None:
        for key, found in answers:
            future = self._futures.pop(key, None)
            if future is None or future.done():
                continue
            if isinstance(found, Failure):
                future.set_exception(found)
            else:
                future.set_result(found)

    def _stand(self, standing: Standing) -> None:
        self.standing = standing

    def _ended(self, done: "Future[None]") -> None:
        error = done.exception()
        self._failure = error if isinstance(error, Failure) else Failure("batch.unloaded")
        self.standing = Standing(0, 0)
        for future in self._futures.values():
            if not future.done():
                # One for each: an exception keeps the frames that it was raised through.
                future.set_exception(Failure(self._failure.code, **self._failure.params))

    def _post(self, function: Callable[..., None], argument: object) -> None:
        try:
            self._loop.call_soon_threadsafe(function, argument)
        except RuntimeError:  # the loop is closed: the application is ending
            pass
