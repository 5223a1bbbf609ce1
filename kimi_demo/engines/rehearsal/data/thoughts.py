"""Thoughts: before a call, after its result, and about a topic. `effort` is brief, normal or long (150 tokens and more)."""

from collections.abc import Sequence
from decimal import Decimal
from random import Random
from typing import Any

from kimi_demo.engines.rehearsal.data.content import Content, Topic
from kimi_demo.engines.rehearsal.data.tasks import Task


def before_call(rng: Random, content: Content, task: Task, language: str, effort: str) -> str:
    """Why and how `task`'s tool is called."""
    pieces = content.thoughts[language]
    call = _filled(rng.choice(pieces["brief" if effort == "brief" else "call"]), {**task.arguments, "tool": task.tool.name})
    if effort == "brief":
        return call
    want = rng.choice(pieces["want"]).format(what=_filled(pieces["what"][task.wish], task.words()))
    if effort == "normal":
        return _joined(language, [want, rng.choice(pieces["why"]), call])
    extra = rng.sample(pieces["long"], k=rng.randrange(9, len(pieces["long"]) + 1) if language == "en" else len(pieces["long"]))
    return _joined(language, [want, *(_filled(line, {"tool": task.tool.name}) for line in _ordered(pieces["long"], extra)), call])


def before_calls(rng: Random, content: Content, tasks: list[Task], language: str, effort: str) -> str:
    """Why several tools are called at once."""
    pieces = content.thoughts[language]
    calls = [
        _filled(rng.choice(pieces["brief" if effort == "brief" else "call"]), {**task.arguments, "tool": task.tool.name}) for task in tasks
    ]
    if effort == "brief":
        return _joined(language, calls)
    extra = _ordered(pieces["long"], rng.sample(pieces["long"], k=8)) if effort == "long" else []
    lines = [
        _filled(line, {"tool": tasks[0].tool.name})
        for line in extra
        if "{tool}" not in line and "One call" not in line and "一次" not in line
    ]
    wants = [_filled(pieces["what"][task.wish], task.words()) for task in tasks]
    want = f"The user wants to know {wants[0]}, and {wants[1]}." if language == "en" else f"用户想知道{wants[0]}，还有{wants[1]}。"
    return _joined(language, [want, rng.choice(pieces["two"]), *lines, *calls])


def after_result(rng: Random, content: Content, results: list[str], language: str, effort: str) -> str:
    """What the tools returned."""
    pieces = content.thoughts[language]
    told = [rng.choice(pieces["after"]).format(result=_ended(result)) for result in results]
    return _joined(language, told if effort == "brief" else [*told, rng.choice(pieces["conclude"])])


def after_tasks(rng: Random, content: Content, tasks: Sequence[Task], language: str, effort: str) -> str:
    """What the tools returned, and which number that makes the asked one."""
    pieces = content.thoughts[language]
    lines: list[str] = []
    for task in tasks:
        lines += [rng.choice(pieces["after"]).format(result=_ended(task.result())), _meaning(task, language)]
    return _joined(language, lines if effort == "brief" else [*lines, rng.choice(pieces["conclude"])])


def _meaning(task: Task, language: str) -> str:
    """The step from a comparison's result to the number (and person) asked for."""
    if task.wish not in ("larger", "smaller"):
        return ""
    a, b = task.arguments["a"], task.arguments["b"]
    if Decimal(a) == Decimal(b):
        return "两个数相等。" if language == "zh" else "They are equal."
    first = (Decimal(a) > Decimal(b)) == (task.wish == "larger")
    number = a if first else b
    owner = task.people[0 if first else 1]
    if language == "zh":
        asked = "较大" if task.wish == "larger" else "较小"
        return f"{asked}的是{number}" + (f"，是{owner}的。" if owner else "。")
    return f"So the {task.wish} one is {number}" + (f", and that is {owner}'s." if owner else ".")


def about_topic(rng: Random, content: Content, topic: Topic, language: str, effort: str) -> str:
    """Before a short explanation. `topic.name` keeps its article."""
    pieces = content.thoughts[language]
    if effort == "long":
        return _joined(language, [_filled(line, _points(topic, language)) for line in pieces["topic_long"]])
    return str(rng.choice(pieces["topic_brief" if effort == "brief" else "topic"])).format(topic=topic.name)


def _points(topic: Topic, language: str) -> dict[str, str]:
    end = "。" if language == "zh" else ". "
    first, _, second = topic.answer.partition(end)
    return {"topic": topic.name, "first": first + end.strip(), "second": second.strip() or topic.more, "more": topic.more}


def _filled(text: str, values: dict[str, Any]) -> str:
    for name, value in values.items():
        text = text.replace("{" + name + "}", str(value))
    return text


def _ordered(lines: list[str], chosen: list[str]) -> list[str]:
    return [line for line in lines if line in chosen]


def _ended(result: str) -> str:
    return result if result.endswith((".", "。", ")", "}")) else f"{result}."


def _joined(language: str, sentences: list[str]) -> str:
    return ("" if language == "zh" else " ").join(sentence for sentence in sentences if sentence)
