"""Several replies at once from one server, three ways: the openai client, the demo's `Endpoint`, the page over HTTP."""

import asyncio
import secrets
import statistics
import time
from collections.abc import Awaitable, Callable, Sequence
from itertools import repeat
from typing import Any

from openai import AsyncOpenAI

from kimi_demo.dialect.conversation import ChatRequest, user
from kimi_demo.dialect.events import AnswerDelta, ThoughtDelta
from kimi_demo.dialect.sampling import DEFAULT_PRESET, PRESETS
from kimi_demo.engines.endpoint import Endpoint
from kimi_demo.engines.metrics.reading import read_metrics
from kimi_demo.ui.parameters import FIELDS
from scripts.bench.visitor import Visitor


def question(number: int, salt: str) -> str:
    return f"{salt} {number}: tell a long story about a lighthouse and its keeper."


# Each of the three ways returns at the end of the reply, with the seconds until its first token.


async def raw(client: AsyncOpenAI, model: str, text: str, tokens: int) -> float:
    sampling = PRESETS[DEFAULT_PRESET].sampling.model_copy(update={"max_tokens": tokens})
    began, first = time.perf_counter(), 0.0
    stream: Any = await client.chat.completions.create(
        model=model,
        messages=[{"role": "user", "content": text}],
        stream=True,
        stream_options={"include_usage": True},
        extra_body=sampling.vllm_fields() | {"chat_template_kwargs": {"thinking": True}},
        **sampling.openai_fields(),
    )
    async for chunk in stream:
        delta = chunk.choices[0].delta if chunk.choices else None
        if delta is not None and not first and (delta.content or getattr(delta, "reasoning", None)):
            first = time.perf_counter() - began
    return first


async def ours(endpoint: Endpoint, text: str, tokens: int) -> float:
    sampling = PRESETS[DEFAULT_PRESET].sampling.model_copy(update={"max_tokens": tokens})
    began, first = time.perf_counter(), 0.0
    async for event in endpoint.stream(ChatRequest([user(text)], sampling)):
        if not first and isinstance(event, ThoughtDelta | AnswerDelta):
            first = time.perf_counter() - began
    return first


async def page(visitor: Visitor, text: str, tokens: int) -> float:
    """What the page's script does: send, then follow until nothing is written any more."""
    sampling = PRESETS[DEFAULT_PRESET].sampling.model_copy(update={"max_tokens": tokens})
    values = [True, DEFAULT_PRESET, *(field.shown(sampling) for field in FIELDS)]
    chat, first = secrets.token_hex(16), 0.0
    began = time.perf_counter()
    answer = await visitor.client.post("/kimi/act/chat_send", json={"chat": chat, "text": text, "values": values})
    answer.raise_for_status()

    def heard(line: str) -> None:
        nonlocal first
        if not first and '["text",' in line:
            first = time.perf_counter() - began

    await visitor.follow(chat, heard)
    return first


async def at_once(endpoint: Endpoint, count: int, ask: Callable[[int], Awaitable[float]]) -> dict[str, Any]:
    """`count` replies begun together. Tokens are the server's own count of what it generated meanwhile."""
    before = await _generated(endpoint)
    began = time.perf_counter()
    firsts: Sequence[float] = await asyncio.gather(*(ask(number) for number in range(count)))
    seconds = time.perf_counter() - began
    tokens = await _generated(endpoint) - before
    seen = sorted(1000 * first for first in firsts if first)
    return {
        "streams": count,
        "tokens": tokens,
        "seconds": round(seconds, 3),
        "tokens_per_s": round(tokens / seconds, 1),
        "first_ms_p50": round(statistics.median(seen), 1) if seen else None,
        "first_ms_p95": round(seen[min(len(seen) - 1, int(0.95 * len(seen)))], 1) if seen else None,
        "without_text": count - len(seen),
    }


async def running(endpoint: Endpoint) -> float:
    text = await endpoint.metrics()
    return (read_metrics(text).running or 0.0) + (read_metrics(text).waiting or 0.0) if text else -1.0


async def idle(endpoint: Endpoint) -> None:
    """Returns when the server has nothing running or waiting: asked again and again, since it does not tell by itself."""
    for pause in repeat(0.02):
        if not await running(endpoint):
            return
        await asyncio.sleep(pause)


async def _generated(endpoint: Endpoint) -> float:
    """The server's count of generated tokens, once it stands still: it comes a moment after the reply."""
    last = -1.0
    for pause in repeat(0.1):
        await idle(endpoint)
        text = await endpoint.metrics()
        now = (read_metrics(text).generation_tokens or 0.0) if text else 0.0
        if now == last:
            break
        last = now
        await asyncio.sleep(pause)
    return last
