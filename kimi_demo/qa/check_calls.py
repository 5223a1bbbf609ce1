"""Checks of tool calls. Pure."""

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

from kimi_demo.qa.attempt import Attempt, CallSeen
from kimi_demo.qa.case import Planned
from kimi_demo.qa.verdict import Verdict, judged, shown
from kimi_demo.tools.arguments import ArgumentsError, parse

_KIMI_ID = re.compile(r"functions\.(.+):\d+", re.S)


def calls(planned: Planned, seen: Attempt) -> list[Verdict]:
    """One verdict for each thing that the case says of the calls of all rounds."""
    wanted, found, made = planned.case.checks.calls, list[Verdict](), seen.calls
    if wanted is None:
        return found
    told = "; ".join(f"{call.name}({call.arguments})" for call in made) or f"no call; answer: {seen.answer}"
    if wanted.count is not None:
        found.append(judged("call_count", len(made) == wanted.count, wanted.count, f"{len(made)}: {told}"))
    if wanted.first_round is not None:
        first = [call.name for call in seen.rounds[0].calls] if seen.rounds else []
        found.append(judged("first_round", len(first) == wanted.first_round, wanted.first_round, f"{len(first)}: {shown(first)}"))
    if wanted.tools is not None:
        found.append(judged("tool_choice", Counter(call.name for call in made) == Counter(wanted.tools), wanted.tools, told))
    if not made and any(verdict.outcome == "fail" for verdict in found):
        return found  # of calls that were not made, nothing else can be right either
    if wanted.arguments:
        found.append(judged("arguments", _all_there(wanted.arguments, made), "; ".join(map(_written, wanted.arguments)), told))
    if wanted.one_of:
        good = any(_same(each, call) for each in wanted.one_of for call in made)
        found.append(judged("arguments", good, " / ".join(map(_written, wanted.one_of)), told))
    if wanted.valid:
        found.append(_valid(made, told))
    if wanted.kimi_ids:
        ids = [call.id for call in made]
        forms = [_KIMI_ID.fullmatch(call.id) for call in made]
        good = all(form is not None and form[1] == call.name for form, call in zip(forms, made, strict=True)) and len(set(ids)) == len(ids)
        found.append(judged("kimi_ids", bool(made) and good, "functions.NAME:NUMBER", ids or told))
    if wanted.chars_at_least is not None:
        longest = max((len(call.arguments) for call in made), default=0)
        found.append(judged("argument_length", longest >= wanted.chars_at_least, f"≥ {wanted.chars_at_least}", longest))
    return found


def calls_arrive(planned: Planned, seen: Attempt) -> list[Verdict]:
    """Whether no reply says that it calls tools and brings no call (vllm#54701: streamed, under load)."""
    if not planned.case.checks.calls_arrive:
        return []
    lost = [index for index, each in enumerate(seen.rounds) if each.finish_reason == "tool_calls" and not any(c.name for c in each.calls)]
    return [judged("calls_arrive", not lost, "", f"finish_reason tool_calls without a call in round {lost[0] + 1}" if lost else "")]


def history_kept(planned: Planned, seen: Attempt) -> list[Verdict]:
    """Whether the prompt of a tool loop's last round holds what came before to the letter: thoughts, ids, results."""
    if not planned.case.checks.history_kept:
        return []
    if len(seen.rounds) < 2:
        return [judged("history_kept", False, "a second round", f"{len(seen.rounds)} round")]
    if seen.prompt is None:
        return [Verdict("history_kept", "skip")]
    parts = [part for each in seen.rounds[:-1] for part in (each.thought.strip(), *(call.id for call in each.calls)) if part]
    missing = [part for part in parts if part not in seen.prompt]
    return [judged("history_kept", not missing, shown(missing or parts), shown(seen.prompt))]


def not_mixed_up(planned: Planned, seen: Attempt) -> list[Verdict]:
    """Whether nothing in the reply belongs to another question that was asked at the same time."""
    if not planned.case.checks.not_mixed_up:
        return []
    text = "\n".join([*(each.thought + "\n" + each.answer for each in seen.rounds), *(call.arguments for call in seen.calls)])
    strange = [other for other in planned.others if other in text and other not in planned.mark]
    return [judged("not_mixed_up", not strange, planned.mark, f"{shown(strange)}: {text}" if strange else "")]


def _valid(made: Iterable[CallSeen], told: str) -> Verdict:
    made = list(made)
    if not made:
        return judged("valid_arguments", False, "", told)
    wrong = [f"{call.name}: {'; '.join(call.problems)}" for call in made if call.problems]
    wrong += [f"{call.name}: not checked" for call in made if call.problems is None]
    return judged("valid_arguments", not wrong, "", f"{shown(wrong)} {told}" if wrong else told)


def _all_there(wanted: Iterable[Mapping[str, Any]], made: Iterable[CallSeen]) -> bool:
    left = list(made)
    for each in wanted:
        match = next((call for call in left if _same(each, call)), None)
        if match is None:
            return False
        left.remove(match)
    return True


def _same(wanted: Mapping[str, Any], call: CallSeen) -> bool:
    try:
        return _equal(parse(call.arguments), dict(wanted))
    except ArgumentsError:
        return False


def _equal(got: Any, wanted: Any) -> bool:
    """By value: 8.0 is 8, and true is not 1."""
    if isinstance(wanted, bool) or isinstance(got, bool):
        return got is wanted
    if isinstance(wanted, int | float) and isinstance(got, int | Decimal):
        return Decimal(got) == Decimal(str(wanted))
    if isinstance(wanted, Mapping) and isinstance(got, Mapping):
        return got.keys() == wanted.keys() and all(_equal(got[name], value) for name, value in wanted.items())
    if isinstance(wanted, list | tuple) and isinstance(got, list):
        return len(got) == len(wanted) and all(map(_equal, got, wanted))
    return bool(got == wanted)


def _written(arguments: Mapping[str, Any]) -> str:
    return json.dumps(dict(arguments), ensure_ascii=False, default=str)
