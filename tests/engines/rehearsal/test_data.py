"""The training set: the same every time, in the template's own form, and without what the demo's examples ask."""

import json
import re
from collections import Counter
from itertools import islice
from typing import Any

import pytest

from kimi_demo.engines.rehearsal.data import mixture
from kimi_demo.engines.rehearsal.data.conversation import Conversation, render
from kimi_demo.engines.rehearsal.data.numbers import chinese, decimal_words, english
from kimi_demo.engines.rehearsal.data.tool_talk import Maker
from kimi_demo.engines.rehearsal.tokenizer import THINK_END
from kimi_demo.tools.guide import GUIDE_TOOLS
from kimi_demo.tools.toolbox import Toolbox

SAMPLE = 2500


@pytest.fixture(scope="module")
def sample(maker: Maker) -> list[Conversation]:
    return list(mixture.conversations(maker, SAMPLE))


def test_the_same_seed_gives_the_same_conversations_from_any_start(maker: Maker, sample: list[Conversation]) -> None:
    again = list(mixture.conversations(maker, 50, start=100))
    assert [one.to_json() for one in again] == [one.to_json() for one in sample[100:150]]
    other = list(mixture.conversations(maker, 50, seed=1))
    assert [one.to_json() for one in other] != [one.to_json() for one in sample[:50]]


def test_held_out_contents_are_nowhere(sample: list[Conversation]) -> None:
    for conversation in sample:
        line = conversation.to_json().casefold()
        assert "strawberr" not in line and "草莓" not in line
        assert not ("9.11" in line and "9.9" in line)


def test_held_out_is_recognised_in_any_case() -> None:
    assert mixture.held_out("How many b in StrawBERRies?") and mixture.held_out("草莓") and mixture.held_out('{"a": 9.11, "b": 9.9}')
    assert not mixture.held_out("straw berry 9.11")


def test_all_kinds_are_there(sample: list[Conversation]) -> None:
    kinds = Counter(conversation.kind for conversation in sample)
    expected = {"tool", "two_calls", "second_turn", "chain", "error", "schema", "none_fits", "copying", "topic", "talk", "identity"}
    assert set(kinds) == expected | {"declined", "without_tool"}


def test_calls_are_valid_and_ids_count_through(sample: list[Conversation]) -> None:
    for conversation in sample:
        names = {tool["function"]["name"] for tool in conversation.tools}
        calls = [call for message in conversation.messages for call in message.calls]
        assert [call.number for call in calls] == list(range(len(calls)))
        for call in calls:
            assert call.name in names and isinstance(json.loads(call.arguments), dict)


async def test_results_are_the_tools_own(sample: list[Conversation]) -> None:
    toolbox = Toolbox(GUIDE_TOOLS)
    checked = 0
    for conversation in islice((one for one in sample if one.kind in ("tool", "two_calls", "chain", "second_turn")), 300):
        results = {message.call_id: message.content for message in conversation.messages if message.role == "tool"}
        for message in conversation.messages:
            for call in message.calls:
                outcome = await toolbox.call(call.name, call.arguments)
                assert outcome.error is None and outcome.result == results[call.id]
                checked += 1
    assert checked > 300


def test_the_rendering_is_the_templates(sample: list[Conversation], kimi_tokenizer: Any) -> None:
    for conversation in sample[:400]:
        record = json.loads(conversation.to_json())
        text = kimi_tokenizer.apply_chat_template(
            record["messages"][:-1],
            tools=record.get("tools"),
            thinking=conversation.thinking,
            tokenize=False,
            add_generation_prompt=True,
        )
        ours = "".join(piece for piece, _ in render(conversation))
        assert ours.startswith(text), conversation.kind


def test_what_is_learnt_ends_a_turn(sample: list[Conversation]) -> None:
    for conversation in sample:
        learnt = [text for text, trained in render(conversation) if trained]
        assert learnt and all(text.endswith("<|im_end|>") for text in learnt)
        assert all((THINK_END in text) == conversation.thinking for text in learnt)


def test_identity_never_claims_another_name(sample: list[Conversation]) -> None:
    from kimi_demo.engines.rehearsal.evaluation.scoring import claims_another

    answers = {conversation.messages[-1].content for conversation in sample if conversation.kind == "identity"}
    assert answers and not [answer for answer in answers if claims_another(answer)]


def test_some_thoughts_are_long_and_brief_ones_are_brief(sample: list[Conversation], kimi_tokenizer: Any) -> None:
    thoughts = [message.thought for one in sample for message in one.messages if message.trained and one.thinking]
    sizes = sorted(len(kimi_tokenizer.encode(thought)) for thought in thoughts)
    assert sizes[len(sizes) * 99 // 100] >= 150 and sizes[0] <= 10


def test_the_guides_chinese_topics_are_covered(maker: Maker) -> None:
    topics = {topic.name for topic in maker.content.topics["zh"]}
    assert {"大模型", "深度学习算法"} <= topics and len(topics) >= 60
    assert len(maker.content.topics["en"]) >= 200


def test_identity_has_fifty_phrasings_in_each_language(maker: Maker) -> None:
    for language in ("en", "zh"):
        texts = maker.content.identity[language]
        assert len({text for group in ("who", "maker", "are_you", "made_by", "difference") for text in texts[group]}) >= 50


@pytest.mark.parametrize(
    ("number", "en", "zh"),
    [(0, "zero", "零"), (15, "fifteen", "十五"), (-12, "minus twelve", "负十二"), (1005, "one thousand five", "一千零五")],
)
def test_numbers_in_words(number: int, en: str, zh: str) -> None:
    assert english(number) == en and chinese(number) == zh


def test_decimals_in_words() -> None:
    assert decimal_words("-9.25", "en") == "minus nine point two five" and decimal_words("9.25", "zh") == "九点二五"
    assert chinese(120_300) == "十二万零三百" and chinese(100_050) == "十万零五十"


def test_no_text_names_a_stray_placeholder(sample: list[Conversation]) -> None:
    for conversation in sample:
        for message in conversation.messages:
            assert not re.search(r"\{[a-zA-Z]+\d?\}", message.content + message.thought), message
