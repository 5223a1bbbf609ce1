"""Checks of one reply's shape: reasoning apart, nothing leaked, how it ended, tokens, time. Pure; each gives verdicts, or none where the
case does not ask for it."""

from kimi_demo.dialect.leaks import CODE, MARK
from kimi_demo.qa.attempt import Attempt
from kimi_demo.qa.case import Planned
from kimi_demo.qa.verdict import Outcome, Verdict, judged, shown


def answered(planned: Planned, seen: Attempt) -> list[Verdict]:
    """Whether the request did what is expected of it: a reply, or the failure that the case wants."""
    got = f"{seen.failure.code} {seen.failure.params}" if seen.failure is not None else ""
    wanted = planned.case.checks.fails_with
    if wanted is not None:
        code = seen.failure.code if seen.failure is not None else ""
        return [judged("fails_with", code.startswith(wanted), wanted, got or f"a reply: {shown(seen.answer)}")]
    if not planned.case.checks.answered:
        return []
    return [judged("answered", seen.failure is None, "", got)]


def thought(planned: Planned, seen: Attempt) -> list[Verdict]:
    """Whether reasoning came in its own field: in the first round, since later ones of a tool loop may do without."""
    wanted = planned.case.checks.thought
    if wanted is None:
        return []
    found = seen.rounds[0].thought if seen.rounds else ""
    if wanted == "absent":
        return [judged("thought_absent", not seen.thought.strip(), "", seen.thought)]
    return [judged("thought_present", bool(found.strip()), "", f"answer: {shown(seen.answer)}")]


def closed(planned: Planned, seen: Attempt) -> list[Verdict]:
    """Whether every thought ended: an answer or a call follows it, and the token limit did not fall into it."""
    if not planned.case.checks.closed:
        return []
    unended = [each for each in seen.rounds if not each.calls and each.finish_reason != "tool_calls" and not each.answer.strip()]
    got = "" if not unended else f"finish_reason {unended[0].finish_reason}: …{unended[0].thought[-200:]}"
    return [judged("closed", bool(seen.rounds) and not unended, "", got)]


def no_leaks(planned: Planned, seen: Attempt) -> list[Verdict]:
    """Whether no mark of Kimi's vocabulary stands in a text. Marks inside code are quoted, not leaked; in arguments they never belong."""
    if not planned.case.checks.no_leaks:
        return []
    asked = planned.case.question
    for each in seen.rounds:
        texts = [("reasoning", CODE.sub("", each.thought)), ("content", CODE.sub("", each.answer))]
        texts += [(f"arguments of {call.name}", call.arguments) for call in each.calls]
        for where, text in texts:
            found = next((match for match in MARK.finditer(text) if match[0] not in asked), None)
            if found is not None:
                around = text[max(0, found.start() - 60) : found.end() + 60]
                return [judged("no_leaks", False, "", f"{found[0]} in {where}: …{around}…")]
    return [judged("no_leaks", True, "", "")]


def finish(planned: Planned, seen: Attempt) -> list[Verdict]:
    wanted = planned.case.checks.finish
    return [judged("finish", seen.last.finish_reason in wanted, wanted, seen.last.finish_reason)] if wanted else []


def tokens(planned: Planned, seen: Attempt) -> list[Verdict]:
    """Token counts as the server gives them."""
    wanted, found = planned.case.checks.tokens, list[Verdict]()
    if wanted is None:
        return found
    if wanted.prompt is not None:
        count = seen.prompt_count if not seen.rounds else seen.rounds[0].prompt_tokens
        found.append(_counted("prompt_tokens", count, count == wanted.prompt, wanted.prompt))
    if wanted.completion_at_most is not None:
        count = seen.last.completion_tokens
        found.append(_counted("completion_tokens", count, (count or 0) <= wanted.completion_at_most, f"≤ {wanted.completion_at_most}"))
    if wanted.reasoning_counted:
        found.append(judged("reasoning_counted", seen.last.reasoning_tokens is not None, "", seen.last.reasoning_tokens))
    return found


def _counted(check: str, count: int | None, good: bool, expected: object) -> Verdict:
    return Verdict(check, "skip", shown(expected)) if count is None else judged(check, good, expected, count)


def time(planned: Planned, seen: Attempt) -> list[Verdict]:
    """Seconds: a warning when it took longer, unless the case is strict about it."""
    wanted, found = planned.case.checks.time, list[Verdict]()
    if wanted is None:
        return found
    late: Outcome = "fail" if wanted.strict else "warn"
    limits = (("first_token_time", wanted.first_token_s, seen.first_token_s), ("total_time", wanted.total_s, seen.seconds))
    for check, limit, took in limits:
        if limit is not None and took is not None:
            found.append(Verdict(check, "pass" if took <= limit else late, f"≤ {limit:g} s", f"{took:.2f} s"))
    return found


def model(planned: Planned, seen: Attempt) -> list[Verdict]:
    """Of the model list."""
    wanted, found = planned.case.checks.model, list[Verdict]()
    if wanted is None:
        return found
    ids = [each.id for each in seen.models]
    if wanted.path:
        found.append(judged("model_path", any("/" in each for each in ids), "/…", ids))
    if wanted.context:
        lengths = [each.max_model_len for each in seen.models]
        found.append(judged("model_context", any(lengths), "max_model_len", lengths))
    return found


def prompt(planned: Planned, seen: Attempt) -> list[Verdict]:
    """Of the prompt that the server's template makes; cannot be seen on servers that do not render."""
    wanted, found = planned.case.checks.prompt, list[Verdict]()
    if wanted is None:
        return found
    if seen.prompt is None:
        return [Verdict("prompt", "skip")]
    got = shown(seen.prompt)
    if wanted.contains:
        missing = [part for part in wanted.contains if part not in seen.prompt]
        found.append(judged("prompt_contains", not missing, missing or wanted.contains, got))
    if wanted.excludes:
        there = [part for part in wanted.excludes if part in seen.prompt]
        found.append(judged("prompt_excludes", not there, wanted.excludes, f"{shown(there)}: {got}" if there else got))
    if wanted.ends_with is not None:
        found.append(judged("prompt_ends", seen.prompt.rstrip("\n").endswith(wanted.ends_with), wanted.ends_with, f"…{seen.prompt[-200:]}"))
    return found
