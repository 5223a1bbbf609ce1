"""Final answers: the tool's result told in the language asked for. Every number is copied from the call or the result."""

from decimal import Decimal
from random import Random

from kimi_demo.engines.rehearsal.data.tasks import COMPARISONS, Task


def answer(rng: Random, task: Task, language: str) -> str:
    """The sentence that answers `task` in `language`."""
    if task.wish in COMPARISONS:
        if not task.story or language != task.language:
            return _comparison(task, language)
        return _told(task, _relation(task, language))
    if task.story and language == task.language:
        return task.story.format(n=task.result())
    if task.wish == "count":
        return _count(rng, task, language)
    return _sum(rng, task, language)


def _count(rng: Random, task: Task, language: str) -> str:
    words = task.words()
    number = _counted(task)
    if language == "zh":
        return rng.choice(('"{a}"中有{n}个"{b}"。', '字母"{b}"在"{a}"中出现了{n}次。')).format(a=words["a"], b=words["b"], n=number)
    times = "time" if number == 1 else "times"
    return f'The letter "{words["b"]}" occurs {number} {times} in "{words["a"]}".'


def _counted(task: Task) -> int:
    words = task.words()
    return words["a"].casefold().count(words["b"].casefold())


def _sum(rng: Random, task: Task, language: str) -> str:
    words, result = task.words(), task.result()
    sign = {"add": ("plus", "加"), "mul": ("times", "乘以"), "subtract": ("minus", "减")}[task.wish][language == "zh"]
    second = words["minus"] if task.wish == "subtract" else words["b"]
    if task.wish == "subtract" and not task.arguments["b"].startswith("-") and task.arguments["b"] != "0":
        second = f"-{second}"
    if language == "zh":
        return f"{words['a']}{sign}{second}等于{result}。"
    return rng.choice(("{a} {sign} {b} is {n}.", "{a} {sign} {b} equals {n}.")).format(a=words["a"], sign=sign, b=second, n=result)


def _comparison(task: Task, language: str) -> str:
    """Begins with what was asked (the number, yes or no) and repeats the tool's own comparison after it."""
    a, b = task.arguments["a"], task.arguments["b"]
    first, second = Decimal(a), Decimal(b)
    relation = _relation(task, language)
    if task.wish in ("is_greater", "is_less", "is_equal"):
        true = {"is_greater": first > second, "is_less": first < second, "is_equal": first == second}[task.wish]
        if language == "zh":
            return f"{'是的' if true else '不是'}，{relation}"
        return f"{'Yes' if true else 'No'}, {relation}"
    if first == second:
        return f"{a}和{b}一样大。" if language == "zh" else f"{a} and {b} are equal."
    if task.wish == "relation":
        return relation
    asked = a if (first > second) == (task.wish == "larger") else b
    if language == "zh":
        return f"{asked}更{'大' if task.wish == 'larger' else '小'}：{relation}"
    return f"{asked} is {task.wish}: {relation}"


def _relation(task: Task, language: str) -> str:
    """The tool's result in `language`, its numbers in the same order."""
    a, b = task.arguments["a"], task.arguments["b"]
    first, second = Decimal(a), Decimal(b)
    if language == "zh":
        return f"{a}{'等于' if first == second else '大于' if first > second else '小于'}{b}。"
    return f"{a} is {'equal to' if first == second else 'greater than' if first > second else 'less than'} {b}."


def _told(task: Task, sentence: str) -> str:
    a, b = Decimal(task.arguments["a"]), Decimal(task.arguments["b"])
    if a == b:
        return sentence
    first_wins = (a > b) == (task.wish == "larger")
    winner = task.people[0] if first_wins else task.people[1]
    low, high = (task.arguments["a"], task.arguments["b"]) if a < b else (task.arguments["b"], task.arguments["a"])
    return task.story.format(winner=winner, sentence=sentence, low=low, high=high)
