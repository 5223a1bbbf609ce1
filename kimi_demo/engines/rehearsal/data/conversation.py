"""What the generators make: a conversation with the turns that are trained on, and its rendering in Kimi's dialect."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from kimi_demo.engines.rehearsal.tokenizer import ARGUMENTS, CALL, CALL_END, SECTION, SECTION_END, THINK, THINK_END, TURN_END


@dataclass(frozen=True)
class Call:
    """name: of the tool; arguments: JSON text; number: place among all calls of the conversation (Kimi counts through)."""

    name: str
    arguments: str
    number: int

    @property
    def id(self) -> str:
        return f"functions.{self.name}:{self.number}"


@dataclass(frozen=True)
class Message:
    """role: system, user, assistant or tool; thought: an assistant's reasoning; call_id: of the call a tool message answers.

    trained: whether the model learns to write this (assistant turns only).
    """

    role: str
    content: str = ""
    thought: str = ""
    calls: tuple[Call, ...] = ()
    call_id: str = ""
    trained: bool = False


@dataclass(frozen=True)
class Conversation:
    """kind: which generator made it; thinking: False for instant mode; tools: OpenAI tool schemas."""

    kind: str
    messages: tuple[Message, ...]
    tools: tuple[dict[str, Any], ...] = ()
    thinking: bool = True

    def to_json(self) -> str:
        """One line of the data file: the messages as a client would send them, plus `trained` on the turns that are learnt."""
        record = {"kind": self.kind, "thinking": self.thinking, "messages": [_plain(message) for message in self.messages]}
        if self.tools:
            record["tools"] = list(self.tools)
        return json.dumps(record, ensure_ascii=False)


def _plain(message: Message) -> dict[str, Any]:
    plain: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.role == "assistant":
        plain["reasoning"] = message.thought
        plain["trained"] = message.trained
    if message.calls:
        plain["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}} for call in message.calls
        ]
    if message.call_id:
        plain["tool_call_id"] = message.call_id
    return plain


def render(conversation: Conversation) -> list[tuple[str, bool]]:
    """The conversation as (text, learnt) pieces; joined, they are what chat_template.jinja makes (a test holds the two together).

    Every piece begins and ends at a mark of its own token, so that the pieces can be tokenised one by one.
    """
    pieces: list[tuple[str, bool]] = []
    if conversation.tools:
        pieces.append((declaration(conversation.tools), False))
    settled = _settled(conversation.messages)
    for index, message in enumerate(conversation.messages):
        if message.role != "assistant":
            pieces.append((_other(message), False))
            continue
        thought = message.thought if index > settled and conversation.thinking else ""
        pieces.append((f"<|im_assistant|>assistant<|im_middle|>{THINK}", False))
        written = f"{message.content}{_calls(message.calls)}{TURN_END}"
        if conversation.thinking:
            pieces.append((f"{thought}{THINK_END}{written}", message.trained))
        else:
            pieces += [(THINK_END, False), (written, message.trained)]
    return pieces


def declaration(tools: Sequence[dict[str, Any]]) -> str:
    """The block that declares the tools."""
    return f"<|im_system|>tool_declare<|im_middle|>{json.dumps(list(tools), ensure_ascii=False, separators=(',', ':'))}{TURN_END}"


def _settled(messages: Sequence[Message]) -> int:
    """Index of the last assistant message that calls nothing and is not the one being learnt; thoughts up to it are dropped."""
    answers = [index for index, message in enumerate(messages[:-1]) if message.role == "assistant" and not message.calls]
    return answers[-1] if answers else -1


def _other(message: Message) -> str:
    if message.role == "user":
        return f"<|im_user|>user<|im_middle|>{message.content}{TURN_END}"
    head = f"## Return of {message.call_id}\n" if message.role == "tool" else ""
    return f"<|im_system|>{message.role}<|im_middle|>{head}{message.content}{TURN_END}"


def _calls(calls: Sequence[Call]) -> str:
    if not calls:
        return ""
    return SECTION + "".join(f"{CALL}{call.id}{ARGUMENTS}{call.arguments}{CALL_END}" for call in calls) + SECTION_END
