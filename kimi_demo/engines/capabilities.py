"""What a server can do, found out by asking it: requests of a few tokens whose answer, or refusal, tells. Never by its name."""

import asyncio
import json
from dataclasses import dataclass
from typing import Any

from kimi_demo.engines.endpoint import Endpoint

_PATIENCE_S = 60.0
"""It may be busy with others."""

_DOT = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
_TOOL = {"type": "function", "function": {"name": "ping", "description": "Ping.", "parameters": {"type": "object", "properties": {}}}}


@dataclass(frozen=True)
class Capabilities:
    """None: it did not say (no answer in time, or another refusal). version: as it names itself; raw: text completions.

    reasoning: it hands the thought over apart from the answer; tools: it takes tools and lets the model choose; images: it takes them;
    budget: it limits the thought; template: it tells what its chat template makes of messages.
    """

    version: str | None = None
    reasoning: bool | None = None
    tools: bool | None = None
    images: bool | None = None
    budget: bool | None = None
    raw: bool | None = None
    template: bool | None = None


async def ask_capabilities(endpoint: Endpoint) -> Capabilities:
    """Four requests of at most 8 tokens, at once."""
    hello: list[dict[str, Any]] = [{"role": "user", "content": "Hi"}]
    seen = [{"role": "user", "content": [{"type": "text", "text": "Hi"}, {"type": "image_url", "image_url": {"url": _DOT}}]}]
    thinking = {"chat_template_kwargs": {"thinking": True}} if endpoint.kind == "vllm" else {}
    version, reasoned, tools, images, budget = await asyncio.gather(
        endpoint.look("/version", 5.0),
        _ask(endpoint, {"messages": hello, "max_tokens": 8, **thinking}),
        _ask(endpoint, {"messages": hello, "max_tokens": 1, "tools": [_TOOL], "tool_choice": "auto"}),
        _ask(endpoint, {"messages": seen, "max_tokens": 1}),
        _ask(endpoint, {"messages": hello, "max_tokens": 1, "thinking_token_budget": 1}),
    )
    return Capabilities(
        version=_version(version),
        reasoning=_has_reasoning(reasoned),
        tools=_taken(tools),
        images=_taken(images),
        budget=_taken(budget) if endpoint.kind == "vllm" else None,
        raw=endpoint.has_raw,
        template=endpoint.renders,
    )


async def _ask(endpoint: Endpoint, body: dict[str, Any]) -> tuple[int, str] | None:
    return await endpoint.look(endpoint.base_url + "/chat/completions", _PATIENCE_S, {"model": endpoint.info.id, **body})


def _taken(answer: tuple[int, str] | None) -> bool | None:
    if answer is None:
        return None
    return True if answer[0] == 200 else False if answer[0] in (400, 404, 422, 501) else None


def _has_reasoning(answer: tuple[int, str] | None) -> bool | None:
    """Whether the beginning of a thought came under a name of its own."""
    if answer is None or answer[0] != 200:
        return None
    try:
        message = json.loads(answer[1])["choices"][0]["message"]
    except (ValueError, KeyError, IndexError, TypeError):
        return None
    return bool(message.get("reasoning") or message.get("reasoning_content")) if isinstance(message, dict) else None


def _version(answer: tuple[int, str] | None) -> str | None:
    try:
        version = json.loads(answer[1]).get("version") if answer is not None and answer[0] == 200 else None
    except (ValueError, AttributeError):
        return None
    return version[:60] if isinstance(version, str) else None
