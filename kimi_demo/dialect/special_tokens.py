"""Special tokens of Kimi's vocabulary in what people write: its tokenizer makes real ones of them (`allowed_special="all"`), so that
`<|im_end|>` in a message ends the message, and what follows can pose as the system's. Here they become plain text. Pure.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from kimi_demo.dialect.conversation import ChatRequest, Message
from kimi_demo.dialect.leaks import MARK


def without_special(request: ChatRequest) -> tuple[ChatRequest, list[str]]:
    """(the request with a space in each special token of its messages, which those were, each once).

    What the model wrote in a running tool loop (its thought, its calls) goes back as it was.
    """
    found: dict[str, None] = {}
    messages = [_plain_message(message, found) for message in request.messages]
    return (replace(request, messages=messages), list(found)) if found else (request, [])


def plain(text: str, found: dict[str, None] | None = None) -> str:
    """`<|im_end|>` as `< |im_end|>`: what a person still reads, and no tokenizer takes for one. found: gathers what there was."""

    def spaced(mark: str) -> str:
        if found is not None:
            found[mark] = None
        return f"{mark[0]} {mark[1:]}"

    return MARK.sub(lambda match: spaced(match[0]), text)


def plain_messages(messages: Sequence[Message]) -> list[Message]:
    return [_plain_message(message, {}) for message in messages]


def _plain_message(message: Message, found: dict[str, None]) -> Message:
    content: Any = message.get("content")
    if isinstance(content, str):
        return {**message, "content": plain(content, found)}
    if isinstance(content, list):
        return {**message, "content": [_plain_part(part, found) for part in content]}
    return message


def _plain_part(part: Any, found: dict[str, None]) -> Any:
    if isinstance(part, dict) and isinstance(part.get("text"), str):
        return {**part, "text": plain(part["text"], found)}
    return part
