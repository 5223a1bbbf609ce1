"""What Blind spots takes for right: answers as models write them, rightly and wrongly."""

import pytest

from kimi_demo.qa.attempt import Attempt, CallSeen, RoundSeen
from kimi_demo.qa.case import Planned, planned
from kimi_demo.qa.check_agrees import agrees
from kimi_demo.qa.check_answer import answer
from kimi_demo.qa.reading import shipped

CASES = {each.id: each for each in planned(shipped("blind_spots"))}


def failed(case: Planned, text: str, result: str = "") -> bool:
    call = CallSeen(name="compare", arguments="{}", result=result)
    seen = Attempt(rounds=(RoundSeen(answer=text, calls=(call,) if result else ()),))
    verdicts = [*answer(case, seen), *agrees(case, seen)]
    assert verdicts, "nothing is judged"
    return any(verdict.outcome == "fail" for verdict in verdicts)


RIGHT = {
    "letters-en.1": ("3", "**3**", "Three.", 'The letter "r" occurs 3 times in "strawberry".', "There are **3** r's in it: 3, 8 and 9."),
    "letters-en.2": ("2", "It occurs twice: b at 1 and 5.\nSo: 2 times.", "There are two b's."),
    "letters-en.5": ("1", "once", "It has one p."),
    "letters-zh.1": ("3", "3个", "三个", "“strawberry”里有 **3** 个 r。"),
    "letters-zh.2": ("2。", "有两个 b", "出现了2次"),
    "decimals-en.1": (
        "9.9",
        "**9.9**",
        "9.9 is larger: 9.11 is less than 9.9.",
        "9.11 is less than 9.9",
        "9.9 (greater than 9.11)",
        "The larger: 9.9 is larger",
    ),
    "decimals-en.4": ("-2.09", "-2.09 is larger: -2.1 is less than -2.09."),
    "decimals-zh.1": ("9.9", "9.9。", "9.9更大：9.9大于9.11。", "9.11小于9.9", "9.9比9.11大", "大的那个是 9.9"),
    "decimals-zh.4": ("-2.09", "-2.09较大。"),
}
WRONG = {
    "letters-en.1": (
        "2",
        "13",
        "There are 2 r's in it, at 3 and 8.",
        "The letter occurs 2 times; 3rd and 8th place.",
        "two, not three",
        "",
    ),
    "letters-en.5": ("11", "none", "No one knows: 2.", "2 times"),
    "letters-zh.1": ("2", "一共有2个，在第3位和第8位", "23个"),
    "letters-zh.5": ("2", "一共有2个 p", "11 次"),
    "decimals-en.1": (
        "9.11",
        "9.11 is larger than 9.9",
        "9.9 is less than 9.11",
        "9.9 is larger: 9.9 is less than 9.11.",
        "9.11 and 9.9",
        "19.9",
        "9.99",
        "",
    ),
    "decimals-en.4": ("-2.1", "2.09", "-2.1 is larger"),
    "decimals-zh.1": ("9.11", "9.11更大", "9.11大于9.9", "9.9更大：9.9小于9.11。", "9.9小于9.11", "9.9和9.11", ""),
    "decimals-zh.4": ("-2.1", "2.09", "-2.1大于-2.09"),
}


@pytest.mark.parametrize(("case", "text"), [(case, text) for case, several in RIGHT.items() for text in several])
def test_right_answers_pass(case: str, text: str) -> None:
    assert not failed(CASES[case], text)


@pytest.mark.parametrize(("case", "text"), [(case, text) for case, several in WRONG.items() for text in several])
def test_wrong_answers_fail(case: str, text: str) -> None:
    assert failed(CASES[case], text)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_an_answer_that_turns_the_tools_comparison_round_fails(language: str) -> None:
    case, told = CASES[f"decimals-{language}-tools.1"], "9.11 is less than 9.9."
    for right in ("9.9", "9.9 is larger: 9.11 is less than 9.9.", "9.9更大：9.11小于9.9。"):
        assert not failed(case, right, told), right
    for wrong in ("9.11", "9.11 is larger than 9.9.", "9.11更大，9.9更小。", "9.11 > 9.9"):
        assert failed(case, wrong, told), wrong
