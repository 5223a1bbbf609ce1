"""Reading numbers, and which of two is said to be larger, out of an answer in English or Chinese. Pure."""

import re
from decimal import Decimal, InvalidOperation

NUMBER = r"-?\d+(?:\.\d+)?"
_GROUPED = re.compile(r"(?<=\d)[,\u00a0\u202f ](?=\d{3}(?!\d))")  # 1,234,567
_LESS, _MORE = ("smaller", "less", "lower", "小"), ("larger", "greater", "bigger", "higher", "more", "大")
_WAYS = "|".join((*_LESS, *_MORE))
# Who is said to be what: "9.11 is (not) smaller", "9.11比9.9小", "9.11更小", "the smaller one is 9.11", "较小的是9.11", "9.11 < 9.9".
_SAID_EN = re.compile(rf"({NUMBER})[*`\"]*\s*(?:is|was|\()\s*(not\s+|n't\s+)?(?:the\s+|a\s+)?({_WAYS})\b", re.I)
_SAID_ZH = re.compile(rf"({NUMBER})[*`\"]*\s*(并?不|不是)?\s*比\s*[*`\"]*{NUMBER}[*`\"]*\s*(?:更|要)?({_WAYS})")
_ALONE_ZH = re.compile(rf"({NUMBER})[*`\"]*\s*(并?不|不是)?\s*(?:是)?(?:更|较|比较)?({_WAYS})(?:于|的|一些|[。，,；;！]|\s|$)")
# The number is the whole of what is named: in "9.9 is larger: 9.11 is less than 9.9" another sentence begins with it.
_ENDS = r"(?!\d|\.\d)(?![*`\"]*\s*(?:is\b|was\b|[<>＜＞更较比小大不]))"
_NAMED = (
    re.compile(rf"({_WAYS})(?:\s+(?:one|number|value|of the two))*\s*(?:is|:)\s*[*`\"]*({NUMBER}){_ENDS}", re.I),
    re.compile(rf"({_WAYS})的?(?:数|数字|一个|那个)?\s*(?:是|为|：)\s*[*`\"]*({NUMBER}){_ENDS}"),
)
_SIGN = re.compile(rf"({NUMBER})[*`\"]*\s*([<>＜＞])\s*[*`\"]*({NUMBER})")


def numbers(text: str) -> list[Decimal]:
    """Every number written in digits, in order."""
    found = []
    for each in re.findall(NUMBER, _GROUPED.sub("", text)):
        try:
            found.append(Decimal(each))
        except InvalidOperation:
            continue
    return found


def compares_rightly(answer: str, a: Decimal, b: Decimal) -> bool | None:
    """Whether the answer's comparisons of the two numbers are right, all of them; None where it makes none that can be read."""
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
