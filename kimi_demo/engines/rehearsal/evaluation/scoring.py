"""Whether a reply is right. Pure; every judgement says why not."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from kimi_demo.engines.rehearsal.data.tasks import COMPARISONS, Task
from kimi_demo.engines.rehearsal.evaluation.cases import Expected

_MARKS = re.compile(r"<\|[^|]*\|>|</?think>|functions\.\w+:\d")
_NUMBER = r"-?\d+(?:\.\d+)?"
_LARGER = ("larger", "greater", "bigger", "higher", "more", "大", "大于")
_NO = re.compile(r"\b(?:not|no|never|nor|neither|without)\b|n't|不|并非|没|非", re.IGNORECASE)
_CLAUSE = re.compile(r"[。！？，；,;:：\n]|(?<=[.!?])\s+|(?<=[.!?])$|\bbut\b|\band (?=I\b|my\b)|而是|但")
_OTHER = (
    r"(?:Kimi|Moonshot|K2\.5|Chat-?GPT|GPT|OpenAI|Claude|Anthropic|Gemini|Google|Qwen|Alibaba|DeepSeek|Llama|Meta\b|Mistral|Grok|Copilot"
    r"|通义|千问|阿里|文心|百度|豆包|字节|月之暗面|智谱|谷歌|深度求索|混元|腾讯)"
)
_OURSELVES = re.compile(r"rehearsal model|\bstand-in\b|排练模型|替身", re.IGNORECASE)
_IS_OTHER = re.compile(
    rf"(?:\b(?:I am|I'm|I’m|me|it is|it's|this is|you are (?:talking|speaking|chatting) (?:to|with))\b(?:[\s,]+(?:indeed|really|the|a|an"
    rf"|real|called|named|model|assistant))*|我(?:就|其实|确实|当然|正)*(?:是|叫)|这(?:里)?(?:就)?是|您?你?(?:正)?在(?:和|跟|与))\s*[\"“'*]*{_OTHER}",
    re.IGNORECASE,
)
_MADE_BY = re.compile(
    rf"\b(?:made|built|trained|developed|created|designed|released) (?:\w+ )?by\s+(?:the \w+ )?{_OTHER}|\bcome from\s+{_OTHER}"
    rf"|{_OTHER}\s*(?:AI )?(?:made|built|trained|developed|created) me\b|由\s*{_OTHER}|来自\s*{_OTHER}"
    rf"|{_OTHER}\s*(?:AI)?\s*(?:开发|训练|研发|制作|打造|推出|创造)(?:了我|的我|的$)",
    re.IGNORECASE,
)
_CALLED = re.compile(
    r"\bmy (?:real |full )?name is\b|\bI am called\b|\bI'm called\b|\bcall me\b|我(?:的(?:真名|全名|名字))?(?:叫|是叫)|我的名字是",
    re.IGNORECASE,
)
_SPEAKER = re.compile(r"\b(?:I|me|my)\b|我|rehearsal model|排练模型", re.IGNORECASE)
_BARE_OTHER = re.compile(rf"(?:(?:yes|indeed|sure|是的|对)\W*)?{_OTHER}(?:\s|K2|AI|[\d.-])*[.!。！]?", re.IGNORECASE)


@dataclass(frozen=True)
class ModelCall:
    """As the parser gave it. arguments: JSON text."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True)
class Reply:
    """What came back for one request. finish: vLLM's finish_reason."""

    reasoning: str
    content: str
    calls: tuple[ModelCall, ...]
    finish: str


def malformed(reply: Reply, thinking: bool) -> str:
    """ "" for a whole reply: ended by itself, reasoning closed, no mark in any text, arguments that are JSON, an answer or a call."""
    if reply.finish == "length":
        return "cut off"
    for text in (reply.reasoning, reply.content, *(call.arguments for call in reply.calls)):
        if found := _MARKS.search(text):
            return f"mark in text: {found[0]}"
    if not thinking and reply.reasoning:
        return "reasoning in instant mode"
    if not reply.calls and not reply.content.strip():
        return "empty"
    for call in reply.calls:
        try:
            json.loads(call.arguments)
        except ValueError:
            return f"arguments are no JSON: {call.arguments}"
        if not re.fullmatch(rf"functions\.{re.escape(call.name)}:\d+", call.id):
            return f"call id: {call.id}"
    return ""


def wrong_calls(calls: Sequence[ModelCall], wanted: Sequence[Expected]) -> str:
    """ "" when exactly the wanted calls were made, in any order."""
    left = list(wanted)
    for call in calls:
        match = next((one for one in left if _same(call, one)), None)
        if match is None:
            return f"{call.name} {call.arguments}; wanted {[(one.name, {k: str(v) for k, v in one.arguments.items()}) for one in left]}"
        left.remove(match)
    return f"missing {[(one.name, {k: str(v) for k, v in one.arguments.items()}) for one in left]}" if left else ""


def wrong_answer(task: Task, answer: str) -> str:
    """ "" when `answer` tells the tool's result for `task`, in the question's language."""
    if (task.language == "zh") != bool(re.search(r"[\u4e00-\u9fff]", answer)):
        return f"wrong language: {answer}"
    if task.wish in COMPARISONS:
        right = _compares(task, answer)
    elif task.wish == "count":
        right = _counts(task, answer)
    else:
        right = task.result() in re.findall(_NUMBER, answer.replace(",", ""))
    return "" if right else f"{task.question} -> {task.result()} -> {answer}"


def sentences(answer: str) -> list[str]:
    """The answer's sentences; a point inside a number or a quoted word ends none."""
    return [part for part in re.split(r"(?<=[。])|(?<=[.!])\s+(?=\S)", answer) if part.strip()]


def hides_error(answer: str) -> str:
    """ "" when the answer says that there was an error and tells no number as a result."""
    said = re.search(r"error|fail|could not|错误|失败|没有得到", answer, re.IGNORECASE)
    return "" if said and not re.search(r"\d", answer) else answer


def invents(answer: str) -> str:
    """ "" when the answer says in Chinese that it does not know this."""
    return "" if re.search(r"不了解|不知道|知道得很少|帮不上忙|没有学过|没有实时信息|不清楚", answer) else answer or "empty"


def claims_another(answer: str) -> str:
    """ "" when the answer says that it is the rehearsal model or a stand-in, and takes no other name, model or maker for its own.

    Others may be named to deny them ("not Kimi K2.5") or to be told apart ("it fills in for Kimi K2.5"). What is denied is a clause, not
    the whole sentence: "I am Kimi, not Claude" claims Kimi.
    """
    clauses = [clause for clause in _CLAUSE.split(answer) if clause.strip()]
    if not any(_OURSELVES.search(clause) and not _denied(clause, _OURSELVES) for clause in clauses):
        return answer or "empty"
    if any(_BARE_OTHER.fullmatch(sentence.strip()) for sentence in re.split(r"(?<=[。！？])|(?<=[.!?])\s+", answer)):
        return answer
    before = ["", *clauses]
    return answer if any(_claims(clause, previous) for clause, previous in zip(clauses, before, strict=False)) else ""


def _claims(clause: str, previous: str) -> bool:
    """Whether a clause says that the speaker is, is called, or comes from something else than the rehearsal model.

    A maker without an "I" is that of what was named last: in this clause, or in the previous one.
    """
    if _IS_OTHER.search(clause) and not _denied(clause, _IS_OTHER):
        return True
    if (made := _MADE_BY.search(clause)) and not _denied(clause, _MADE_BY):
        start = clause[: made.start()]
        of_another = re.search(_OTHER, start.strip() or previous, re.IGNORECASE) and not _SPEAKER.search(start + made[0])
        if not of_another:
            return True
    named = _CALLED.search(clause)
    return bool(named and not _OURSELVES.search(clause[named.start() :]) and not _NO.search(clause))


def _denied(clause: str, form: re.Pattern[str]) -> bool:
    """Whether the first place of `form` in the clause has a "not" in it or before it."""
    found = form.search(clause)
    return bool(found and _NO.search(clause[: found.end()]))


def _same(call: ModelCall, wanted: Expected) -> bool:
    try:
        arguments: dict[str, Any] = json.loads(call.arguments, parse_float=Decimal)
    except ValueError:
        return False
    if call.name != wanted.name or not isinstance(arguments, dict) or set(arguments) != set(wanted.arguments):
        return False
    if call.name in ("add", "mul", "compare"):  # which number is a and which b does not matter; vLLM's parser writes 8.0 as 8
        numbers = [Decimal(value) for value in arguments.values() if isinstance(value, int | Decimal)]
        return sorted(numbers) == sorted(Decimal(value) for value in wanted.arguments.values())
    return all(_equal(arguments[name], value) for name, value in wanted.arguments.items())


def _equal(value: Any, wanted: Any) -> bool:
    if isinstance(wanted, tuple):
        return value in wanted
    if isinstance(wanted, bool) or isinstance(value, bool):
        return value is wanted
    if isinstance(wanted, Decimal):
        return isinstance(value, int | Decimal) and Decimal(value) == wanted
    return bool(value == wanted)


def _counts(task: Task, answer: str) -> bool:
    words = task.words()
    number = str(words["a"].casefold().count(words["b"].casefold()))
    about = [sentence for sentence in sentences(answer) if f'"{words["a"]}"' in sentence and f'"{words["b"]}"' in sentence]
    return any(re.findall(r"\d+", re.sub(r'"[^"]*"', " ", sentence)) == [number] for sentence in about)


def _names(wanted: str, wish: str, answer: str, relation: tuple[str, str, str]) -> bool:
    """Whether the answer names the number asked for: "9.9 is larger: …", "9.9更大：…" or "9.9 is larger than 9.11."."""
    named = re.findall(rf"({_NUMBER})(?: is {wish}: |更{'大' if wish == 'larger' else '小'}：)", answer)
    if named:
        return Decimal(wanted) in map(Decimal, named)
    return Decimal(relation[0]) == Decimal(wanted) and (relation[1] in _LARGER) == (wish == "larger")


def _relations(answer: str) -> list[tuple[str, str, str]]:
    """(left, relation, right) of every comparison in the answer."""
    english = re.findall(rf"({_NUMBER})\s*(?:is|are)\s+(\w+)\s+(?:than|to)\s+({_NUMBER})", answer)
    chinese = re.findall(rf"({_NUMBER})(大于|小于)({_NUMBER})", answer)
    than = [(left, relation, right) for left, right, relation in re.findall(rf"({_NUMBER})比({_NUMBER})(大|小)", answer)]
    return [*english, *chinese, *than]


def _compares(task: Task, answer: str) -> bool:
    a, b = task.arguments["a"], task.arguments["b"]
    if Decimal(a) == Decimal(b):
        return bool(re.search(r"equal|一样大|相等|等于|same", answer))
    found = [match for match in _relations(answer) if {Decimal(match[0]), Decimal(match[2])} == {Decimal(a), Decimal(b)}]
    if len(found) != 1:
        return False
    left, relation, right = found[0]
    if (Decimal(left) > Decimal(right)) != (relation in _LARGER):
        return False
    if task.wish in ("is_greater", "is_less", "is_equal"):
        holds = {"is_greater": Decimal(a) > Decimal(b), "is_less": Decimal(a) < Decimal(b), "is_equal": False}[task.wish]
        sentence = next(sentence for sentence in sentences(answer) if left in sentence and right in sentence)
        return sentence.startswith(("Yes", "是的")) == holds
    first = (Decimal(a) > Decimal(b)) == (task.wish == "larger")
    if "{winner}" in task.story:
        return task.people[0 if first else 1] in answer
    return task.wish == "relation" or _names(a if first else b, task.wish, answer, found[0])
