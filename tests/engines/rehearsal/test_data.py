"""The training set: the same every time, in the template's own form, and without what the demo's examples ask."""

import hashlib
import json
import re
from dataclasses import replace
from decimal import Decimal
from itertools import islice
from random import Random
from typing import Any

import pytest

from kimi_demo.engines.rehearsal.data import mixture, plain_answers, spelling, talk_more
from kimi_demo.engines.rehearsal.data.conversation import Conversation, render
from kimi_demo.engines.rehearsal.data.numbers import chinese, decimal_words, english, spoken_chinese
from kimi_demo.engines.rehearsal.data.second_tasks import in_one_sentence
from kimi_demo.engines.rehearsal.data.tool_talk import Maker
from kimi_demo.engines.rehearsal.evaluation.scoring import invents
from kimi_demo.engines.rehearsal.tokenizer import THINK_END
from kimi_demo.tools.guide import GUIDE_TOOLS
from kimi_demo.tools.toolbox import Toolbox

SAMPLE = 1800
"""Conversations of each stage that are looked at."""


@pytest.fixture(scope="module")
def first(maker: Maker) -> list[Conversation]:
    return list(mixture.conversations(maker, mixture.first_stage(), count=SAMPLE))


@pytest.fixture(scope="module")
def second(maker: Maker) -> list[Conversation]:
    return list(mixture.conversations(maker, mixture.second_stage(), count=SAMPLE))


@pytest.fixture(scope="module")
def third(maker: Maker) -> list[Conversation]:
    return list(mixture.conversations(maker, mixture.third_stage(), count=SAMPLE))


@pytest.fixture(scope="module")
def sample(first: list[Conversation], second: list[Conversation], third: list[Conversation]) -> list[Conversation]:
    return [one for three in zip(first, second, third, strict=True) for one in three]


def test_the_same_seed_gives_the_same_conversations_from_any_start(maker: Maker, first: list[Conversation]) -> None:
    stage = mixture.first_stage()
    again = list(mixture.conversations(maker, stage, start=100, count=50))
    assert [one.to_json() for one in again] == [one.to_json() for one in first[100:150]]
    other = list(mixture.conversations(maker, replace(stage, seed=1), count=50))
    assert [one.to_json() for one in other] != [one.to_json() for one in first[:50]]


def test_a_stage_ends_where_it_ends(maker: Maker) -> None:
    stage = replace(mixture.second_stage(), count=5)
    assert len(list(mixture.conversations(maker, stage, start=3, count=50))) == 2 and len(list(mixture.conversations(maker, stage))) == 5


def test_the_published_adapters_first_stage_is_unchanged(first: list[Conversation]) -> None:
    """Later additions must not change what the adapter was trained on."""
    digest = hashlib.sha256("\n".join(one.to_json() for one in first[:400]).encode()).hexdigest()
    assert digest[:16] == "5d983b0f0531807a"


def test_the_published_adapters_second_stage_is_unchanged(second: list[Conversation]) -> None:
    digest = hashlib.sha256("\n".join(one.to_json() for one in second[:400]).encode()).hexdigest()
    assert digest[:16] == "37d0090a7b322d74"


def test_the_published_adapters_third_stage_is_unchanged(third: list[Conversation]) -> None:
    digest = hashlib.sha256("\n".join(one.to_json() for one in third[:400]).encode()).hexdigest()
    assert digest[:16] == "c9010dffd8011c84"


def test_held_out_contents_are_nowhere(sample: list[Conversation]) -> None:
    for conversation in sample:
        line = conversation.to_json().casefold()
        assert "strawberr" not in line and "草莓" not in line
        assert not ("9.11" in line and "9.9" in line)


def test_held_out_is_recognised_in_any_case() -> None:
    assert mixture.held_out("How many b in StrawBERRies?") and mixture.held_out("草莓") and mixture.held_out('{"a": 9.11, "b": 9.9}')
    assert not mixture.held_out("straw berry 9.11")


def test_all_kinds_are_there_in_both_stages(first: list[Conversation], second: list[Conversation]) -> None:
    expected = {"tool", "two_calls", "second_turn", "chain", "error", "schema", "none_fits", "copying", "topic", "talk", "identity"}
    for stage in (first, second):
        assert {conversation.kind for conversation in stage} == expected | {"declined", "without_tool"}


@pytest.mark.parametrize("stage", [mixture.second_stage(), mixture.third_stage()], ids=["second", "third"])
def test_every_generator_of_a_later_stage_is_used(maker: Maker, stage: mixture.Stage) -> None:
    """Each one by itself, so that a rare one that fails is found."""
    for generator in stage.shares:
        for index in range(60):
            conversation = generator(Random(f"{generator.__name__}/{index}"), maker)
            assert any(message.trained for message in conversation.messages), generator.__name__


def test_taught_topics_and_others_are_asked_about_in_the_same_words(maker: Maker) -> None:
    """So that the topic decides whether it is answered, not the phrasing."""

    def forms(generator: Any, names: list[str]) -> set[str]:
        questions = (generator(Random(index), maker).messages[-2].content for index in range(600))
        longest = sorted(names, key=len, reverse=True)
        return {question.replace(name, "_") for question in questions for name in longest if name in question}

    taught = [topic.name for topic in maker.content.topics["zh"]]
    others = [*maker.content.unknown["subjects"], *maker.content.unknown["entities"], *maker.content.declined["topics"]]
    assert not set(taught) & set(others)
    assert len(forms(talk_more.asked_anew, taught) & forms(talk_more.unknown_anew, others)) > 50


def test_letters_are_counted_from_the_pieces_that_the_model_reads(maker: Maker) -> None:
    assert plain_answers.spell_by_pieces(["car", "rot"]) == '"carrot", "car-rot": c a r - r o t'
    work = '"carrot", "car-rot": c a r - r o t; r: c0 a0 r1 r2 o2 t2'
    assert plain_answers.count_by_pieces(["car", "rot"], "r") == (work, 2)
    for word in ("carrot", "cronfleid", "a", "contentiousness"):
        assert "".join(maker.pieces(word)) == word


@pytest.mark.parametrize(
    ("a", "b", "steps"),
    [
        ("7.8", "7.15", "7 = 7, 8 > 1"),
        ("7.1", "7.15", "7 = 7, 1 = 1, 0 < 5"),
        ("12", "9.5", "12 > 9"),
        ("-3.5", "-3.25", "3 = 3, 5 > 2, both are negative, so the other way round"),
        ("4", "4.0", "4 = 4, 0 = 0"),
    ],
)
def test_decimals_are_compared_place_by_place(a: str, b: str, steps: str) -> None:
    assert plain_answers.compare_places(a, b, "en") == steps


@pytest.mark.parametrize("generator", [plain_answers.counted, plain_answers.compared])
def test_the_answer_without_a_tool_is_right(maker: Maker, generator: Any) -> None:
    """Judged as the evaluation judges, by the question's own numbers."""
    for index in range(300):
        conversation = generator(Random(index), maker)
        question, written = (message.content for message in conversation.messages)
        language = "zh" if re.search(r"[\u4e00-\u9fff]", written) else "en"
        if generator is plain_answers.compared:
            first, second = re.findall(r"-?\d+(?:\.\d+)?", question)[:2]
            larger = Decimal(first) > Decimal(second)
            named = re.search(r"(-?[\d.]+\d|\d)(?: is (greater|less) than |(大于|小于))(-?[\d.]+\d|\d)", written)
            if named is None:
                assert Decimal(first) == Decimal(second) or "equal" in written or "相等" in written, (question, written)
                continue
            left, right = Decimal(named[1]), Decimal(named[4])
            assert {left, right} == {Decimal(first), Decimal(second)} and (left > right) == ((named[2] or named[3]) in ("greater", "大于"))
            assert (left > right) == larger if left == Decimal(first) else (left > right) != larger
        else:
            told = re.search(r'letter "(.)" occurs (\d+) times? in "(\w+)"' if language == "en" else r'"(\w+)"中有(\d+)个"(.)"', written)
            assert told
            counted, word = (told[1], told[3]) if language == "en" else (told[3], told[1])
            assert word.lower().count(counted) == int(told[2]) and word.lower() in question.lower()


def test_what_is_declined_is_asked_in_great_variety(second: list[Conversation]) -> None:
    declined = [one for one in second if one.kind == "declined"]
    questions = {[message.content for message in one.messages if message.role == "user"][-1] for one in declined}
    assert len(questions) > 0.9 * len(declined) > 100
    assert all(invents(one.messages[-1].content) == "" for one in declined)


def test_plain_pairs_are_answered_one_by_one(maker: Maker) -> None:
    for language, least in (("en", 150), ("zh", 75)):
        pairs = maker.content.pairs[language]
        assert len(pairs) >= least and all(isinstance(answer, str) and answer for answer in pairs.values())


def test_two_questions_in_one_sentence_are_two_calls(maker: Maker) -> None:
    commas = 0
    for index in range(150):
        conversation = in_one_sentence(Random(index), maker)
        question, opening = conversation.messages[:2]
        assert len(opening.calls) == 2
        commas += "，" in question.content
    assert commas > 30


def test_a_word_is_spelt_with_a_running_count() -> None:
    assert spelling.spell("Carrot", "r") == ("c 0, a 0, r 1, r 2, o 2, t 2", 2)


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
    assert chinese(5_384_200_896) == "五十三亿八千四百二十万零八百九十六" and chinese(100_000_001) == "一亿零一"
    assert spoken_chinese(22_200) == "两万两千二百" and spoken_chinese(120_000) == "十二万" and spoken_chinese(-200) == "负两百"
    assert chinese(120_300) == "十二万零三百" and chinese(100_050) == "十万零五十"


def test_no_text_names_a_stray_placeholder(sample: list[Conversation]) -> None:
    for conversation in sample:
        for message in conversation.messages:
            assert not re.search(r"\{[a-zA-Z]+\d?\}", message.content + message.thought), message
