"""What a run has cost in tokens, out of its events. Pure."""

from collections.abc import Iterable

from kimi_demo.dialect.events import (
    AnswerDelta,
    Attempt,
    PromptTokens,
    RoundStarted,
    RowFinished,
    ThoughtDelta,
    Timed,
    ToolCallDelta,
    Usage,
)

_CHARS_PER_TOKEN = 3
"""Where a server does not count: fewer than any language needs on average, so that it is not too little."""


def spent(entries: Iterable[Timed]) -> int:
    """Prompts and replies of all rounds. Where the server gave no count (a reply that was stopped), about."""
    total, prompt, deltas = 0, 0, 0
    for item in entries:
        match item.event:
            case RoundStarted(request=request):
                total += prompt + deltas
                prompt, deltas = about(str(request.get("messages") or request.get("prompt") or "")), 0
            case Usage(prompt_tokens=given, completion_tokens=written):
                prompt = given if given is not None else prompt
                deltas = max(deltas, written or 0) if written is not None else deltas
            case PromptTokens(count=count):
                prompt = count
            case ThoughtDelta() | AnswerDelta() | ToolCallDelta():
                deltas += 1
            case Attempt(tokens=tokens):
                total += tokens or 0
            case RowFinished(prompt_tokens=read, completion_tokens=generated):
                total += read + generated
            case _:
                pass
    return total + prompt + deltas


def about(text: str) -> int:
    """Tokens of a text, roughly: every character outside ASCII is one."""
    ascii_chars = sum(character.isascii() for character in text)
    return ascii_chars // _CHARS_PER_TOKEN + len(text) - ascii_chars
