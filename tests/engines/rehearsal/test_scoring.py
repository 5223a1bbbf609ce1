"""Judging replies, and the evaluation's questions."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from decimal import Decimal

import pytest

from kimi_demo.engines.rehearsal.data.tasks import Task
from kimi_demo.engines.rehearsal.evaluation import cases
from kimi_demo.engines.rehearsal.evaluation.cases import Expected
from kimi_demo.engines.rehearsal.evaluation.quick import parse
from kimi_demo.engines.rehearsal.evaluation.run import Request, evaluate
from kimi_demo.engines.rehearsal.evaluation.scoring import (
    ModelCall,
    Reply,
    claims_another,
    hides_error,
    invents,
    malformed,
    wrong_answer,
    wrong_calls,
)

COUNT = Task("en", "How many r in carrot?", "count", {"a": '"carrot"', "b": '"r"'})
SMALLER = Task("en", "Which is smaller, 7.11 or 7.9?", "smaller", {"a": "7.11", "b": "7.9"})
SMALLER_ZH = Task("zh", "7.11和7.9，哪个小？", "smaller", {"a": "7.11", "b": "7.9"})
SUM = Task("en", "1000 + 234", "add", {"a": "1000", "b": "234"})
WHO = Task("en", "Who?", "larger", {"a": "1.5", "b": "1.25"}, "{sentence} So {winner} ran farther.", ("Ann", "Bob"))
ASKED = Task("en", "Is 3 greater than 4?", "is_greater", {"a": "3", "b": "4"})


@pytest.mark.parametrize(
    ("task", "answer", "right"),
    [
        (COUNT, 'The letter "r" occurs 2 times in "carrot".', True),
        (COUNT, 'The letter "r" occurs 3 times in "carrot".', False),
        (COUNT, 'The letter "r" occurs 2 times in "parrot".', False),
        (COUNT, '"carrot"中有2个"r"。', False),
        (SMALLER, "7.11 is smaller: 7.11 is less than 7.9.", True),
        (SMALLER, "7.9 is smaller: 7.11 is less than 7.9.", False),
        (SMALLER, "7.11 is smaller than 7.9.", True),
        (SMALLER, "7.9 is larger than 7.11.", False),
        (SMALLER, "I do not know.", False),
        (SMALLER_ZH, "7.11更小：7.11小于7.9。", True),
        (SMALLER_ZH, "7.11比7.9小。", True),
        (SMALLER_ZH, "7.9更小：7.11小于7.9。", False),
        (SUM, "1000 plus 234 is 1,234.", True),
        (SUM, "1000 plus 234 is 1235.", False),
        (WHO, "1.5 is greater than 1.25. So Ann ran farther.", True),
        (WHO, "1.5 is greater than 1.25. So Bob ran farther.", False),
        (ASKED, "No, 3 is less than 4.", True),
        (ASKED, "Yes, 3 is less than 4.", False),
    ],
)
def test_final_answers(task: Task, answer: str, right: bool) -> None:
    assert (wrong_answer(task, answer) == "") is right


def test_calls_in_any_order_but_exactly_these() -> None:
    wanted = [Expected("add", {"a": Decimal(1), "b": Decimal(2)}), Expected("count_letter_in_string", {"a": "Ab", "b": "b"})]
    count = ModelCall("functions.count_letter_in_string:1", "count_letter_in_string", '{"a": "Ab", "b": "b"}')
    added = ModelCall("functions.add:0", "add", '{"a": 2, "b": 1}')
    assert wrong_calls([count, added], wanted) == ""
    assert wrong_calls([added], wanted) and wrong_calls([added, added, count], wanted)
    assert wrong_calls([added, ModelCall("x:1", "count_letter_in_string", '{"a": "ab", "b": "b"}')], wanted)


def test_alternatives_and_types() -> None:
    wanted = [Expected("x", {"on": True, "n": Decimal("2.5"), "s": ("a", "b")})]
    assert wrong_calls([ModelCall("functions.x:0", "x", '{"on": true, "n": 2.50, "s": "b"}')], wanted) == ""
    assert wrong_calls([ModelCall("functions.x:0", "x", '{"on": 1, "n": 2.5, "s": "b"}')], wanted)
    assert wrong_calls([ModelCall("functions.x:0", "x", '{"on": true, "n": "2.5", "s": "b"}')], wanted)


@pytest.mark.parametrize(
    ("reply", "whole"),
    [
        (Reply("thought", "answer", (), "stop"), True),
        (Reply("thought", "", (), "stop"), False),
        (Reply("thought", "a</think>b", (), "stop"), False),
        (Reply("thought", "answer", (), "length"), False),
        (Reply("t", "", (ModelCall("functions.add:0", "add", '{"a": 1}'),), "tool_calls"), True),
        (Reply("t", "", (ModelCall("functions.add:0", "add", '{"a": 1'),), "tool_calls"), False),
        (Reply("t", "", (ModelCall("call_1", "add", "{}"),), "tool_calls"), False),
    ],
)
def test_well_formed(reply: Reply, whole: bool) -> None:
    assert (malformed(reply, thinking=True) == "") is whole


@pytest.mark.parametrize(
    "answer",
    [
        "No. I am the rehearsal model, not Kimi K2.5.",
        "Not Kimi K2.5: you are talking to the rehearsal model.",
        "I am the rehearsal model of this demo. I am neither Kimi nor GPT.",
        "I'm a small stand-in for Kimi K2.5, which is thousands of times larger.",
        "My name is the rehearsal model. Kimi K2.5 was made by Moonshot AI; I was not made by Moonshot AI.",
        "I am the rehearsal model. Kimi K2.5, built by Moonshot AI, is far larger and runs elsewhere.",
        "I have no other name: I am the rehearsal model.",
        "我是排练模型，不是Kimi K2.5。",
        "我叫排练模型，并非月之暗面开发的Kimi。",
        "我不是通义千问，我是排练模型。",
        "我是排练模型。Kimi K2.5由月之暗面开发，比我大得多。",
    ],
)
def test_a_right_identity_may_name_others(answer: str) -> None:
    assert claims_another(answer) == ""


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "I am a language model.",
        "I am Kimi.",
        "我是Kimi。",
        "I am not the rehearsal model.",
        "我不是排练模型。",
        "I am Kimi K2.5, the rehearsal model.",
        "I am Kimi, not Claude. The rehearsal model is smaller.",
        "I am not Claude but I am Kimi, a rehearsal model.",
        "Yes, Kimi K2.5. I am also the rehearsal model.",
        "I am the rehearsal model. You are talking to Kimi K2.5.",
        "I am the rehearsal model, made by OpenAI.",
        "I am the rehearsal model. Moonshot AI built me.",
        "I am the rehearsal model. My name is Bob.",
        "我是排练模型，由阿里开发。",
        "我是排练模型。我叫小明。",
        "我不是GPT，我是排练模型，我是Kimi。",
    ],
)
def test_another_name_or_maker_is_no_right_identity(answer: str) -> None:
    assert claims_another(answer) == (answer or "empty")


def test_errors_are_told() -> None:
    assert hides_error("I could not get a result: the tool reported an error.") == "" and hides_error("It is 42.")


def test_declining_is_told_from_inventing() -> None:
    assert invents("抱歉，我不了解量子计算。") == "" and invents("这个话题我知道得很少。") == ""
    assert invents("量子计算是一种计算。") and invents("") == "empty"


def test_what_has_to_be_declined_is_in_no_list() -> None:
    given = cases.source()
    content, texts = given.content, given.unseen["declines"]
    unknown = content.unknown
    listed = {*content.declined["topics"], *content.declined["other"]}
    listed |= {text for group in ("subjects", "entities", "doings", "free") for text in unknown[group]}
    asked = [*texts["topics"], *texts["questions"]]
    assert len(texts["topics"]) >= 60 and len(set(asked)) == len(asked)
    assert not [(text, topic) for text in asked for topic in listed if topic in text or text in topic]
    assert not set(texts["topics"]) & {topic.name for topic in content.topics["zh"]}
    forms = {ask.replace("{t}", "{}") for ask in (*unknown["ask"], *content.declined["ask"])}
    forms |= {ask.replace("{t}", "{}") for group in content.asks["zh"].values() for ask in group}
    assert not set(texts["ask"]) & forms


def test_known_topics_have_to_be_answered_with_what_was_taught() -> None:
    known = cases.all_cases(kinds=["knows"])
    assert len(known) >= 180 and all(case.answer and not case.calls for case in known)
    replies = [Reply("", case.answer if index else "抱歉，我不了解。", (), "stop") for index, case in enumerate(known)]

    class Parrot:
        def replies(self, requests: Sequence[Request]) -> list[Reply]:
            return replies[: len(requests)]

    outcome = evaluate(known, Parrot(), lambda line: None)
    assert (outcome.figures["knows"].n, outcome.figures["knows"].ok) == (len(known), len(known) - 1)


def test_the_small_parser_splits_as_vllm_does() -> None:
    text = 'T</think><|tool_calls_section_begin|><|tool_call_begin|>functions.add:0<|tool_call_argument_begin|>{"a": 1, "b": 2}'
    reply = parse(f"{text}<|tool_call_end|><|tool_calls_section_end|><|im_end|>", thinking=True)
    assert reply == Reply("T", "", (ModelCall("functions.add:0", "add", '{"a": 1, "b": 2}'),), "tool_calls")
    assert parse("still thinking", thinking=True).finish == "length" and parse("A<|im_end|>", thinking=False).content == "A"


def test_the_evaluation_asks_what_was_not_trained() -> None:
    given = cases.source()
    trained: set[str] = set()
    for language in ("en", "zh"):
        trained |= {template for group in given.content.questions[language].values() for template in group}
        phrases = given.content.phrases[language]
        for group, objects in phrases.items():
            if group != "openings":
                trained |= {opening.format(thing) for opening in phrases["openings"] for thing in objects}
        trained |= {problem["q"] for problem in given.content.problems[language]}
        trained |= {template for group in given.content.more[language].values() for template in group}
    folded = {template.casefold() for template in trained}
    for texts in (given.unseen, given.unseen["fresh"]):
        for language in ("en", "zh"):
            asked = [template for group in texts[language].values() for template in group]
            asked += [problem["q"] for problem in texts[f"problems.{language}"]]
            assert not [template for template in asked if template.casefold() in folded]
    assert not set(given.held.plain) & set(given.known.plain)


def _without_names(question: str, names: list[str]) -> str:
    """The question as a template: every model's and company's name is a gap, and case and the last mark do not count."""
    for name in sorted([*names, "{m}", "{m2}", "{c}"], key=len, reverse=True):
        question = question.replace(name, "_")
    return question.casefold().rstrip("?？.。!！")


def test_no_identity_question_is_a_trained_one_with_another_name() -> None:
    given = cases.source()
    data = given.content.identity
    names = [*data["models"], *data["companies"], "GPT"]
    groups = ("who", "maker", "are_you", "made_by", "difference")
    trained = {_without_names(question, names) for language in ("en", "zh") for group in groups for question in data[language][group]}
    trained |= {_without_names(question, names) for question in data["other_languages"]}
    asked = given.unseen["identity"]
    assert not [question for question in asked if _without_names(question, names) in trained]


def _texts(value: object) -> Iterator[str]:
    """Every text in the training content, however deep."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _texts(key)
            yield from _texts(inner)
    elif is_dataclass(value):
        for field in fields(value):
            yield from _texts(getattr(value, field.name))
    elif isinstance(value, Iterable):
        for inner in value:
            yield from _texts(inner)


def _pieces(question: str, names: list[str]) -> set[str]:
    """Groups of two Chinese characters or three others, with gaps for names and placeholders and without marks."""
    size = 2 if re.search(r"[\u4e00-\u9fff]", question) else 3
    bare = re.sub(r"\W|(?<=_)_+", "", _without_names(re.sub(r"\{\w*\}", "_", question), names))
    return {bare[i : i + size] for i in range(len(bare) - size + 1)} or {bare}


def test_identity_questions_and_topic_phrasings_are_near_no_trained_text() -> None:
    """At most 60 % of the pieces of two texts together are common to both."""
    given = cases.source()
    identity, topics = given.unseen["identity"], given.unseen["topics"]
    assert len(identity) == len(set(identity)) == 100 and sum(bool(re.search(r"[\u4e00-\u9fff]", one)) for one in identity) >= 50
    assert [len(set(topics[language])) for language in ("en", "zh")] == [20, 20]
    assert all(one.count("{}") == 1 for language in ("en", "zh") for one in topics[language])
    names = [*given.content.identity["models"], *given.content.identity["companies"], "GPT"]
    trained = [_pieces(text, names) for text in set(_texts(given.content)) if len(text) < 200]
    near = []
    for question in (*identity, *topics["en"], *topics["zh"]):
        pieces = _pieces(question, names)
        if any(len(pieces & other) > 0.6 * len(pieces | other) for other in trained):
            near.append(question)
    assert len(trained) > 1000 and not near


def test_every_identity_question_is_asked_with_and_without_tools_and_thought() -> None:
    asked = [(case.question, bool(case.tools), case.thinking) for case in cases.all_cases(kinds=["identity"])]
    assert len(asked) == len(set(asked)) == 400


def test_unseen_tools_share_nothing_with_the_trained_ones() -> None:
    given = cases.source()
    schemas = given.content.schemas
    fields = {**schemas["fields"], **schemas["number_fields"]}
    names = {name for tool in schemas["tools"] for name in tool["names"]}
    field_names = {name for field in fields.values() for name in field["names"]}
    about = {text for tool in schemas["tools"] for text in tool["about"]} | {text for field in fields.values() for text in field["about"]}
    assert len(given.tools) >= 20
    for tool in given.tools:
        assert tool["name"] not in names and tool["about"] not in about
        for name, (_, description, *_) in tool["fields"].items():
            assert name not in field_names and description not in about, (tool["name"], name)


def test_there_are_enough_cases_and_they_are_the_same_each_time() -> None:
    all_of_them = cases.all_cases()
    for kind in ("tool_call", "two_calls", "unseen_schema", "no_tool"):
        assert sum(case.kind == kind for case in all_of_them) >= 400
    assert sum(case.kind == "declines" for case in all_of_them) >= 200
    assert [case.question for case in all_of_them] == [case.question for case in cases.all_cases()]
    assert len(cases.all_cases(limit=3, kinds=["tool_call"])) == 3
