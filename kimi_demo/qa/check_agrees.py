"""Whether an answer tells what the tools returned. Pure."""

import re
from decimal import Decimal, InvalidOperation

from kimi_demo.qa.attempt import Attempt, CallSeen
from kimi_demo.qa.case import Planned
from kimi_demo.qa.verdict import Verdict, judged

_NUMBER = r"-?\d+(?:\.\d+)?"
_GROUPED = re.compile(r"(?<=\d)[,\u00a0\u202f ](?=\d{3}(?!\d))")  # 1,234,567
_WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
_HAN = "零一二三四五六七八九十"
_RELATION = re.compile(rf"({_NUMBER}) is (less than|greater than|equal to) ({_NUMBER})\.")
_LESS, _MORE = ("smaller", "less", "lower", "小"), ("larger", "greater", "bigger", "higher", "more", "大")
_WAYS = "|".join((*_LESS, *_MORE))
# Who is said to be what: "9.11 is (not) smaller", "9.11比9.9小", "9.11更小", "the smaller one is 9.11", "较小的是9.11", "9.11 < 9.9".
_SAID_EN = re.compile(rf"({_NUMBER})[*`\"]*\s*(?:is|was)\s*(not\s+|n't\s+)?(?:the\s+|a\s+)?({_WAYS})\b", re.I)
_SAID_ZH = re.compile(rf"({_NUMBER})[*`\"]*\s*(并?不|不是)?\s*比\s*[*`\"]*{_NUMBER}[*`\"]*\s*(?:更|要)?({_WAYS})")
_ALONE_ZH = re.compile(rf"({_NUMBER})[*`\"]*\s*(并?不|不是)?\s*(?:是)?(?:更|较|比较)?({_WAYS})(?:于|的|一些|[。，,；;！]|\s|$)")
# The number is the whole of what is named: in "9.9 is larger: 9.11 is less than 9.9" another sentence begins with it.
_ENDS = r"(?!\d|\.\d)(?![*`\"]*\s*(?:is\b|was\b|[<>＜＞更较比小大不]))"
_NAMED = (
    re.compile(rf"({_WAYS})(?:\s+(?:one|number|value|of the two))*\s*(?:is|:)\s*[*`\"]*({_NUMBER}){_ENDS}", re.I),
    re.compile(rf"({_WAYS})的?(?:数|数字|一个|那个)?\s*(?:是|为|：)\s*[*`\"]*({_NUMBER}){_ENDS}"),
)
_SIGN = re.compile(rf"({_NUMBER})[*`\"]*\s*([<>＜＞])\s*[*`\"]*({_NUMBER})")


def agrees(planned: Planned, seen: Attempt) -> list[Verdict]:
    """Every number that a tool returned, beyond those that it was given, stands in the answer; and an answer that compares the numbers of
    `compare` does it the right way round. Where an answer says neither clearly, it cannot be told, which is a verdict of its own."""
    if not planned.case.checks.agrees:
        return []
    results = [call for call in seen.calls if call.result is not None]
    if not results and planned.case.checks.calls is not None and not seen.calls:
        return []  # the checks of calls say that there is none
    if not results:
        return [judged("agrees", False, "a tool's result", "no tool returned anything")]
    told, wanted = _told(seen.answer), list[str]()
    unclear = False
    for call in results:
        relation = _RELATION.fullmatch((call.result or "").strip())
        if relation is not None:
            wanted.append(call.result or "")
            right = _compares(relation, seen.answer)
            if right is False:
                return [judged("agrees", False, call.result, seen.answer)]
            unclear = unclear or right is None
            continue
        new = _new_numbers(call)
        wanted += map(str, new)
        if any(number not in told for number in new):
            return [judged("agrees", False, [str(number) for number in new], seen.answer)]
    return [Verdict("agrees", "skip", ", ".join(wanted), seen.answer[:200])] if unclear else [judged("agrees", True, wanted, seen.answer)]


def _new_numbers(call: CallSeen) -> list[Decimal]:
    """The numbers of a result that are not in the call's own arguments; all of them where there are no others."""
    text = re.sub(r'"[^"]*"', " ", call.result or "")
    found, given = _numbers(text), set(_numbers(call.arguments))
    return [number for number in found if number not in given] or found


def _numbers(text: str) -> list[Decimal]:
    found = []
    for each in re.findall(_NUMBER, _GROUPED.sub("", text)):
        try:
            found.append(Decimal(each))
        except InvalidOperation:
            continue
    return found


def _told(answer: str) -> set[Decimal]:
    """The numbers in an answer, small ones written as words too."""
    folded = answer.casefold()
    words = {Decimal(value) for value, word in enumerate(_WORDS) if re.search(rf"\b{word}\b", folded)}
    han = {Decimal(value) for value, sign in enumerate(_HAN) if re.search(rf"{sign}\s*[个次回遍]", answer)}
    return set(_numbers(answer)) | words | han | ({Decimal(2)} if re.search(r"两\s*[个次]", answer) else set())


def _compares(relation: re.Match[str], answer: str) -> bool | None:
    """Whether the answer's comparisons of the two numbers are right; None where it makes none that can be read."""
    a, b = Decimal(relation[1]), Decimal(relation[3])
    if a == b:
        return True if re.search(r"equal|same|一样|相等|等于|相同", answer, re.I) else None
    small, large = min(a, b), max(a, b)
    claims: list[tuple[Decimal, bool]] = []  # (number, said to be the smaller one)
    alone = _SAID_ZH.sub(" ", answer)  # in "9.11比9.9小" it is not 9.9 that is said to be small
    for pattern, text in ((_SAID_EN, answer), (_SAID_ZH, answer), (_ALONE_ZH, alone)):
        claims += [(Decimal(number), (way.lower() in _LESS) != bool(negated)) for number, negated, way in pattern.findall(text)]
    for pattern in _NAMED:
        claims += [(Decimal(number), way.lower() in _LESS) for way, number in pattern.findall(answer)]
    claims += [(Decimal(left), sign in "<＜") for left, sign, right in _SIGN.findall(answer) if {Decimal(left), Decimal(right)} == {a, b}]
    about = [(number, smaller) for number, smaller in claims if number in (small, large)]
    return None if not about else all(smaller == (number == small) for number, smaller in about)
