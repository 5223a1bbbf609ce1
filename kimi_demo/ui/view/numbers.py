"""The line of figures under a reply, from its events."""

from kimi_demo.dialect.reply import Reply
from kimi_demo.ui.texts import Texts

SHORTEST_S = 0.1
"""A speed measured over less says more about buffers than about the model."""


def thought_tokens(reply: Reply, deltas: int) -> tuple[int, bool]:
    """(tokens of thought, exact). Exact when the server counts them; else the number of chunks, about one token each."""
    if reply.usage is not None and reply.usage.reasoning_tokens is not None:
        return reply.usage.reasoning_tokens, True
    return deltas, False


def numbers(reply: Reply, texts: Texts) -> list[str]:
    """What is known of the finished reply: tokens in and out, first token, first answer token, speed, finish reason."""
    found: list[str] = []
    usage = reply.usage
    if usage is not None and usage.prompt_tokens is not None:
        found.append(texts.say("numbers.prompt", count=usage.prompt_tokens))
    if usage is not None and usage.completion_tokens is not None:
        key = "numbers.completion" if usage.reasoning_tokens is None else "numbers.completion_with_thought"
        found.append(texts.say(key, count=usage.completion_tokens, thought=usage.reasoning_tokens))
    start = reply.started_at or 0.0
    if reply.first_token_at is not None:
        found.append(texts.say("numbers.first_token", seconds=f"{reply.first_token_at - start:.2f}"))
    if reply.first_answer_at is not None and reply.thought:
        found.append(texts.say("numbers.first_answer", seconds=f"{reply.first_answer_at - start:.2f}"))
    speed = tokens_per_second(reply)
    if speed is not None:
        found.append(texts.say("numbers.speed", rate=f"{speed:.1f}"))
    if reply.finish_reason is not None:
        found.append(texts.say("numbers.finish", reason=reply.finish_reason))
    return found


def tokens_per_second(reply: Reply) -> float | None:
    """Tokens per second between the first and the last token; None where that means nothing: too few, too short, not counted."""
    if reply.usage is None or reply.usage.completion_tokens is None or reply.first_token_at is None or reply.last_token_at is None:
        return None
    seconds = reply.last_token_at - reply.first_token_at
    return (reply.usage.completion_tokens - 1) / seconds if reply.usage.completion_tokens > 1 and seconds >= SHORTEST_S else None
