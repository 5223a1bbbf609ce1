"""Conversations with the guide's four tools."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from random import Random
from typing import Any

from kimi_demo.engines.rehearsal.data import numbers, thoughts
from kimi_demo.engines.rehearsal.data import tasks as task_makers
from kimi_demo.engines.rehearsal.data.answers import answer
from kimi_demo.engines.rehearsal.data.composed_problems import composed
from kimi_demo.engines.rehearsal.data.content import Content
from kimi_demo.engines.rehearsal.data.conversation import Call, Conversation, Message
from kimi_demo.engines.rehearsal.data.numbers import Written
from kimi_demo.engines.rehearsal.data.tasks import Task
from kimi_demo.engines.rehearsal.data.wording import Dressed, dress, joined
from kimi_demo.engines.rehearsal.data.words import WordSource, letter
from kimi_demo.tools.guide import GUIDE_TOOLS


@dataclass(frozen=True)
class Maker:
    """What every generator needs. pieces: the tokens that a word is read as when it stands in quotation marks."""

    content: Content
    source: WordSource
    pieces: Callable[[str], list[str]]

    def task(self, rng: Random, language: str) -> Task:
        if rng.random() < 0.2:
            return composed(rng, self.content, language)
        return task_makers.task(rng, self.content, self.source, language)


@cache
def guide_schemas() -> tuple[dict[str, Any], ...]:
    """The guide's four, as the page sends them. Cached: pydantic takes longer over them than the rest of a conversation takes."""
    return tuple(tool.schema() for tool in GUIDE_TOOLS)


def language_of(rng: Random) -> str:
    return "en" if rng.random() < 0.56 else "zh"


def single(rng: Random, maker: Maker) -> Conversation:
    """One question, one call, one answer."""
    language = language_of(rng)
    task = maker.task(rng, language)
    dressed = dress(rng, maker.content, language, task.question)
    thinking = rng.random() < 0.88
    return Conversation("tool", (_user(dressed), *loop(rng, maker, [task], dressed, 0)), guide_schemas(), thinking)


def double(rng: Random, maker: Maker) -> Conversation:
    """Two questions in one message, two calls at once."""
    language = language_of(rng)
    first = maker.task(rng, language)
    second = maker.task(rng, language)
    if rng.random() < 0.12:
        first, second = _same_letter(rng, maker, language)
        dressed = dress(rng, maker.content, language, _both(rng, language, first, second))
    else:
        dressed = dress(rng, maker.content, language, joined(rng, language, first.question, second.question))
    thinking = rng.random() < 0.9
    return Conversation("two_calls", (_user(dressed), *loop(rng, maker, [first, second], dressed, 0)), guide_schemas(), thinking)


def second_turn(rng: Random, maker: Maker) -> Conversation:
    """A question after an answered one: new, elliptical ("And in …?"), or about the result. Only the second turn is learnt."""
    language = language_of(rng)
    first = maker.task(rng, language)
    opening = dress(rng, maker.content, language, first.question)
    history = [_user(opening), *(_untrained(message) for message in loop(rng, maker, [first], opening, 0))]
    following = _follow_up(rng, maker, first, language) if rng.random() < 0.65 else None
    if following is None:
        following = maker.task(rng, language)
        dressed = dress(rng, maker.content, language, following.question)
    else:
        dressed = Dressed(following.question, opening.answer_in, "normal")
    thinking = rng.random() < 0.88
    return Conversation("second_turn", (*history, _user(dressed), *loop(rng, maker, [following], dressed, 1)), guide_schemas(), thinking)


def chain(rng: Random, maker: Maker) -> Conversation:
    """Three numbers: the second call needs the first one's result."""
    language = language_of(rng)
    a, b, c = (rng.randrange(2, rng.choice((20, 200, 5000))) for _ in range(3))
    first_wish, second_wish = rng.choice((("add", "mul"), ("mul", "add"), ("add", "add"), ("mul", "mul")))
    first = Task(language, "", first_wish, {"a": str(a), "b": str(b)})
    second = Task(language, "", second_wish, {"a": first.result(), "b": str(c)})
    signs = {"add": "+", "mul": rng.choice(("*", "×"))}
    if language == "en":
        verbs = {"add": f"add {c}", "mul": f"multiply the result by {c}"}
        form = {"add": f"Add {a} and {b}", "mul": f"Multiply {a} by {b}"}[first_wish]
        text = rng.choice(
            (
                f"What is ({a} {signs[first_wish]} {b}) {signs[second_wish]} {c}?",
                f"{form}, then {verbs[second_wish]}.",
                f"{form} and then {verbs[second_wish]}. What do you get?",
            )
        )
    else:
        verbs = {"add": f"再加{c}", "mul": f"再乘以{c}"}
        form = {"add": f"{a}加{b}", "mul": f"{a}乘以{b}"}[first_wish]
        text = rng.choice(
            (
                f"({a}{signs[first_wish]}{b}){signs[second_wish]}{c}等于多少？",
                f"先算{form}，{verbs[second_wish]}，结果是多少？",
                f"{form}，{verbs[second_wish]}，等于多少？",
            )
        )
    dressed = Dressed(text, language, "normal")
    opening, result, _ = loop(rng, maker, [first], dressed, 0)
    closing = loop(rng, maker, [second], dressed, 1)
    thought = thoughts.after_result(rng, maker.content, [first.result()], language, "brief")
    step = closing[0]
    space = " " if language == "en" else ""
    step = Message(
        "assistant", "", thought + space + thoughts.before_call(rng, maker.content, second, language, "brief"), step.calls, trained=True
    )
    final = Message("assistant", _chained(language, second), closing[-1].thought, trained=True)
    return Conversation("chain", (_user(dressed), opening, result, step, closing[1], final), guide_schemas(), rng.random() < 0.92)


def failed(rng: Random, maker: Maker) -> Conversation:
    """The tool answers with an error; the model says so."""
    language = language_of(rng)
    task = maker.task(rng, language)
    dressed = dress(rng, maker.content, language, task.question)
    call, result, _ = loop(rng, maker, [task], dressed, 0)
    pieces = maker.content.thoughts[dressed.answer_in]
    error = Message("tool", _error(rng, maker, task.tool.name), call_id=result.call_id)
    final = Message("assistant", rng.choice(pieces["error_answer"]), rng.choice(pieces["error"]), trained=True)
    return Conversation("error", (_user(dressed), call, error, final), guide_schemas(), rng.random() < 0.9)


def loop(rng: Random, maker: Maker, tasks: Sequence[Task], dressed: Dressed, number: int) -> list[Message]:
    """Assistant's calls, the tools' results, assistant's answer. number: of the first call in the conversation."""
    language, effort = dressed.answer_in, dressed.effort
    calls = tuple(Call(task.tool.name, task.json, number + index) for index, task in enumerate(tasks))
    if len(tasks) == 1:
        thought = thoughts.before_call(rng, maker.content, tasks[0], language, effort)
    else:
        thought = thoughts.before_calls(rng, maker.content, list(tasks), language, effort)
    results = [task.result() for task in tasks]
    told = [answer(rng, task, language) for task in tasks]
    return [
        Message("assistant", "", thought, calls, trained=True),
        *(Message("tool", result, call_id=call.id) for call, result in zip(calls, results, strict=True)),
        Message(
            "assistant",
            ("" if language == "zh" else " ").join(told),
            thoughts.after_tasks(rng, maker.content, tasks, language, "brief" if effort == "brief" else "normal"),
            trained=True,
        ),
    ]


def _chained(language: str, last: Task) -> str:
    return f"结果是{last.result()}。" if language == "zh" else f"The result is {last.result()}."


def _user(dressed: Dressed) -> Message:
    return Message("user", dressed.text)


def _untrained(message: Message) -> Message:
    return Message(message.role, message.content, message.thought, message.calls, message.call_id)


def _same_letter(rng: Random, maker: Maker, language: str) -> tuple[Task, Task]:
    words = [maker.source.word(rng) for _ in range(2)]
    counted = letter(rng, words[0])
    first, second = (task_makers.count(rng, language, "{w}", word, counted) for word in words)
    return first, second


def _both(rng: Random, language: str, first: Task, second: Task) -> str:
    counted = first.words()["b"]
    if language == "zh":
        form = rng.choice(("{}和{}中各有多少个{}？", "{}和{}里分别有几个{}？", "字母{2}在{0}和{1}中各出现几次？"))
    else:
        form = rng.choice(
            (
                "How many {2} are in {0} and in {1}?",
                "Count the letter {2} in {0} and in {1}.",
                "How often does {2} occur in {0}, and how often in {1}?",
                "How many {2}'s are in {0} and how many in {1}?",
            )
        )
    return form.format(first.question, second.question, counted)


def _follow_up(rng: Random, maker: Maker, first: Task, language: str) -> Task | None:
    """A question that only makes sense after `first`."""
    zh = language == "zh"
    if first.wish == "count":
        words = first.words()
        if rng.random() < 0.6:
            form = rng.choice(
                ("那{w}呢？", "那{w}里呢？", "{w}中有几个呢？")
                if zh
                else ("And in {w}?", "What about {w}?", "And how many are in {w}?", "Now do the same for {w}.", "The same for {w}, please.")
            )
            return task_makers.count(rng, language, form, maker.source.word(rng), words["b"])
        form = rng.choice(
            ("那{l}呢？", "有几个{l}呢？", "里面有几个{l}？")
            if zh
            else ("And how many {l}?", "And the letter {l}?", "What about {l} in the same word?", "How often does {l} occur in it?")
        )
        return task_makers.count(rng, language, form, words["a"], letter(rng, words["a"]))
    if first.wish in ("add", "mul", "subtract"):
        other = numbers.small(rng, 2, 999, language)
        result = Written(first.result(), first.result())
        wish = rng.choice(("add", "mul"))
        forms = {
            ("add", False): ("Now add {b} to that.", "And plus {b}?", "Add {b} to the result.", "What if I add {b} more?"),
            ("mul", False): ("Now multiply that by {b}.", "And times {b}?", "Multiply the result by {b}.", "What is {b} times that?"),
            ("add", True): ("再加{b}呢？", "结果再加上{b}是多少？", "把结果加{b}。"),
            ("mul", True): ("再乘以{b}呢？", "结果乘以{b}是多少？", "把结果乘以{b}。"),
        }
        return task_makers.arithmetic(language, wish, rng.choice(forms[wish, zh]), result, other)
    if first.wish in ("larger", "smaller") and not first.story:
        one, other_pair = numbers.pair(rng, language, True)
        form = rng.choice(
            ("那{a}和{b}呢？", "{a}和{b}呢？") if zh else ("And {a} or {b}?", "And what about {a} and {b}?", "And of {a} and {b}?")
        )
        return task_makers.arithmetic(language, first.wish, form, one, other_pair)
    return None


def _error(rng: Random, maker: Maker, tool: str) -> str:
    errors = maker.content.phrases["errors"]
    form = str(rng.choice(errors["forms"]))
    code = str(rng.choice((400, 401, 403, 404, 408, 422, 429, 500, 502, 503, 504)))
    return form.format(rng.choice(errors["reasons"]), tool=tool, n=rng.choice((1, 5, 10, 30, 60)), code=code)
