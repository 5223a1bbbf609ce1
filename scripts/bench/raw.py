"""The raw way: the openai client reading the same server, and the bytes that the server sends."""

import time

import httpx
from openai import AsyncOpenAI

from scripts.bench.visitor import Stream, question


def body(tokens: int, rate: float | None, model: str = "bench") -> dict[str, object]:
    """What the page asks for as well: streamed, with the running counts that vLLM gives."""
    options = {"include_usage": True, "continuous_usage_stats": True}
    messages = [{"role": "user", "content": question(tokens, rate)}]
    return {"model": model, "messages": messages, "stream": True, "stream_options": options}


async def ask(client: AsyncOpenAI, tokens: int, rate: float | None) -> Stream:
    """A long thought by the openai client. Its bytes are not seen here: see `upstream_bytes`."""
    stream, began = Stream(), time.perf_counter()
    given = body(tokens, rate)
    async for chunk in await client.chat.completions.create(**given):  # type: ignore[call-overload]
        if chunk.choices and getattr(chunk.choices[0].delta, "reasoning", None):
            stream.heard(1, 0, time.perf_counter() - began)
    return stream


async def upstream_bytes(base_url: str, tokens: int) -> Stream:
    """The same reply as fast as it comes, by its bytes."""
    stream, began = Stream(), time.perf_counter()
    async with (
        httpx.AsyncClient(timeout=300) as client,
        client.stream("POST", f"{base_url}/chat/completions", json=body(tokens, None)) as answer,
    ):
        async for line in answer.aiter_lines():
            stream.heard(int('"reasoning":' in line), len(line.encode()) + 1, time.perf_counter() - began)
    return stream
