"""The parts that scenarios of the scripted server are made of: what was asked, a script of deltas, a refusal."""

import re
from dataclasses import dataclass
from typing import Any

Delta = dict[str, Any]


@dataclass(frozen=True)
class Script:
    """One reply, chunk by chunk; every delta counts as one token.

    rate: chunks a second (None: as fast as they go out). silence_s: seconds before the first chunk, `silent_headers`: before the
    response's headers too. dies_after, error_after: after that many chunks the socket is closed, or an SSE error event sent.
    bare_chunks: chunks without choices are strewn in. usage: whether token counts are given when asked for; counts_reasoning: with
    reasoning tokens among them, as vLLM does with a reasoning parser. cut_bytes: the byte stream goes out in pieces of that size.
    """

    deltas: tuple[Delta, ...]
    finish: str | None = "stop"
    rate: float | None = None
    silence_s: float = 0.0
    silent_headers: bool = False
    dies_after: int | None = None
    error_after: int | None = None
    bare_chunks: bool = False
    usage: bool = True
    counts_reasoning: bool = True
    cut_bytes: int | None = None


@dataclass(frozen=True)
class Refusal:
    """An answer that is no reply."""

    status: int
    body: Any
    content_type: str = "application/json"
    headers: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Ask:
    """A chat request as scenarios see it. round: how many times the model has called tools since the last user message."""

    body: dict[str, Any]

    @property
    def stream(self) -> bool:
        return bool(self.body.get("stream"))

    @property
    def thinking(self) -> bool:
        kwargs = self.body.get("chat_template_kwargs") or {}
        return kwargs.get("thinking") is not False and (self.body.get("thinking") or {}).get("type") != "disabled"

    @property
    def _since_user(self) -> list[dict[str, Any]]:
        messages = [message for message in self.body.get("messages") or [] if isinstance(message, dict)]
        last = max((i for i, message in enumerate(messages) if message.get("role") == "user"), default=-1)
        return messages[last + 1 :]

    @property
    def round(self) -> int:
        return sum(1 for message in self._since_user if message.get("tool_calls"))

    @property
    def returned(self) -> str:
        """What the tools returned since the last user message."""
        return " ".join(str(message.get("content")) for message in self._since_user if message.get("role") == "tool")


_PIECE = re.compile(r"\s*(?:[A-Za-z0-9_]+|[^\sA-Za-z0-9_])|\s+")

THOUGHT = "The user wants a short answer.\n    Indented line.\n\nSo I will give one, in 两种语言 🎉."
ANSWER = "A **language model** predicts text.\n\n```python\n    print('hi')\n```\n语言模型预测文本。👩‍🚀 Done."


def pieces(text: str) -> list[str]:
    """`text` in pieces of about a token; joined they are `text`."""
    return _PIECE.findall(text)


def told(field: str, text: str) -> tuple[Delta, ...]:
    return tuple({field: piece} for piece in pieces(text))


def thought_of(ask: Ask, text: str = THOUGHT, field: str = "reasoning") -> tuple[Delta, ...]:
    return told(field, text) if ask.thinking else ()


def call(index: int, call_id: str, name: str, arguments: str, fragment: int = 4) -> tuple[Delta, ...]:
    """A tool call as vLLM streams it: id and name first, then its arguments in fragments."""
    head = {"index": index, "id": call_id, "type": "function", "function": {"name": name, "arguments": ""}}
    cut = [arguments[i : i + fragment] for i in range(0, len(arguments), fragment)]
    return ({"tool_calls": [head]}, *({"tool_calls": [{"index": index, "function": {"arguments": part}}]} for part in cut))
