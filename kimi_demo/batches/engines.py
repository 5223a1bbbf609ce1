"""What answers the rows of a batch: the in-process engine, or a chat server through its endpoint."""

import asyncio
import time
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Protocol

from kimi_demo import __version__
from kimi_demo.dialect.conversation import ChatRequest
from kimi_demo.dialect.events import AnswerDelta, Finished, ThoughtDelta, Usage
from kimi_demo.dialect.failure import Failure
from kimi_demo.dialect.special_tokens import plain_messages
from kimi_demo.engines.availability import find_vllm
from kimi_demo.engines.endpoint import Endpoint
from kimi_demo.engines.offline_rows import RowAsk, Standing
from kimi_demo.engines.offline_stream import OfflineFeed, RowAnswer
from kimi_demo.engines.room import fit

SERVER_ROWS = 64
"""Rows that a server is asked at once unless told otherwise: enough to fill its batches without queueing for minutes."""

_OF_THE_ROW = frozenset(
    (
        "batch.prompt_too_long",
        "batch.row_rejected",
        "endpoint.prompt_too_long",
        "endpoint.prompt_too_long_uncounted",
        "endpoint.max_tokens_too_large",
        "endpoint.rejected",
        "endpoint.broken_text",
        "endpoint.no_thinking_budget",
    )
)

# One row may do this to a server that answers all others; so may a server that is going down.
_DOUBTFUL = frozenset(("endpoint.server_error", "endpoint.broke_off", "endpoint.bad_reply", "endpoint.error_event", "endpoint.silent"))
_TRIES = 3

_LATER = frozenset(("endpoint.busy", "endpoint.loading"))
_FIRST_WAIT_S, _LONGEST_WAIT_S = 1.0, 30.0


class RowFailure(Failure):
    """A failure that has turned out to be the row's."""


def is_of_the_row(failure: Failure) -> bool:
    """Whether the failure is this row's alone; with any other the engine itself is in trouble, and the rows are to be kept for later."""
    return isinstance(failure, RowFailure) or failure.code in _OF_THE_ROW


class RowEngine(Protocol):
    """name: "offline", "server", …; model: its name or path; versions: of the programs behind it.

    room: rows in it at once that keep it busy. standing: how many of them write now, and the tokens that those have so far.
    """

    name: str
    model: str
    versions: dict[str, str]
    room: int

    @property
    def standing(self) -> Standing: ...

    async def answer(self, ask: RowAsk) -> RowAnswer:
        """Cancelling it takes the row out of the engine at once. Raises Failure; `is_of_the_row` says whose."""
        ...


class OfflineRows:
    """The in-process engine, through `OfflineEngine.feed()`."""

    name = "offline"

    def __init__(self, feed: OfflineFeed, model: str) -> None:
        self._feed = feed
        self.model = model
        self.room = feed.room
        build = find_vllm()
        self.versions = {"kimi_demo": __version__} | ({build.distribution: build.version} if build is not None else {})

    @property
    def standing(self) -> Standing:
        return self._feed.standing

    async def answer(self, ask: RowAsk) -> RowAnswer:
        return await self._feed.answer(ask)


class PlainRows:
    """Another engine, to which special tokens in prompts are plain text."""

    def __init__(self, engine: RowEngine) -> None:
        self._engine = engine
        self.name, self.model, self.versions, self.room = engine.name, engine.model, engine.versions, engine.room

    @property
    def standing(self) -> Standing:
        return self._engine.standing

    async def answer(self, ask: RowAsk) -> RowAnswer:
        return await self._engine.answer(replace(ask, messages=plain_messages(ask.messages)))


@dataclass
class _Reply:
    """A streamed reply as far as it is."""

    thought: list[str] = field(default_factory=list)
    answer: list[str] = field(default_factory=list)
    usage: Usage = field(default_factory=Usage)
    finish: str | None = None


class ServerRows:
    """A chat server. Replies are streamed, so that a row which is given up stops computing there at once."""

    name = "server"

    def __init__(self, endpoint: Endpoint, rows_at_once: int = SERVER_ROWS) -> None:
        self._endpoint = endpoint
        self._going: dict[int, _Reply] = {}
        self.model = endpoint.info.id
        self.room = rows_at_once
        self.versions = {"kimi_demo": __version__}

    @property
    def standing(self) -> Standing:
        going = [reply for reply in self._going.values() if reply.thought or reply.answer]
        return Standing(len(going), sum(reply.usage.completion_tokens or 0 for reply in going))

    async def answer(self, ask: RowAsk) -> RowAnswer:
        """A server that is busy is asked again, later and later; one that failed on this row and is well otherwise, twice more."""
        wait, tries = _FIRST_WAIT_S, 0
        request = ChatRequest(list(ask.messages), ask.sampling, thinking=ask.thinking)
        while True:
            try:
                return await self._ask(await fit(request, self._endpoint))
            except Failure as failure:
                tries += failure.code in _DOUBTFUL
                if failure.code not in _LATER and (failure.code not in _DOUBTFUL or not await self._endpoint.healthy()):
                    raise
                if tries == _TRIES:
                    raise RowFailure(failure.code, **failure.params) from failure
            await asyncio.sleep(wait)
            wait = min(2 * wait, _LONGEST_WAIT_S)

    async def _ask(self, request: ChatRequest) -> RowAnswer:
        reply, began = _Reply(), time.monotonic()
        self._going[id(reply)] = reply
        try:
            rendered = await self._endpoint.render(request)
            async with aclosing(self._endpoint.stream(request)) as events:
                async for event in events:
                    match event:
                        case ThoughtDelta(text=text):
                            reply.thought.append(text)
                        case AnswerDelta(text=text):
                            reply.answer.append(text)
                        case Usage():
                            reply.usage = event
                        case Finished(reason=reason):
                            reply.finish = reason
                        case _:
                            pass
        finally:
            del self._going[id(reply)]
        return RowAnswer(
            "".join(reply.thought) if request.thinking or reply.thought else None,
            "".join(reply.answer),
            reply.finish,
            reply.usage.prompt_tokens or 0,
            reply.usage.completion_tokens or 0,
            time.monotonic() - began,
            rendered,
            reply.usage.reasoning_tokens,
        )
