"""Conversations → token rows of one length, several conversations to a row, none cut.

Half of the conversations begin with the same declaration of the guide's tools. It is put once at the head of a row and seen by all
conversations in it, which then cost a third: each token sees exactly what it would see if its conversation stood alone.
"""

import multiprocessing
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy
from numpy.typing import NDArray

from kimi_demo.engines.rehearsal import base, tokenizer
from kimi_demo.engines.rehearsal.data import mixture
from kimi_demo.engines.rehearsal.data.conversation import Conversation, declaration, render
from kimi_demo.engines.rehearsal.data.mixture import Stage
from kimi_demo.engines.rehearsal.data.tool_talk import guide_schemas

Ids = NDArray[numpy.int32]

PADDING = -1
SHARED = -2
"""Tokens at a row's head that all its conversations see."""


@dataclass(frozen=True)
class Encoded:
    """One conversation. ids: (n,) tokens; learnt: (n,) 1 where the model must have written the token.

    shared: the guide's tool declaration comes before `ids` and is not part of them.
    """

    ids: Ids
    learnt: Ids
    shared: bool = False


@dataclass(frozen=True)
class Rows:
    """All (rows, length) int32. documents: which conversation of its row a token is in, SHARED or PADDING; positions: from 0 in each.

    learnt: 1 where the *next* token is to be predicted.
    """

    ids: Ids
    documents: Ids
    positions: Ids
    learnt: Ids


class Encoder:
    """Tokenises conversations; remembers tool declarations, which recur."""

    def __init__(self, gguf: Path) -> None:
        from tokenizers import Tokenizer

        tokens, merges = base.vocabulary_of(gguf)
        self._tokenizer = Tokenizer.from_str(tokenizer.tokenizer_json(tokens, merges))
        self._guide = declaration(guide_schemas())

    def __call__(self, conversation: Conversation) -> Encoded:
        ids: list[int] = []
        learnt: list[int] = []
        pieces = render(conversation)
        shared = pieces[0][0] == self._guide
        for text, trained in pieces[1:] if shared else pieces:
            piece = self._encode(text)
            ids += piece
            learnt += [int(trained)] * len(piece)
        return Encoded(numpy.array(ids, numpy.int32), numpy.array(learnt, numpy.int32), shared)

    def guide(self) -> Ids:
        """The guide's tool declaration."""
        return numpy.array(self._encode(self._guide), numpy.int32)

    def _encode(self, text: str) -> list[int]:
        return list(self._tokenizer.encode(text, add_special_tokens=False).ids)


def encoding(gguf: Path, stage: Stage, workers: int) -> Callable[[], list[Encoded]]:
    """Start `workers` processes that make and tokenise `stage`'s conversations; the result waits for them.

    The conversations and their order are the same for any number of processes.
    """
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    base.vocabulary_of(gguf)  # the processes inherit it
    step = -(-stage.count // max(workers, 1))
    parts = [(gguf, stage, start, min(step, stage.count - start)) for start in range(0, stage.count, step)]
    if workers <= 1:
        return lambda: [item for part in parts for item in _part(part)]
    pool = multiprocessing.get_context("fork").Pool(workers)
    made = pool.map_async(_part, parts)

    def wait() -> list[Encoded]:
        with pool:
            return [item for part in made.get() for item in part]

    return wait


def _part(part: tuple[Path, Stage, int, int]) -> list[Encoded]:
    gguf, stage, start, count = part
    encode = Encoder(gguf)
    return [encode(conversation) for conversation in mixture.conversations(mixture.maker(gguf), stage, start, count)]


def pack(items: Sequence[Encoded], guide: Ids, length: int) -> Rows:
    """Conversations into rows by first fit among the open rows, in order. Longer ones than a row are left out.

    guide: what stands at the head of the rows for `shared` conversations.
    """
    nothing = numpy.zeros(0, numpy.int32)
    rows = [(nothing, row) for row in _fitted((item for item in items if not item.shared), length)]
    rows += [(guide, row) for row in _fitted((item for item in items if item.shared), length - len(guide))]
    shape = (len(rows), length)
    packed = Rows(*(numpy.zeros(shape, numpy.int32) for _ in range(4)))
    packed.documents[:] = PADDING
    for index, (head, row) in enumerate(rows):
        start = len(head)
        packed.ids[index, :start] = head
        packed.documents[index, :start] = SHARED
        packed.positions[index, :start] = numpy.arange(start)
        for number, item in enumerate(row):
            size = len(item.ids)
            place = slice(start, start + size)
            packed.ids[index, place] = item.ids
            packed.documents[index, place] = number
            packed.positions[index, place] = numpy.arange(len(head), len(head) + size)
            packed.learnt[index, start : start + size - 1] = item.learnt[1:]
            start += size
    return packed


def _fitted(items: Iterable[Encoded], length: int, open_rows: int = 10) -> Iterator[list[Encoded]]:
    rows: list[tuple[int, list[Encoded]]] = []
    for item in items:
        size = len(item.ids)
        if size > length:
            continue
        fitting = [index for index, (used, _) in enumerate(rows) if used + size <= length]
        best = max(fitting, key=lambda index: rows[index][0], default=None)
        if best is None:
            if len(rows) >= open_rows:
                fullest = max(range(len(rows)), key=lambda index: rows[index][0])
                yield rows.pop(fullest)[1]
            rows.append((size, [item]))
        else:
            used, row = rows[best]
            row.append(item)
            rows[best] = (used + size, row)
    yield from (row for _, row in rows)
