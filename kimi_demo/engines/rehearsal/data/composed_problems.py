"""Word problems put together from parts, so that the operation follows from the sense and not from one sentence seen before."""

from collections.abc import Mapping
from random import Random
from typing import Any

from kimi_demo.engines.rehearsal.data import numbers
from kimi_demo.engines.rehearsal.data.content import Content
from kimi_demo.engines.rehearsal.data.tasks import Task

_SHARES = {"add": 34, "mul": 34, "subtract": 8, "who": 18, "which": 6}


def composed(rng: Random, content: Content, language: str) -> Task:
    """A new word problem."""
    parts = content.phrases[f"problems.{language}"]
    kind = rng.choices(list(_SHARES), list(_SHARES.values()))[0]
    people = rng.sample(content.names[f"people.{language}"], 2)
    if kind in ("who", "which"):
        return _comparison(rng, language, rng.choice(parts[kind]), people)
    values = {"p": people[0], "q": people[1], **(_english(rng, parts) if language == "en" else _chinese(rng, parts))}
    a, b = _amounts(rng, language, kind)
    template = str(rng.choice(parts[kind]))
    for name in ("Q", "Qall"):
        if name in parts:
            template = template.replace("{" + name + "}", str(rng.choice(parts[name])))
    question = template.format(a=a.shown, b=b.shown, **values)
    question = question[0].upper() + question[1:]
    second = f"-{b.value}" if kind == "subtract" and b.value != "0" else b.value
    story = _total(rng, template, values, language)
    return Task(language, question, kind, {"a": a.value, "b": second}, story)


def _comparison(rng: Random, language: str, entry: list[str], people: list[str]) -> Task:
    wish, question, *told = entry
    a, b = numbers.pair(rng, language, plain=True)
    while a.value.startswith("-") or b.value.startswith("-"):
        a, b = numbers.pair(rng, language, plain=True)
    text = question.format(a=a.shown, b=b.shown, p=people[0], q=people[1])
    arguments = {"a": a.value, "b": b.value}
    if not told:
        return Task(language, text, wish, arguments)
    story = "{sentence}" + (f"所以{told[0]}。" if language == "zh" else f" So {told[0]}.")
    return Task(language, text, wish, arguments, story, (people[0], people[1]))


def _amounts(rng: Random, language: str, kind: str) -> tuple[numbers.Written, numbers.Written]:
    if kind == "mul":
        high, higher = rng.choice((12, 40, 200, 1000)), rng.choice((12, 50, 100, 400))
    else:
        high = higher = rng.choice((20, 100, 1000, 100_000))
    a, b = numbers.small(rng, 2, high, language), numbers.small(rng, 2, higher, language)
    return (b, a) if kind == "subtract" and int(a.value) < int(b.value) else (a, b)


def _english(rng: Random, parts: Mapping[str, Any]) -> dict[str, str]:
    thing, other = rng.sample(parts["things"], 2)
    adjective, second = rng.sample(parts["adjectives"], 2)
    place, place2 = rng.sample(parts["places"], 2)
    time, time2 = rng.choice(parts["times"])
    container, containers = rng.choice(parts["containers"])
    period, periods = rng.choice(parts["periods"])
    return {
        "t": thing, "t2": other, "adj": adjective, "adj2": second, "place": place, "place2": place2, "time": time, "time2": time2,
        "c": container, "cs": containers, "period": period, "periods": periods,
        "verb": rng.choice(parts["verbs"]), "owner": rng.choice(parts["owners"]),
    }  # fmt: skip


def _chinese(rng: Random, parts: Mapping[str, Any]) -> dict[str, str]:
    (thing, measure), (other, measure2) = rng.sample(parts["things"], 2)
    place, place2 = rng.sample(parts["places"], 2)
    time, time2 = rng.choice(parts["times"])
    return {
        "t": thing, "m": measure, "t2": other, "m2": measure2, "place": place, "place2": place2, "time": time, "time2": time2,
        "v": rng.choice(parts["verbs"]), "c": rng.choice(parts["containers"])[0],
    }  # fmt: skip


def _total(rng: Random, template: str, values: Mapping[str, str], language: str) -> str:
    if language == "zh":
        return rng.choice(("一共是{n}。", "答案是{n}。", "结果是{n}。"))
    if "dollars" in template or "euros" in template or "area" in template or "{t2}" in template:
        return "The answer is {n}."
    return rng.choice(("That is {n} %s.", "The answer is {n} %s.", "The result is {n} %s.")) % values["t"]
