"""The evaluation's questions. Words, numbers, phrasings and tools come from outside the training set wherever that is said."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from importlib import resources
from random import Random
from typing import Any

from kimi_demo.engines.rehearsal import base
from kimi_demo.engines.rehearsal.data import content as contents
from kimi_demo.engines.rehearsal.data import tasks, words
from kimi_demo.engines.rehearsal.data.content import Content
from kimi_demo.engines.rehearsal.data.tasks import Task
from kimi_demo.engines.rehearsal.data.tool_talk import guide_schemas
from kimi_demo.engines.rehearsal.data.words import WordSource

SEED = 7
"""Of the questions; nothing in the training data comes from it."""

_WISHES = ("count", "count", "count", "add", "mul", "larger", "smaller", "relation")


@dataclass(frozen=True)
class Expected:
    """A call that must be made. arguments: by name; a tuple lists the values that are all right."""

    name: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True)
class Case:
    """kind: the figure it counts for; question: the user's text; calls: expected (none: no tool may be called).

    tasks: one for each call, to judge the final answer by; tool_error: what the tool returns instead of its result;
    answer: how the reply has to begin.
    """

    kind: str
    question: str
    tools: Sequence[Mapping[str, Any]] = ()
    calls: tuple[Expected, ...] = ()
    tasks: tuple[Task, ...] = ()
    thinking: bool = True
    tool_error: str = ""
    answer: str = ""


@dataclass(frozen=True)
class Source:
    """content: the training texts; unseen: the evaluation's own; tools: unseen ones.

    held: words that no training question asks about; known: the others.
    """

    content: Content
    unseen: Mapping[str, Any]
    held: WordSource
    known: WordSource
    tools: Sequence[Mapping[str, Any]]


def source() -> Source:
    """Raises base.BaseMissing: the held-out words are part of the base's vocabulary."""
    tokens, _ = base.vocabulary_of(base.find_base().path)
    known, held = words.sources(tokens)
    return Source(contents.load(), _read("questions.yaml"), held, known, _read("unseen_tools.yaml"))


def all_cases(limit: int | None = None, kinds: Sequence[str] = (), seed: int = SEED) -> list[Case]:
    """Every case, at most `limit` of each kind, only of `kinds` if any are given; the same for the same arguments."""
    given = source()
    makers = (
        ("guide", 8, _guide),
        ("tool_call", 420, _tool_calls),
        ("two_calls", 400, _two_calls),
        ("unseen_schema", 400, _unseen_schemas),
        ("no_tool", 400, _no_tool),
        ("identity", 400, _identity),
        ("error", 100, _errors),
        ("declines", 212, _declines),
        ("knows", 200, _knows),
        ("guide_plain", 8, _guide_plain),
        ("plain_count", 100, _plain_counts),
        ("plain_compare", 100, _plain_compares),
    )
    cases: list[Case] = []
    for kind, size, make in makers:
        if kinds and kind not in kinds:
            continue
        count = min(size, limit) if limit else size
        cases += list(make(Random(f"{seed}/{kind}"), given, count))[:count]
    return cases


def new_task(rng: Random, given: Source, language: str) -> Task:
    """Three in four in a phrasing or problem that no training template holds, the others in a trained one.

    Half of the words are held out: no training question asks about them. The others may have been asked about, in other questions.
    """
    word_source = given.held if rng.random() < 0.5 else given.known
    if rng.random() < 0.75:
        texts = given.unseen["fresh"] if rng.random() < 0.5 else given.unseen
        if rng.random() < 0.2:
            return tasks.problem(rng, given.content, language, rng.choice(texts[f"problems.{language}"]))
        wish = rng.choice(_WISHES)
        return tasks.fill(rng, language, wish, rng.choice(texts[language][wish]), word_source)
    wish = rng.choice(_WISHES)
    return tasks.fill(rng, language, wish, rng.choice(given.content.questions[language][wish]), word_source)


def expected(task: Task) -> Expected:
    return Expected(task.tool.name, json.loads(task.json, parse_float=Decimal))


def _guide(rng: Random, given: Source, count: int) -> Iterator[Case]:
    """The deployment guide's two tool questions and their English twins, which the training set holds in no form."""
    letters, pair = {"a": '"strawberry"', "b": '"r"'}, {"a": "9.11", "b": "9.9"}
    asked = (
        Task("zh", "用中文回答：strawberry中有多少个r?", "count", letters),
        Task("zh", "用中文回答：9.11和9.9，哪个小?", "smaller", pair),
        Task("en", "How many r are in strawberry?", "count", letters),
        Task("en", "Which is smaller, 9.11 or 9.9?", "smaller", pair),
    )
    for thinking in (True, False):
        for task in asked:
            yield Case("guide", task.question, guide_schemas(), (expected(task),), (task,), thinking)


def _tool_calls(rng: Random, given: Source, count: int) -> Iterator[Case]:
    for _ in range(count):
        task = new_task(rng, given, "en" if rng.random() < 0.6 else "zh")
        yield Case("tool_call", task.question, guide_schemas(), (expected(task),), (task,), rng.random() < 0.85)


def _two_calls(rng: Random, given: Source, count: int) -> Iterator[Case]:
    for _ in range(count):
        language = "en" if rng.random() < 0.6 else "zh"
        first, second = new_task(rng, given, language), new_task(rng, given, language)
        if rng.random() < 0.5:
            question = str(rng.choice(given.unseen[f"pairs.{language}"])).format(first.question, second.question)
        else:
            question = f"{first.question}{'' if language == 'zh' else ' '}{second.question}"
        yield Case("two_calls", question, guide_schemas(), (expected(first), expected(second)), (first, second), rng.random() < 0.85)


def _unseen_schemas(rng: Random, given: Source, count: int) -> Iterator[Case]:
    pool = _values(given.tools)
    asks = [(tool, ask) for tool in given.tools for ask in tool["ask"]]
    for index in range(count):
        tool, ask = asks[index % len(asks)]
        arguments: dict[str, Any] = {}
        first_round = index < len(asks)

        def put(found: re.Match[str], tool: Mapping[str, Any] = tool, first: bool = first_round, into: dict[str, Any] = arguments) -> str:
            name, said = found[1], found[2]
            if not first:
                said = rng.choice(pool[tool["name"], name])
            shown, into[name] = _said(tool["fields"][name], said)
            return shown

        question = re.sub(r"\{(\w+)=([^}]*)\}", put, ask)
        others = rng.sample([other for other in given.tools if other is not tool], rng.choice((1, 2, 3)))
        tools = [_schema(other) for other in (tool, *others)]
        rng.shuffle(tools)
        yield Case("unseen_schema", question, tools, (Expected(tool["name"], arguments),), (), rng.random() < 0.85)


def _no_tool(rng: Random, given: Source, count: int) -> Iterator[Case]:
    questions = [(question, thinking) for question in given.unseen["no_tool"] for thinking in (True, False)]
    for language, topics in given.content.topics.items():
        questions += [(str(rng.choice(given.unseen["topics"][language])).format(topic.name), True) for topic in topics]
    rng.shuffle(questions)
    for question, thinking in questions[:count]:
        yield Case("no_tool", question, guide_schemas(), thinking=thinking)


def _identity(rng: Random, given: Source, count: int) -> Iterator[Case]:
    questions = given.unseen["identity"]
    for tools in ((), guide_schemas()):
        for thinking in (True, False):
            for question in questions:
                yield Case("identity", question, tools, thinking=thinking)


def _declines(rng: Random, given: Source, count: int) -> Iterator[Case]:
    """What was never taught, in Chinese: without tools, as on the chat tab."""
    texts = given.unseen["declines"]
    questions = [str(question) for question in texts["questions"]]
    for index, topic in enumerate(texts["topics"]):
        questions.append(str(rng.choice(texts["ask" if index % 2 else "known"])).format(topic))
    for thinking in (True, False):
        for question in questions if thinking else reversed(questions):
            yield Case("declines", question, thinking=thinking)


def _knows(rng: Random, given: Source, count: int) -> Iterator[Case]:
    """The Chinese topics that were taught, in phrasings that were not: the other side of `declines`."""
    for thinking in (True, False):
        for topic in given.content.topics["zh"]:
            question = str(rng.choice(given.unseen["topics"]["zh"])).format(topic.name)
            yield Case("knows", question, thinking=thinking, answer=topic.answer)


def _guide_plain(rng: Random, given: Source, count: int) -> Iterator[Case]:
    """The guide's two questions without tools, as on the chat tab."""
    for case in _guide(rng, given, count):
        yield Case("guide_plain", case.question, tasks=case.tasks, thinking=case.thinking)


def _plain_counts(rng: Random, given: Source, count: int) -> Iterator[Case]:
    """Letters of words that no training question asks about, without tools."""
    for index in range(count):
        language = "en" if index % 2 else "zh"
        task = tasks.count(
            rng, language, rng.choice(given.unseen[language]["count"]), word := _letters_only(rng, given), words.letter(rng, word)
        )
        yield Case("plain_count", task.question, tasks=(task,), thinking=rng.random() < 0.7)


def _letters_only(rng: Random, given: Source) -> str:
    while True:
        word = rng.choice(given.held.plain).lower()
        if 3 <= len(word) <= 13:
            return word


def _plain_compares(rng: Random, given: Source, count: int) -> Iterator[Case]:
    """Two decimals with the same whole part, without tools."""
    for index in range(count):
        language, wish = "en" if index % 2 else "zh", rng.choice(("larger", "smaller", "relation"))
        whole, digits = rng.randrange(30), (rng.randrange(1, 10), rng.randrange(10, 10 ** rng.randrange(2, 4)))
        a, b = (f"{whole}.{number}" for number in rng.sample(digits, 2))
        question = rng.choice(given.unseen[language][wish]).format(a=a, b=b)
        task = Task(language, question, wish, {"a": a, "b": b})
        yield Case("plain_compare", question, tasks=(task,), thinking=rng.random() < 0.7)


def _errors(rng: Random, given: Source, count: int) -> Iterator[Case]:
    kinds = (
        "The tool {} did not finish within 10 seconds.",
        "The tool {} failed: RuntimeError: disk full",
        "Invalid arguments for {}:\nb: is missing",
        "Not carried out: the reply was cut off.",
        "Error 503 from {}",
    )
    for _ in range(count):
        task = new_task(rng, given, "en" if rng.random() < 0.6 else "zh")
        error = rng.choice(kinds).format(task.tool.name)
        yield Case("error", task.question, guide_schemas(), (expected(task),), (task,), rng.random() < 0.85, error)


def _schema(tool: Mapping[str, Any]) -> dict[str, Any]:
    properties, required = {}, []
    for name, (kind, about, need, *enum) in tool["fields"].items():
        properties[name] = {"type": kind, "description": about, **({"enum": enum[0]} if enum else {})}
        if need == "required":
            required.append(name)
    parameters = {"type": "object", "properties": properties, "required": required}
    return {"type": "function", "function": {"name": tool["name"], "description": tool["about"], "parameters": parameters}}


def _values(tools: Sequence[Mapping[str, Any]]) -> dict[tuple[str, str], list[str]]:
    """Everything that the questions say for a field, by (tool, field)."""
    pool: dict[tuple[str, str], list[str]] = {}
    for tool in tools:
        for ask in tool["ask"]:
            for name, said in re.findall(r"\{(\w+)=([^}]*)\}", ask):
                pool.setdefault((tool["name"], name), []).append(said)
    return pool


def _said(about: Sequence[Any], said: str) -> tuple[str, Any]:
    """(text in the question, right value or values)."""
    shown, _, other = said.partition("|")
    if about[0] == "boolean":
        return shown, other == "true"
    if about[0] in ("integer", "number"):
        return shown, Decimal(shown)
    return shown, (shown, other) if other else shown


def _read(name: str) -> Any:
    return contents.parse_yaml(resources.files(__package__).joinpath(name).read_text(encoding="utf-8"))
