"""Whether an answer tells what the tools returned. Pure."""

import re
from decimal import Decimal

from kimi_demo.qa.attempt import Attempt, CallSeen
from kimi_demo.qa.case import Planned
from kimi_demo.qa.comparisons import NUMBER, compares_rightly, numbers
from kimi_demo.qa.verdict import Verdict, judged

_WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
_HAN = "零一二三四五六七八九十"
_RELATION = re.compile(rf"({NUMBER}) is (less than|greater than|equal to) ({NUMBER})\.")


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
            right = compares_rightly(seen.answer, Decimal(relation[1]), Decimal(relation[3]))
            if right is False:
                return [judged("agrees", False, call.result, seen.answer)]
            unclear = unclear or right is None
            continue
        new = _newnumbers(call)
        wanted += map(str, new)
        if any(number not in told for number in new):
            return [judged("agrees", False, [str(number) for number in new], seen.answer)]
    return [Verdict("agrees", "skip", ", ".join(wanted), seen.answer[:200])] if unclear else [judged("agrees", True, wanted, seen.answer)]


def _newnumbers(call: CallSeen) -> list[Decimal]:
    """The numbers of a result that are not in the call's own arguments; all of them where there are no others."""
    text = re.sub(r'"[^"]*"', " ", call.result or "")
    found, given = numbers(text), set(numbers(call.arguments))
    return [number for number in found if number not in given] or found


def _told(answer: str) -> set[Decimal]:
    """The numbers in an answer, small ones written as words too."""
    folded = answer.casefold()
    words = {Decimal(value) for value, word in enumerate(_WORDS) if re.search(rf"\b{word}\b", folded)}
    han = {Decimal(value) for value, sign in enumerate(_HAN) if re.search(rf"{sign}\s*[个次回遍]", answer)}
    return set(numbers(answer)) | words | han | ({Decimal(2)} if re.search(r"两\s*[个次]", answer) else set())
