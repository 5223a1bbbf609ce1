"""What a tool conversation took in all: rounds, calls, tokens, time. Pure."""

from collections.abc import Sequence

from kimi_demo.dialect.reply import Reply
from kimi_demo.tools.attempts import tokens_of
from kimi_demo.ui.texts import Texts


def totals_words(replies: Sequence[Reply], seconds: float, texts: Texts) -> list[str]:
    """One item each; tokens only where the server counted them. [] when nothing was asked for."""
    if not replies:
        return []
    say = texts.say
    calls = [call for reply in replies for call in reply.calls]
    failed = sum(call.error is not None for call in calls)
    found = [
        say("totals.rounds", count=len(replies)),
        say("totals.calls_failed" if failed else "totals.calls", count=len(calls), failed=failed),
    ]
    read = [reply.usage.prompt_tokens for reply in replies if reply.usage is not None and reply.usage.prompt_tokens is not None]
    written = tokens_of(replies)
    if written is not None:
        found.append(say("totals.tokens", read=f"{sum(read):,}", written=f"{written:,}"))
    return [*found, say("totals.seconds", seconds=f"{seconds:.1f}")]
