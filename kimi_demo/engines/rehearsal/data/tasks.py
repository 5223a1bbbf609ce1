"""Questions for the guide's four tools: the call that answers one, the tool's own result, and the final answer."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from random import Random

from kimi_demo.engines.rehearsal.data import numbers
from kimi_demo.engines.rehearsal.data.content import Content
from kimi_demo.engines.rehearsal.data.numbers import Written
from kimi_demo.engines.rehearsal.data.wording import quoted
from kimi_demo.engines.rehearsal.data.words import WordSource, letter
from kimi_demo.tools.guide import GUIDE_TOOLS
from kimi_demo.tools.tool import Tool

COMPARISONS = ("larger", "smaller", "relation", "is_greater", "is_less", "is_equal")
_WISHES = ("count", "add", "mul", "subtract", *COMPARISONS)
_SHARES = (40, 13, 13, 3, 9, 9, 5, 3, 3, 2)


@dataclass(frozen=True)
class Task:
    """One question that one call answers.

    wish: what is asked (a key of the questions file); arguments: JSON text by name;
    story: a word problem's own answer text, with {n} or {sentence}; people: who the two numbers belong to, if anybody.
    """

    language: str
    question: str
    wish: str
    arguments: Mapping[str, str]
    story: str = ""
    people: tuple[str, str] = ("", "")

    @property
    def tool(self) -> Tool:
        name = {"count": "count_letter_in_string", "subtract": "add"}.get(self.wish, "compare" if self.wish in COMPARISONS else self.wish)
        return next(tool for tool in GUIDE_TOOLS if tool.name == name)

    @property
    def json(self) -> str:
        return "{" + ", ".join(f'"{name}": {value}' for name, value in self.arguments.items()) + "}"

    def result(self) -> str:
        """What the tool returns."""
        return self.result_for(self.json)

    def result_for(self, arguments: str) -> str:
        """What the tool returns for other arguments (JSON text). Raises ValueError if they are invalid."""
        tool = self.tool
        return tool.function(tool.arguments.model_validate(json.loads(arguments, parse_float=Decimal)))

    def words(self) -> dict[str, str]:
        """a, b, minus and tool for the texts of thoughts; strings without their quotation marks."""
        a, b = (str(json.loads(value)) if value.startswith('"') else value for value in self.arguments.values())
        return {"a": a, "b": b, "minus": b.lstrip("-"), "tool": self.tool.name}


def task(rng: Random, content: Content, source: WordSource, language: str) -> Task:
    """A random question that is no composed problem: one in twelve a hand-written word problem, half of the others put together."""
    if rng.random() < 0.08:
        return problem(rng, content, language, rng.choice(content.problems[language]))
    wish = rng.choices(_WISHES, _SHARES)[0]
    if rng.random() < 0.5:
        return fill(rng, language, wish, rng.choice(content.questions[language][wish]), source)
    phrases = content.phrases[language]
    template = rng.choice(phrases["openings"]).format(rng.choice(phrases[wish]))
    return fill(rng, language, wish, template[0].upper() + template[1:] if template[0] != "{" else template, source)


def fill(rng: Random, language: str, wish: str, template: str, source: WordSource) -> Task:
    """`template` with random words or numbers in it."""
    if wish == "count":
        word = source.word(rng)
        return count(rng, language, template, word, letter(rng, word))
    if wish in COMPARISONS:
        plain = any(unit in template for unit in (" kg", " m ", " km", "litres", "dollars", "euros", "seconds", "公斤", "米", "元"))
        a, b = numbers.pair(rng, language, plain)
    else:
        a, b = numbers.integer(rng, language), numbers.integer(rng, language)
        if wish == "mul" and len(a.value) + len(b.value) > 24:
            b = numbers.small(rng, 2, 99, language)
        if wish == "subtract":
            a, b = (numbers.small(rng, 0, 9999, language) for _ in range(2))
    return arithmetic(language, wish, template, a, b)


def count(rng: Random, language: str, template: str, word: str, counted: str) -> Task:
    shown_letter = counted if "{l}'s" in template else quoted(rng, counted, language)
    question = template.format(w=quoted(rng, word, language, always=" " in word), l=shown_letter)
    arguments = {"a": json.dumps(word, ensure_ascii=False), "b": json.dumps(counted, ensure_ascii=False)}
    return Task(language, question, "count", arguments)


def arithmetic(language: str, wish: str, template: str, a: Written, b: Written) -> Task:
    second = b.value
    if wish == "subtract":
        second = b.value[1:] if b.value.startswith("-") else "0" if b.value == "0" else f"-{b.value}"
    return Task(language, template.format(a=a.shown, b=b.shown), wish, {"a": a.value, "b": second})


def problem(rng: Random, content: Content, language: str, entry: Mapping[str, str]) -> Task:
    """A word problem from an entry of the problems file."""
    wish = entry["tool"]
    if wish in COMPARISONS:
        a, b = numbers.pair(rng, language, plain=True)
        while a.value.startswith("-") or b.value.startswith("-"):
            a, b = numbers.pair(rng, language, plain=True)
    elif wish == "mul":
        a, b = numbers.small(rng, 2, rng.choice((20, 100, 1000)), language), numbers.small(rng, 2, rng.choice((12, 50, 400)), language)
    else:
        high = rng.choice((20, 100, 1000, 100_000))
        a, b = numbers.small(rng, 2, high, language), numbers.small(rng, 2, high, language)
        if wish == "subtract" and int(a.value) < int(b.value):
            a, b = b, a
    p, q = rng.sample(content.names[f"people.{language}"], 2)
    thing = rng.choice(content.names[f"things.{language}"])
    question = entry["q"].format(a=a.shown, b=b.shown, p=p, q=q, t=thing)
    second = f"-{b.value}" if wish == "subtract" and b.value != "0" else b.value
    story = entry["a"].replace("{p}", p).replace("{q}", q).replace("{t}", thing)
    return Task(language, question, wish, {"a": a.value, "b": second}, story, (p, q))
