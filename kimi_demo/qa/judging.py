"""All checks of a case over all its attempts. Pure."""

from collections.abc import Callable, Sequence

from kimi_demo.qa import check_agrees, check_answer, check_calls, check_reply, check_several
from kimi_demo.qa.attempt import Attempt
from kimi_demo.qa.case import Planned
from kimi_demo.qa.report import CaseReport, state_of
from kimi_demo.qa.verdict import CheckResult, Verdict, together

ONE: tuple[Callable[[Planned, Attempt], list[Verdict]], ...] = (
    check_reply.thought,
    check_reply.closed,
    check_reply.no_leaks,
    check_answer.answer,
    check_calls.calls,
    check_calls.calls_arrive,
    check_agrees.agrees,
    check_reply.finish,
    check_reply.tokens,
    check_reply.model,
    check_reply.prompt,
    check_calls.history_kept,
    check_calls.not_mixed_up,
    check_reply.time,
)
"""What is judged of each attempt by itself, once it was answered."""

SEVERAL: tuple[Callable[[Planned, Sequence[Attempt]], list[Verdict]], ...] = (
    check_several.same_structure,
    check_several.same_text,
    check_several.same_tool,
)

CHECKS: tuple[str, ...] = (
    *("answered", "fails_with", "thought_present", "thought_absent", "closed", "no_leaks"),
    *("contains", "any_of", "excludes", "matches", "equals", "larger", "json", "empty", "not_empty"),
    *("call_count", "first_round", "tool_choice", "arguments", "valid_arguments", "kimi_ids", "argument_length", "calls_arrive", "agrees"),
    *("finish", "prompt_tokens", "completion_tokens", "reasoning_counted", "model_path", "model_context"),
    *("prompt", "prompt_contains", "prompt_excludes", "prompt_ends", "history_kept", "not_mixed_up"),
    *("first_token_time", "total_time", "same_structure", "same_text", "same_tool", "manual"),
)
"""The names of all verdicts: keys of ui/texts (`qa.check.<name>`)."""


def judge(planned: Planned, attempts: Sequence[Attempt]) -> list[CheckResult]:
    """What the case's checks say. Of an attempt that failed nothing else is judged: everything would fail with it."""
    found: list[tuple[int | None, Verdict]] = []
    for index, seen in enumerate(attempts):
        found += [(index, verdict) for verdict in check_reply.answered(planned, seen)]
        if seen.failure is None or not planned.case.checks.answered:
            found += [(index, verdict) for check in ONE for verdict in check(planned, seen)]
    found += [(None, verdict) for check in SEVERAL for verdict in check(planned, attempts)]
    if planned.case.manual and any(seen.failure is None for seen in attempts):
        found.append((0, Verdict("manual", "open")))
    return together(found, needed=planned.case.needed, warns=planned.case.warns)


def by_hand(case: CaseReport, *, good: bool, note: str = "") -> CaseReport:
    """`case` with what a person says of it. Raises KeyError where nothing of it is to be judged by hand."""
    if not any(check.check == "manual" for check in case.checks):
        raise KeyError(case.id)
    said = {"outcome": "pass" if good else "fail", "passed": int(good), "got": note}
    checks = tuple(check.model_copy(update=said) if check.check == "manual" else check for check in case.checks)
    return case.model_copy(update={"checks": checks, "state": state_of(checks), "note": note})
