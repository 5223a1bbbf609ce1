"""Numbers as people write them: digits, thousands separators, English and Chinese words."""

import re
from dataclasses import dataclass
from random import Random

_ONES = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen"
).split()
_TENS = "zero ten twenty thirty forty fifty sixty seventy eighty ninety".split()
_SCALES = ((10**9, "billion"), (10**6, "million"), (1000, "thousand"))
_DIGITS = "零一二三四五六七八九"


@dataclass(frozen=True)
class Written:
    """value: as it goes into JSON; shown: as the question has it."""

    value: str
    shown: str


def english(number: int, joiner: str = " ") -> str:
    """-12 → "minus twelve"; joiner: between hundreds and the rest (" " or " and ")."""
    if number < 0:
        return f"minus {english(-number, joiner)}"
    if number < 20:
        return _ONES[number]
    if number < 100:
        return _TENS[number // 10] + (f"-{_ONES[number % 10]}" if number % 10 else "")
    if number < 1000:
        return f"{_ONES[number // 100]} hundred" + (f"{joiner}{english(number % 100)}" if number % 100 else "")
    for size, name in _SCALES:
        if number >= size:
            rest = number % size
            return f"{english(number // size, joiner)} {name}" + (f" {english(rest, joiner)}" if rest else "")
    raise AssertionError(number)


def chinese(number: int) -> str:
    """123 → "一百二十三"; below 10**12."""
    if number < 0:
        return f"负{chinese(-number)}"
    if number >= 10**8:
        rest = number % 10**8
        zero = "零" if 0 < rest < 10**7 else ""
        return f"{chinese(number // 10**8)}亿" + (zero + chinese(rest) if rest else "")
    if number >= 10_000:
        rest = number % 10_000
        zero = "零" if 0 < rest < 1000 else ""
        return f"{chinese(number // 10_000)}万" + (zero + chinese(rest) if rest else "")
    text, pending = "", False
    for place, unit in ((1000, "千"), (100, "百"), (10, "十"), (1, "")):
        digit = number // place % 10
        if digit:
            text += ("零" if pending else "") + ("" if place == 10 and digit == 1 and not text else _DIGITS[digit]) + unit
        pending = digit == 0 and bool(text)
    return text or "零"


def spoken_chinese(number: int) -> str:
    """As people say it: 两 for 二 where it leads a 百, 千, 万 or 亿 (两千三百, but 十二万)."""
    return re.sub("(^负?|[万亿])二(?=[百千万亿])", r"\1两", chinese(number))


def decimal_words(value: str, language: str) -> str:
    """ "9.25" → "nine point two five" or "九点二五"."""
    whole, _, fraction = value.lstrip("-").partition(".")
    if language == "zh":
        sign = "负" if value.startswith("-") else ""
        return sign + chinese(int(whole)) + ("点" + "".join(_DIGITS[int(digit)] for digit in fraction) if fraction else "")
    sign = "minus " if value.startswith("-") else ""
    return sign + english(int(whole)) + (" point " + " ".join(_ONES[int(digit)] for digit in fraction) if fraction else "")


def integer(rng: Random, language: str, words: float = 0.15, negative: float = 0.12) -> Written:
    """Mostly 1 to 6 digits, now and then up to 20; words: share written in words."""
    size = rng.choices((1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 15, 20), (8, 26, 22, 16, 10, 7, 4, 3, 3, 2, 1, 1))[0]
    number = rng.randrange(10 ** (size - 1) if size > 1 else 0, 10**size)
    if rng.random() < 0.08:
        number = number // 100 * 100
    if rng.random() < negative:
        number = -number
    if abs(number) < 10**7 and rng.random() < words * (2 if abs(number) < 1000 else 1):
        return Written(str(number), english(number, rng.choice((" ", " and "))) if language == "en" else chinese(number))
    if abs(number) >= 1000 and rng.random() < 0.15:
        return Written(str(number), f"{number:,}")
    return Written(str(number), str(number))


def small(rng: Random, low: int, high: int, language: str) -> Written:
    """A count in a word problem."""
    number = rng.randint(low, high)
    if rng.random() < 0.2:
        return Written(str(number), english(number) if language == "en" else chinese(number))
    if number >= 1000 and rng.random() < 0.2:
        return Written(str(number), f"{number:,}")
    return Written(str(number), str(number))


def pair(rng: Random, language: str, plain: bool = False) -> tuple[Written, Written]:
    """Two numbers to compare; often the kind that is easily misjudged (7.8 and 7.15). plain: positive digits only."""
    kind = rng.random()
    if kind < 0.55:
        whole = rng.choice((rng.randrange(0, 20), rng.randrange(0, 20), rng.randrange(20, 1000)))
        a, b = f"{whole}.{_fraction(rng)}", f"{whole}.{_fraction(rng)}"
    elif kind < 0.7:
        a, b = f"{rng.randrange(0, 300)}.{_fraction(rng)}", f"{rng.randrange(0, 300)}.{_fraction(rng)}"
    elif kind < 0.82:
        high = 10 ** rng.randrange(1, 12)
        a, b = str(rng.randrange(high)), str(rng.randrange(high))
    elif kind < 0.9:
        integer_part = str(rng.randrange(0, 200))
        a, b = integer_part, f"{integer_part}.{_fraction(rng)}"
    elif kind < 0.95:
        a = f"{rng.randrange(0, 90)}.{_fraction(rng)}"
        b = a + "0" * rng.randrange(0, 3)
    else:
        stem = f"{rng.randrange(0, 10)}." + "".join(rng.choices("0123456789", k=rng.randrange(6, 16)))
        a, b = stem + rng.choice("123456789"), stem + rng.choice("123456789")
    if not plain and rng.random() < 0.2:
        a, b = (f"-{a}", f"-{b}") if rng.random() < 0.7 else (f"-{a}", b)
    if rng.random() < 0.5:
        a, b = b, a
    return _shown(rng, a, language, plain), _shown(rng, b, language, plain)


def _fraction(rng: Random) -> str:
    size = rng.choices((1, 2, 3, 4, 5, 8), (34, 36, 16, 7, 4, 3))[0]
    return "".join(rng.choices("0123456789", k=size - 1)) + rng.choice("123456789" if rng.random() < 0.9 else "0")


def _shown(rng: Random, value: str, language: str, plain: bool) -> Written:
    if not plain and len(value.lstrip("-").split(".")[0]) < 6 and len(value) < 9 and rng.random() < 0.08:
        return Written(value, decimal_words(value, language))
    return Written(value, value)
