"""What of a finished tool conversation another version of it begins with: the rounds up to a point, with a change or without. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from kimi_demo.dialect.events import (
    Ended,
    Failed,
    Finished,
    RoundStarted,
    Timed,
    ToolCallDelta,
    ToolChecked,
    ToolDecided,
    ToolEdited,
    ToolResult,
    ToolStarted,
    ToolWaiting,
)
from kimi_demo.dialect.failure import Failure
from kimi_demo.dialect.reply import Reply, rounds
from kimi_demo.dialect.sound import sound
from kimi_demo.tools.history import has_calls
from kimi_demo.tools.toolbox import cut

_OF_A_CALL = ToolChecked | ToolWaiting | ToolDecided | ToolStarted | ToolEdited | ToolResult


def before_round(entries: Sequence[Timed], round: int) -> list[Timed]:
    """What came before that round was asked for; [] for round 0. Raises Failure("tools.no_such_round")."""
    return _cut(entries, round)[0]


def all_rounds(entries: Sequence[Timed]) -> list[Timed]:
    """Every round, to go on after the last. Raises Failure("tools.cannot_go_on") when that was not a whole one that calls tools."""
    replies = rounds(entries)
    if not replies or not may_go_on(replies[-1]):
        raise Failure("tools.cannot_go_on")
    head, last = _cut(entries, len(replies) - 1)
    return [*head, *_settled(last)]


def may_go_on(reply: Reply) -> bool:
    """Whether a conversation can go on after this round as it stands: its calls are whole, whether they were carried out or not."""
    return reply.finish_reason not in (None, "length") and has_calls(reply)


def with_result(entries: Sequence[Timed], round: int, call: int, text: str) -> list[Timed]:
    """The rounds up to this one, in which the call returned `text`. Raises Failure: tools.no_such_round, tools.no_such_call."""
    head, last = _whole(entries, round, call)
    at, known = last[-1].at, rounds(last)[0].calls[call]
    kept = [item for item in last if not (isinstance(item.event, ToolResult) and item.event.index == call)]
    result = ToolResult(call, known.id, known.name, cut(text), seconds=known.seconds or 0.0)
    return [*head, *kept, Timed(at, result), Timed(at, ToolEdited(call, "result"))]


def with_arguments(entries: Sequence[Timed], round: int, call: int, arguments: str) -> list[Timed]:
    """The rounds up to this one, in which the call was made with other arguments and is still to be carried out.

    Raises Failure: tools.no_such_round, tools.no_such_call.
    """
    head, last = _whole(entries, round, call)
    known = rounds(last)[0].calls[call]
    found, given = list[Timed](), False
    for item in last:
        match item.event:
            case ToolCallDelta(index=index) if index == call:
                if not given:
                    found.append(replace(item, event=ToolCallDelta(call, known.id, known.name, sound(arguments))))
                given = True
            case _ if isinstance(item.event, _OF_A_CALL) and item.event.index == call:
                pass
            case _:
                found.append(item)
    return [*head, *found, Timed(last[-1].at, ToolEdited(call, "arguments"))]


def _whole(entries: Sequence[Timed], round: int, call: int) -> tuple[list[Timed], list[Timed]]:
    """(what came before the round, the round)."""
    head, last = _cut(entries, round)
    reply = rounds(last)[0]
    if not 0 <= call < len(reply.calls) or not reply.calls[call].name:
        raise Failure("tools.no_such_call")
    if reply.finish_reason in (None, "length"):  # cut off; as a person has now changed it, it is whole, and its calls are to be made
        last = [item for item in last if not isinstance(item.event, Finished | _OF_A_CALL)]
        last.append(Timed(last[-1].at, Finished("tool_calls")))
    return head, _settled(last)


def _settled(last: list[Timed]) -> list[Timed]:
    """Without what had begun with calls that came to nothing: it will begin again."""
    settled = {item.event.index for item in last if isinstance(item.event, ToolResult)}
    return [
        item for item in last if not isinstance(item.event, _OF_A_CALL) or isinstance(item.event, ToolEdited) or item.event.index in settled
    ]


def _cut(entries: Sequence[Timed], round: int) -> tuple[list[Timed], list[Timed]]:
    starts = [index for index, item in enumerate(entries) if isinstance(item.event, RoundStarted)]
    if not 0 <= round < len(starts):
        raise Failure("tools.no_such_round")
    end = starts[round + 1] if round + 1 < len(starts) else len(entries)
    return _of_rounds(entries[starts[0] : starts[round]]), _of_rounds(entries[starts[round] : end])


def _of_rounds(entries: Iterable[Timed]) -> list[Timed]:
    return [item for item in entries if not isinstance(item.event, Failed | Ended)]
