"""The same question many times: one attempt, and how often the same calls came."""

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from kimi_demo.dialect.conversation import ChatRequest
from kimi_demo.dialect.events import Attempt, Event, Timed
from kimi_demo.dialect.failure import Failure
from kimi_demo.dialect.reply import Reply, rounds
from kimi_demo.engines.port import ChatPort
from kimi_demo.tools.arguments import canonical
from kimi_demo.tools.rounds import Prepare, converse
from kimi_demo.tools.toolbox import Toolbox

Key = tuple[tuple[str, str], ...]
"""The calls of a conversation in order: (name, arguments in canonical form)."""


@dataclass(frozen=True)
class Tally:
    """Attempts that made the same calls. calls: as the first of them wrote them."""

    calls: tuple[tuple[str, str, int], ...]
    numbers: tuple[int, ...]


async def attempted(
    port: ChatPort, request: ChatRequest, toolbox: Toolbox, number: int, *, max_rounds: int, prepare: Prepare | None = None
) -> Attempt:
    """One conversation, from its question to its end; a failure is part of the Attempt."""
    events: list[Event] = []
    began, failure = time.monotonic(), None
    try:
        await converse(
            port,
            request.messages,
            toolbox,
            request.sampling,
            thinking=request.thinking,
            emit=events.append,
            max_rounds=max_rounds,
            tool_choice=request.tool_choice,
            parallel=request.parallel,
            prepare=prepare,
        )
    except Failure as error:
        failure = error
    replies = rounds(Timed(0.0, event) for event in events)
    return Attempt(
        number,
        tuple((call.name, call.arguments, index) for index, reply in enumerate(replies) for call in reply.calls),
        replies[-1].answer if replies else "",
        len(replies),
        time.monotonic() - began,
        tokens_of(replies),
        None if failure is None else failure.code,
        {} if failure is None else failure.params,
    )


def tallied(attempts: Sequence[Attempt]) -> list[Tally]:
    """The attempts by the calls that they made, the most frequent first."""
    counted: Counter[Key] = Counter()
    members: dict[Key, list[Attempt]] = {}
    for attempt in sorted(attempts, key=lambda each: each.number):
        key = tuple((name, canonical(arguments)) for name, arguments, _ in attempt.calls)
        counted[key] += 1
        members.setdefault(key, []).append(attempt)
    return [Tally(members[key][0].calls, tuple(each.number for each in members[key])) for key, _ in counted.most_common()]


def tokens_of(replies: Sequence[Reply]) -> int | None:
    """What was generated in all rounds; None where the server did not count."""
    counts = [reply.usage.completion_tokens for reply in replies if reply.usage is not None and reply.usage.completion_tokens is not None]
    return sum(counts) if counts else None
