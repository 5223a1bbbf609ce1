"""The whole training set: which kinds, in which shares, each conversation from its own seed."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from kimi_demo.engines.rehearsal import base, tokenizer
from kimi_demo.engines.rehearsal.data import content as contents
from kimi_demo.engines.rehearsal.data import (
    copying,
    declining,
    declining_named,
    plain_answers,
    plain_pairs,
    schema_talk,
    second_tasks,
    spelling,
    talk,
    talk_more,
    tool_talk,
    words,
)
from kimi_demo.engines.rehearsal.data.conversation import Conversation
from kimi_demo.engines.rehearsal.data.tool_talk import Maker
from kimi_demo.tools.guide import GUIDE_TOOLS

GUIDE_NAMES = frozenset(tool.name for tool in GUIDE_TOOLS)

Generator = Callable[[Random, Maker], Conversation]


@dataclass(frozen=True)
class Stage:
    """A part of the training: its own seed, so many conversations, and how often each generator is used."""

    seed: int
    count: int
    shares: Mapping[Generator, float]


def first_stage() -> Stage:
    """From the base to the published adapter's first version: everything it has to be able to do."""
    return Stage(
        20261130,
        200_000,
        {
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
        },
    )


def second_stage() -> Stage:
    """From there on, at a lower rate: much of what went wrong, and something of everything so that nothing is forgotten."""
    return Stage(
        20261131,
        100_000,
        {
            tool_talk.single: 14,
            tool_talk.double: 7,
            tool_talk.second_turn: 3,
            tool_talk.chain: 1.5,
            tool_talk.failed: 2,
            schema_talk.schema_call: 12,
            copying.copying: 8,
            talk.topic: 9,
            plain_pairs.own_talk: 4,
            talk.identity: 4,
            talk.declined: 2,
            talk.without_tool: 0.5,
            second_tasks.rephrased: 7,
            second_tasks.in_one_sentence: 7,
            second_tasks.long_numbers: 5,
            second_tasks.digits: 2,
            second_tasks.contest: 3,
            declining.unknown: 8,
            plain_pairs.plain_pair: 3,
            spelling.spelt_count: 4,
            spelling.spelt_list: 4,
        },
    )


def third_stage() -> Stage:
    """Who it is and what it knows in far more words, letters and decimals without a tool, and more than half of everything again."""
    return Stage(
        20261201,
        120_000,
        {
            tool_talk.single: 12,
            tool_talk.double: 9,
            tool_talk.second_turn: 3,
            tool_talk.chain: 1.5,
            tool_talk.failed: 2,
            schema_talk.schema_call: 11,
            copying.copying: 8,
            second_tasks.rephrased: 5,
            second_tasks.in_one_sentence: 4,
            second_tasks.long_numbers: 3,
            second_tasks.digits: 1,
            second_tasks.contest: 2,
            talk.topic: 4,
            talk_more.asked_anew: 7,
            plain_pairs.own_talk: 3,
            plain_pairs.plain_pair: 3,
            talk.identity: 2,
            talk_more.more_identity: 9,
            talk.declined: 1,
            declining.unknown: 4,
            talk_more.unknown_anew: 5,
            plain_answers.counted: 5,
            plain_answers.spelt_pieces: 8,
            plain_answers.compared: 4,
            plain_answers.no_sum: 1,
        },
    )


def fourth_stage() -> Stage:
    """What is declined in Chinese is declined by name; a little of everything else, so that nothing is forgotten."""
    return Stage(
        20261202,
        24_000,
        {
            tool_talk.single: 12,
            tool_talk.double: 10,
            tool_talk.second_turn: 3,
            tool_talk.chain: 1.5,
            tool_talk.failed: 2,
            schema_talk.schema_call: 11,
            copying.copying: 8,
            second_tasks.rephrased: 5,
            second_tasks.in_one_sentence: 4,
            second_tasks.long_numbers: 3,
            second_tasks.digits: 1,
            second_tasks.contest: 2,
            talk.topic: 4,
            talk_more.asked_anew: 9,
            plain_pairs.own_talk: 3,
            plain_pairs.plain_pair: 3,
            talk.identity: 2,
            talk_more.more_identity: 9,
            declining_named.declined: 2,
            declining_named.unknown: 5,
            declining_named.unknown_anew: 5,
            plain_answers.counted: 5,
            plain_answers.spelt_pieces: 6,
            plain_answers.compared: 4,
            plain_answers.no_sum: 1,
        },
    )


def stages() -> tuple[Stage, Stage, Stage, Stage]:
    """In the order in which the published adapter was trained on them."""
    return first_stage(), second_stage(), third_stage(), fourth_stage()


def maker(gguf: Path | None = None) -> Maker:
    """Content and words for the training set. gguf: the base file, found by itself if not given (raises base.BaseMissing then)."""
    tokens, merges = base.vocabulary_of(gguf or base.find_base().path)
    return Maker(contents.load(), words.sources(tokens)[0], _splitter(tokens, merges))


def _splitter(tokens: list[str], merges: list[str]) -> Callable[[str], list[str]]:
    """A function that gives the tokens of a word of a to z inside quotation marks. The tokenizer is made at its first use."""
    made: list[Any] = []

    def pieces(word: str) -> list[str]:
        if not made:
            from tokenizers import Tokenizer

            made.append(Tokenizer.from_str(tokenizer.tokenizer_json(tokens, merges)))
        encoded = made[0].encode(f'"{word}"', add_special_tokens=False)
        return [part for part in (f'"{word}"'[start:end].strip('"') for start, end in encoded.offsets) if part]

    return pieces


def conversations(making: Maker, stage: Stage, start: int = 0, count: int | None = None) -> Iterator[Conversation]:
    """Conversations `start` … of `stage`, in order: `count` of them, by default to its end. Ones with held-out contents are made anew."""
    generators, weights = list(stage.shares), list(stage.shares.values())
    for index in range(start, stage.count if count is None else min(start + count, stage.count)):
        rng = Random(f"{stage.seed}/{index}")
        while True:
            conversation = rng.choices(generators, weights)[0](rng, making)
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
