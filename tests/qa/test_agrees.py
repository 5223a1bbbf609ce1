"""Whether an answer agrees with its tools: right, wrong, or not to be told."""

import json
from typing import Any

import pytest

from kimi_demo.qa.attempt import Attempt, CallSeen, RoundSeen
from kimi_demo.qa.case import planned
from kimi_demo.qa.check_agrees import agrees
from tests.qa.playing import one_case, result_of

PLANNED = planned(one_case(ask="?", tools=["guide"], checks={"agrees": True}))[0]


def outcome(answer: str, *calls: tuple[str, dict[str, Any]]) -> str:
    made = tuple(CallSeen(name=name, arguments=json.dumps(given), result=result_of(name, given)) for name, given in calls)
    verdicts = agrees(PLANNED, Attempt(rounds=(RoundSeen(calls=made, finish_reason="tool_calls"), RoundSeen(answer=answer))))
    assert len(verdicts) == 1
    return verdicts[0].outcome


PAIR = ("compare", {"a": 9.11, "b": 9.9})
LETTERS = ("count_letter_in_string", {"a": "strawberry", "b": "r"})
PRODUCT = ("mul", {"a": 123456, "b": 654321})


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("9.11比9.9小。", "pass"),
        ("9.9比9.11大。", "pass"),
        ("**9.11** 比 **9.9** 小", "pass"),
        ("9.11更小。", "pass"),
        ("9.11小于9.9。", "pass"),
        ("较小的是9.11。", "pass"),
        ("9.11并不比9.9大", "pass"),
        ("9.11 is smaller.", "pass"),
        ("9.11 is less than 9.9, since 0.11 < 0.9.", "pass"),
        ("9.9 is the larger one.", "pass"),
        ("The smaller number is 9.11.", "pass"),
        ("9.11 isn't larger than 9.9.", "pass"),
        ("9.11 < 9.9", "pass"),
        ("9.11比9.9大。", "fail"),
        ("9.9更小。", "fail"),
        ("9.11 is larger than 9.9.", "fail"),
        ("The larger one is 9.11.", "fail"),
        ("9.11 > 9.9", "fail"),
        ("9.11 is smaller, no, 9.9 is smaller.", "fail"),
        ("I have compared them.", "skip"),
        ("", "skip"),
    ],
)
def test_comparisons(answer: str, expected: str) -> None:
    assert outcome(answer, PAIR) == expected


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("It occurs 3 times.", "pass"),
        ("There are three r in it.", "pass"),
        ("出现了三次。", "pass"),
        ("strawberry中有3个r", "pass"),
        ("It occurs 2 times.", "fail"),
        ("It occurs 13 times.", "fail"),
        ("", "fail"),
    ],
)
def test_letters(answer: str, expected: str) -> None:
    assert outcome(answer, LETTERS) == expected


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("80779853376", "pass"),
        ("It is 80,779,853,376.", "pass"),
        ("80 779 853 376", "pass"),
        ("80779853375", "fail"),
        ("123456 × 654321", "fail"),
    ],
)
def test_products(answer: str, expected: str) -> None:
    assert outcome(answer, PRODUCT) == expected


def test_every_result_must_be_told() -> None:
    both = (("add", {"a": 17, "b": 25}), ("mul", {"a": 6, "b": 9}))
    assert outcome("42 and 54.", *both) == "pass" and outcome("42.", *both) == "fail"


def test_a_result_that_is_one_of_the_numbers_given() -> None:
    assert outcome("It is 0.", ("mul", {"a": 0, "b": 5})) == "pass"
    assert outcome("They are equal.", ("compare", {"a": 2, "b": 2.0})) == "pass"


def test_no_result_is_no_agreement() -> None:
    assert agrees(PLANNED, Attempt(rounds=(RoundSeen(answer="3"),)))[0].outcome == "fail"
