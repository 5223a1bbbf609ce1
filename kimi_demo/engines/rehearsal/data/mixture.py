"""The whole training set: which kinds, in which shares, each conversation from its own seed."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

from kimi_demo.engines.rehearsal import base
from kimi_demo.engines.rehearsal.data import content as contents
from kimi_demo.engines.rehearsal.data import copying, schema_talk, talk, tool_talk, words
from kimi_demo.engines.rehearsal.data.conversation import Conversation
from kimi_demo.engines.rehearsal.data.tool_talk import Maker
from kimi_demo.tools.guide import GUIDE_TOOLS

SEED = 20261130
GUIDE_NAMES = frozenset(tool.name for tool in GUIDE_TOOLS)
COUNT = 200_000
"""Conversations in the published adapter's training set."""

Generator = Callable[[Random, Maker], Conversation]


def shares() -> dict[Generator, float]:
    """How often each generator is used."""
    return {
        tool_talk.single: 24,
        tool_talk.double: 15,
        tool_talk.second_turn: 5,
        tool_talk.chain: 2,
        tool_talk.failed: 3,
        schema_talk.schema_call: 22,
        copying.copying: 16,
        talk.topic: 9,
        talk.small_talk: 5,
        talk.identity: 4,
        talk.declined: 2,
        talk.without_tool: 1,
    }


def maker(gguf: Path | None = None) -> Maker:
    """Content and words for the training set. gguf: the base file, found by itself if not given (raises base.BaseMissing then)."""
    tokens, _ = base.vocabulary(base.open_base(gguf or base.find_base().path))
    return Maker(contents.load(), words.sources(tokens)[0])


def conversations(making: Maker, count: int, seed: int = SEED, start: int = 0) -> Iterator[Conversation]:
    """Conversations `start` … `start + count - 1` of the set that `seed` names, in order. Ones with held-out contents are made anew."""
    kinds = shares()
    for index in range(start, start + count):
        rng = Random(f"{seed}/{index}")
        while True:
            generator = rng.choices(list(kinds), list(kinds.values()))[0]
            conversation = generator(rng, making)
            if not held_out("\n".join(_texts(conversation))):
                break
        yield conversation


def _texts(conversation: Conversation) -> Iterator[str]:
    """Everything in the conversation but the marks (and the guide's own tools)."""
    for message in conversation.messages:
        yield message.content
        yield message.thought
        yield from (call.arguments for call in message.calls)
    if conversation.tools and conversation.kind in ("schema", "none_fits", "tool"):
        yield from (json.dumps(tool, ensure_ascii=False) for tool in conversation.tools if tool["function"]["name"] not in GUIDE_NAMES)


def held_out(text: str) -> bool:
    """Whether `text` has what the demo's examples ask about: strawberry in any language or case, or 9.11 together with 9.9."""
    folded = text.casefold()
    return any(part in folded for part in words.HELD_OUT) or ("9.11" in folded and "9.9" in folded)
