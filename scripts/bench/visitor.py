"""A visitor of the page without a browser: what the page's script does over HTTP, and when the tokens came."""

import json
import re
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import httpx

from kimi_demo.dialect.sampling import DEFAULT_PRESET, PRESETS
from kimi_demo.ui.parameters import FIELDS

TOKEN = re.compile(r" w\d+")
"""A token of the scripted server's long thought, as it stands in a patch."""


def panel_values() -> list[str | bool | int | float | None]:
    """The parameters' fields as the page shows them at first, thinking on."""
    sampling = PRESETS[DEFAULT_PRESET].sampling
    return [True, DEFAULT_PRESET, *(field.shown(sampling) for field in FIELDS)]


def question(tokens: int, rate: float | None) -> str:
    """A message that the scripted server answers with a thought of `tokens` tokens, "Done." after it."""
    return f"[[long_thought tokens={tokens} rate={json.dumps(rate)}]] go"


class TooLate(Exception):
    """A reply was over before it could be followed, so that there is no telling when its tokens came: the machine is too busy."""


@dataclass
class Stream:
    """A reply as it came. Times: seconds after it was asked for. marks: (tokens so far, bytes so far) after each message."""

    tokens: int = 0
    bytes: int = 0
    first: float = 0.0
    last: float = 0.0
    marks: list[tuple[int, int]] = field(default_factory=list)

    def heard(self, tokens: int, size: int, at: float) -> None:
        self.bytes += size
        if tokens:
            self.first = self.first if self.tokens else at
            self.tokens += tokens
            self.last = at
        self.marks.append((self.tokens, self.bytes))

    def bytes_per_token(self, start: int, length: int) -> float:
        """Of the messages that brought tokens `start` to `start + length`, and what more came with the first and the last of them."""
        few, small = max((mark for mark in self.marks if mark[0] <= start), default=(0, 0))
        many, large = next(mark for mark in self.marks if mark[0] >= start + length)
        return (large - small) / (many - few)


class Visitor:
    """One person, with a cookie of their own."""

    def __init__(self, address: str) -> None:
        self.client = httpx.AsyncClient(base_url=address, timeout=httpx.Timeout(120.0, read=300.0))

    async def __aenter__(self) -> "Visitor":
        (await self.client.get("/", headers={"accept": "text/html"})).raise_for_status()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.client.aclose()

    @property
    def cookies(self) -> dict[str, str]:
        return dict(self.client.cookies)

    async def send(self, chat: str, text: str) -> None:
        given = {"chat": chat, "text": text, "values": panel_values()}
        answer = await self.client.post("/kimi/act/chat_send", json=given)
        if answer.status_code != 200:
            raise RuntimeError(f"the page refused a message: {answer.status_code} {answer.text[:300]}")

    async def follow(self, chat: str, heard: Callable[[str], None] = lambda _: None) -> None:
        """Until nothing is written in the conversation any more; `heard` is given each line of the stream."""
        async with self.client.stream("GET", "/kimi/live/chat", params={"opened": chat, "group": chat}) as answer:
            answer.raise_for_status()
            async for line in answer.aiter_lines():
                heard(line)
                if line == "event: end":
                    return

    async def say(self, text: str) -> str:
        """Sends into a new conversation and waits for the answer; returns the conversation's id."""
        chat = secrets.token_hex(16)
        await self.send(chat, text)
        await self.follow(chat)
        return chat

    async def ask(self, tokens: int, rate: float | None, chat: str | None = None) -> Stream:
        """A long thought, in a new conversation if none is named, from sending on as the page's script does it. Raises TooLate."""
        chat, stream, began = chat or secrets.token_hex(16), Stream(), time.perf_counter()
        await self.send(chat, question(tokens, rate))

        def heard(line: str) -> None:
            # Only what is new in this stream: a "start" repeats what the box must hold, and holds no token of it.
            stream.heard(len(TOKEN.findall(line)), len(line.encode()) + 1, time.perf_counter() - began)

        await self.follow(chat, heard)
        if stream.tokens != tokens:
            raise TooLate(f"{stream.tokens} of {tokens} tokens were seen while they came")
        return stream


async def conversation(visitor: Visitor, messages: int) -> str:
    """A conversation with that many messages, answers included, about a hundred words each; returns its id."""
    chat = secrets.token_hex(16)
    for number in range(messages // 2):
        await visitor.send(chat, f"[[answer_only answer={'word-' * 100}]] Question {number}")
        await visitor.follow(chat)
    return chat
