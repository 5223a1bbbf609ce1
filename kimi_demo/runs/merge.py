"""Joins the fragments of a run's events before they are written: 50,000 tokens need not be 50,000 rows. Pure."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby, pairwise

from kimi_demo.dialect.events import AnswerDelta, BatchProgress, RoundStarted, ThoughtDelta, Timed, ToolCallDelta, Usage


def merged(entries: Sequence[Timed]) -> list[Timed]:
    """`entries` with fewer items, from which `dialect.reply.rounds` makes the very same replies, clocks included.

    Neighbouring fragments of one kind (of one call) become one, stamped with the time of the last. The first of them stays alone, for
    it says when the first token came; so does an answer's first one that is not blank. Running counts that a later count in the
    same round supersedes are left out.
    """
    joined: list[Timed] = []
    for key, group in groupby(_without_superseded(entries), key=_joins_with):
        items = list(group)
        joined += items if key is None else [_join(part) for part in _parts(items)]
    return joined


def _joins_with(item: Timed) -> tuple[str, int] | None:
    match item.event:
        case ThoughtDelta() | AnswerDelta():
            return item.event.type, 0
        case ToolCallDelta():
            return item.event.type, item.event.index
        case _:
            return None


def _parts(items: list[Timed]) -> Iterator[list[Timed]]:
    blank = next((i for i, item in enumerate(items) if not isinstance(item.event, AnswerDelta) or item.event.text.strip()), 0)
    for start, end in pairwise(sorted({0, 1, blank, blank + 1, len(items)})):
        yield items[start:end]


def _join(items: list[Timed]) -> Timed:
    first, last = items[0].event, items[-1]
    if len(items) == 1:
        return items[0]
    if isinstance(first, ToolCallDelta):
        deltas = [item.event for item in items if isinstance(item.event, ToolCallDelta)]
        return Timed(
            last.at,
            replace(
                first,
                id="".join(delta.id for delta in deltas),
                name="".join(delta.name for delta in deltas),
                arguments="".join(delta.arguments for delta in deltas),
            ),
        )
    texts = [item.event.text for item in items if isinstance(item.event, ThoughtDelta | AnswerDelta)]
    assert isinstance(first, ThoughtDelta | AnswerDelta)
    return Timed(last.at, replace(first, text="".join(texts)))


def _without_superseded(entries: Sequence[Timed]) -> Iterable[Timed]:
    kept: list[Timed] = []
    counted = progressed = False
    for item in reversed(entries):
        match item.event:
            case RoundStarted():
                counted = False
            case Usage(final=final):
                if counted and not final:
                    continue
                counted = True
            case BatchProgress():
                if progressed:
                    continue
                progressed = True
        kept.append(item)
    return reversed(kept)
