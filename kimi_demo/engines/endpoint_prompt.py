"""What a server makes of a prompt: the text that its chat template renders, and the tokens of a text. Both by vLLM's own routes."""

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Any

from kimi_demo.dialect.conversation import Message
from kimi_demo.dialect.reply import THOUGHT_END
from kimi_demo.engines.thought_stream import THOUGHT_START
from kimi_demo.engines.token_pieces import pieces

Ask = Callable[[str, dict[str, Any]], Awaitable[Any]]
"""POST a body to a route beside the API; the JSON that comes back, or None."""

MOST_PIECES = 4000
"""Pieces of a prompt that are handed on for display."""


@dataclass(frozen=True)
class Tokens:
    """count: of all; pieces: (text, tokens) of the first MOST_PIECES."""

    count: int
    pieces: tuple[tuple[str, int], ...]


async def rendered(ask: Ask, tokenize_body: dict[str, Any]) -> str | None:
    """The prompt that the chat template makes of a conversation, as text: its tokens (/tokenize), spelled (/detokenize)."""
    tokens = _list(await ask("/tokenize", tokenize_body), "tokens")
    if tokens is None:
        return None
    spelled = await ask("/detokenize", {"model": tokenize_body["model"], "tokens": tokens})
    prompt = spelled.get("prompt") if isinstance(spelled, dict) else None
    return prompt if isinstance(prompt, str) and prompt else None


async def tokens_of(ask: Ask, model: str, prompt: str) -> Tokens | None:
    """The tokens that /v1/completions makes of `prompt`."""
    reply = await ask("/tokenize", {"model": model, "prompt": prompt, "return_token_strs": True})
    count = reply.get("count") if isinstance(reply, dict) else None
    if not isinstance(count, int):
        return None
    return Tokens(count, tuple(pieces(map(str, _list(reply, "token_strs") or ()))[:MOST_PIECES]))


def continued(prompt: str, thought: str, answer: str) -> str:
    """The raw prompt with which a model goes on after `answer`, or inside `thought` where there is no answer yet.

    prompt: as the template rendered it. A chat request cannot do this: the server's parser would take the continuation for thought,
    since it begins every reply of a thinking prompt there (vllm 0.32 parser/kimi_k2.py).
    """
    end = prompt.rstrip("\n")
    if end.endswith(THOUGHT_START):
        return prompt + thought + (THOUGHT_END + answer if answer else "")
    if thought and not end.endswith(THOUGHT_END):
        prompt += THOUGHT_START + thought + (THOUGHT_END if answer else "")
    return prompt + answer


def is_text(messages: Iterable[Message]) -> bool:
    """Whether all contents are text: an image is not part of a raw prompt."""
    for message in messages:
        content = message.get("content")
        if isinstance(content, list) and any(not (isinstance(part, dict) and part.get("type") == "text") for part in content):
            return False
    return True


def _list(reply: Any, name: str) -> list[Any] | None:
    found = reply.get(name) if isinstance(reply, dict) else None
    return found if isinstance(found, list) else None
