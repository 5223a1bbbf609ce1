"""The line of figures under a reply, from its events. What the server did not count is estimated, and marked so."""

from dataclasses import dataclass
from html import escape
from pathlib import PurePath

from kimi_demo.dialect.reply import Reply
from kimi_demo.ui.texts import Texts

SHORTEST_S = 0.1
"""A speed measured over less says more about buffers than about the model."""


@dataclass(frozen=True)
class Count:
    """Tokens; `exact` when the server counted them. per_second: None where a speed means nothing (too few, too short)."""

    tokens: int
    exact: bool
    per_second: float | None = None


@dataclass(frozen=True)
class Figures:
    """All that is known of a round. Seconds are after its request; None: not known, or it did not happen.

    answer: includes the tokens of tool calls.
    """

    prompt: int | None = None
    cached: int | None = None
    thought: Count | None = None
    answer: Count | None = None
    first_token_s: float | None = None
    first_answer_s: float | None = None
    finish: str | None = None
    model: str | None = None


def thought_tokens(reply: Reply, deltas: int) -> tuple[int, bool]:
    """(tokens of thought, exact). Exact when the server counts them, or when all tokens so far are thought; else the number of
    chunks, about one token each. A thought that goes on counts from its beginning."""
    before = reply.carried.reasoning_tokens if reply.carried is not None else 0
    usage = reply.usage
    if reply.carried is not None and reply.carried.answer:
        return before or deltas, before is not None
    if usage is not None and usage.reasoning_tokens is not None:
        return usage.reasoning_tokens + (before or 0), before is not None
    if usage is not None and usage.completion_tokens is not None and not reply.answer and not reply.calls:
        return usage.completion_tokens + (before or 0), before is not None
    return deltas + (before or 0), False


def figures(reply: Reply) -> Figures:
    usage, start = reply.usage, reply.started_at or 0.0
    thought, answer = _counts(reply)
    model = reply.request.get("model")
    return Figures(
        prompt=usage.prompt_tokens if usage else None,
        cached=usage.cached_tokens if usage else None,
        thought=thought,
        answer=answer,
        first_token_s=None if reply.first_token_at is None else reply.first_token_at - start,
        first_answer_s=None if reply.first_answer_at is None else reply.first_answer_at - start,
        finish=reply.finish_reason,
        model=model if isinstance(model, str) else None,
    )


def numbers(reply: Reply, texts: Texts) -> list[str]:
    """The figures in words, one item each."""
    found, say = figures(reply), texts.say
    items: list[str] = []
    if found.prompt is not None:
        key = "numbers.prompt" if not found.cached else "numbers.prompt_cached"
        items.append(say(key, count=f"{found.prompt:,}", cached=f"{found.cached or 0:,}"))
    for name, count in (("thought", found.thought), ("answer", found.answer)):
        if count is not None:
            key = f"numbers.{name}" if count.exact else f"numbers.{name}_about"
            words = say(key, count=f"{count.tokens:,}")
            if count.per_second is not None:
                words += " " + say("numbers.speed" if count.exact else "numbers.speed_about", rate=f"{count.per_second:.1f}")
            items.append(words)
    if found.first_token_s is not None:
        items.append(say("numbers.first_token", seconds=f"{found.first_token_s:.2f}"))
    if found.first_answer_s is not None and reply.thought:
        items.append(say("numbers.first_answer", seconds=f"{found.first_answer_s:.2f}"))
    if found.finish is not None:
        items.append(say("numbers.finish", reason=found.finish))
    if found.model:
        items.append(PurePath(found.model).name or found.model)
    return items


def numbers_html(reply: Reply, texts: Texts) -> str:
    return "".join(f"<span>{escape(item)}</span>" for item in numbers(reply, texts))


def estimated_tokens(text: str) -> int:
    """About how many tokens `text` is: Kimi's vocabulary takes about 4 letters, or 1.5 Chinese characters, to a token."""
    wide = sum(1 for character in text if character >= "\u2e80")
    return 0 if not text else max(1, round(wide / 1.5 + (len(text) - wide) / 4))


def _counts(reply: Reply) -> tuple[Count | None, Count | None]:
    """Thought and answer. Text carried over from an earlier reply was counted there."""
    before = reply.carried
    thought_text = reply.thought[len(before.thought) if before else 0 :]
    answer_text = reply.answer[len(before.answer) if before else 0 :]
    answered = answer_text + "".join(call.name + call.arguments for call in reply.calls)
    thought, answer = estimated_tokens(thought_text), estimated_tokens(answered)
    completion = reply.usage.completion_tokens if reply.usage else None
    reasoning = reply.usage.reasoning_tokens if reply.usage else None
    exact = completion is not None and (reasoning is not None or not thought or not answer)
    if completion is not None and reasoning is not None:
        thought, answer = reasoning, max(0, completion - reasoning)
    elif completion is not None and thought and answer:  # the sum is known: the estimates only share it out
        thought = round(completion * thought / (thought + answer))
        answer = completion - thought
    elif completion is not None:
        thought, answer = (completion, 0) if thought else (0, completion)
    first, last, turn = reply.first_token_at, reply.last_token_at, reply.thought_ended_at
    told = bool(reply.first_token_at is not None)
    return (
        Count(thought, exact, _speed(thought - 1, first, turn)) if thought and told else None,
        # After a thought, the first token of the answer is one step after the thought's last.
        Count(answer, exact, _speed(answer - (turn is None), first if turn is None else turn, last)) if answer and told else None,
    )


def _speed(steps: int, start: float | None, end: float | None) -> float | None:
    if start is None or end is None or steps < 1 or end - start < SHORTEST_S:
        return None
    return steps / (end - start)
