"""Answers from vLLM's server with the `kimi_k2` parsers, started as the demo starts it."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kimi_demo.engines.rehearsal.evaluation.replies import KeptReplies
from kimi_demo.engines.rehearsal.evaluation.run import Request
from kimi_demo.engines.rehearsal.evaluation.scoring import ModelCall, Reply

if TYPE_CHECKING:
    from openai import AsyncOpenAI

AT_ONCE = 48
"""Requests in flight, and computed together."""

MAX_TOKENS = 700


class ServedSpeaker:
    """An OpenAI-compatible server. base_url ends in /v1. kept: earlier replies, which are not asked for again; new ones are added."""

    def __init__(self, base_url: str, api_key: str, kept: KeptReplies | None = None) -> None:
        self._base_url = base_url
        self._api_key = api_key
        self._kept = kept

    def replies(self, requests: Sequence[Request]) -> list[Reply]:
        """Raises openai.OpenAIError when the server fails."""
        return asyncio.run(self._all(requests))

    async def _all(self, requests: Sequence[Request]) -> list[Reply]:
        from openai import AsyncOpenAI

        async with AsyncOpenAI(base_url=self._base_url, api_key=self._api_key, timeout=3600) as client:
            model = (await client.models.list()).data[0].id
            gate = asyncio.Semaphore(AT_ONCE)

            async def one(request: Request) -> Reply:
                if self._kept is not None and (known := self._kept.find(request)):
                    return known
                async with gate:
                    reply = await _ask(client, model, request)
                if self._kept is not None:
                    self._kept.add(request, reply)
                return reply

            return list(await asyncio.gather(*(one(request) for request in requests)))


async def _ask(client: "AsyncOpenAI", model: str, request: Request) -> Reply:
    tools: dict[str, Any] = {"tools": list(request.tools)} if request.tools else {}
    completion: Any = await client.chat.completions.create(
        model=model,
        messages=list(request.messages),  # type: ignore[arg-type]
        temperature=0,
        max_tokens=MAX_TOKENS,
        extra_body={"chat_template_kwargs": {"thinking": request.thinking}},
        **tools,
    )
    choice = completion.choices[0]
    message = choice.message
    calls = tuple(ModelCall(call.id, call.function.name, call.function.arguments) for call in message.tool_calls or ())
    return Reply(getattr(message, "reasoning", None) or "", message.content or "", calls, choice.finish_reason)


@asynccontextmanager
async def _running(model: Path, logs: Path, cores: Sequence[int]) -> AsyncIterator[tuple[str, str]]:
    from kimi_demo.engines.availability import find_vllm
    from kimi_demo.engines.launch import Launch
    from kimi_demo.engines.server import Server

    build = find_vllm()
    launch = Launch(
        str(model),
        logs,
        max_model_len=4096,
        gpu_memory_utilization=0.3,
        cpu_kv_cache_gb=2,
        extra=("--max-num-seqs", str(AT_ONCE)),
        on_cpu=build is not None and build.on_cpu,
        cores=tuple(cores),
    )
    server = await Server.start(launch, lambda event: None)
    try:
        yield server.base_url, server.api_key
    finally:
        await server.stop()


def with_server(model: Path, logs: Path, cores: Sequence[int], use: "Any", kept: KeptReplies | None = None) -> Any:
    """`use(ServedSpeaker)` while a server runs on `model`. Raises dialect.failure.Failure when it does not start."""

    async def go() -> Any:
        async with _running(model, logs, cores) as (base_url, api_key):
            return await asyncio.to_thread(use, ServedSpeaker(base_url, api_key, kept))

    return asyncio.run(go())
