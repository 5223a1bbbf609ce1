"""Checks that hold several attempts at a case together. Pure."""

from collections.abc import Callable, Sequence

from kimi_demo.qa.attempt import Attempt, RoundSeen
from kimi_demo.qa.case import Planned
from kimi_demo.qa.verdict import Verdict, judged, shown
from kimi_demo.tools.arguments import canonical

Part = Callable[[Attempt], object]


def same_structure(planned: Planned, attempts: Sequence[Attempt]) -> list[Verdict]:
    """Whether the streamed and the unstreamed reply of each repeat are built alike: as many rounds, each with or without thought, answer
    and the same calls, and ended for the same reason."""
    return _pairs(planned.case.checks.same_structure, "same_structure", attempts, lambda seen: [_structure(r) for r in seen.rounds])


def same_text(planned: Planned, attempts: Sequence[Attempt]) -> list[Verdict]:
    """Whether they read alike: a warning where not, since a server that computes several at once may round differently."""
    found = _pairs(planned.case.checks.same_text, "same_text", attempts, lambda seen: [(r.thought, r.answer) for r in seen.rounds])
    return [Verdict(v.check, "warn", v.expected, v.got) if v.outcome == "fail" else v for v in found]


def same_tool(planned: Planned, attempts: Sequence[Attempt]) -> list[Verdict]:
    """Whether every repeat called the same tools with the same arguments."""
    if not planned.case.checks.same_tool:
        return []
    made = [sorted((call.name, canonical(call.arguments)) for call in seen.calls) for seen in attempts if seen.failure is None]
    if len(made) < 2:
        return [Verdict("same_tool", "skip")]
    other = next((each for each in made if each != made[0]), None)
    return [judged("same_tool", other is None, _told(made[0]), _told(made[0] if other is None else other))]


def _pairs(asked: bool, check: str, attempts: Sequence[Attempt], part: Part) -> list[Verdict]:
    if not asked:
        return []
    found: list[Verdict] = []
    for number in sorted({seen.number for seen in attempts}):
        streamed = next((seen for seen in attempts if seen.number == number and seen.streamed), None)
        whole = next((seen for seen in attempts if seen.number == number and not seen.streamed), None)
        if streamed is None or whole is None or streamed.failure or whole.failure:
            found.append(Verdict(check, "skip"))  # that it failed is said by `answered`
            continue
        first, second = part(streamed), part(whole)
        found.append(judged(check, first == second, shown(str(first)), shown(str(second))))
    return found


def _structure(seen: RoundSeen) -> dict[str, object]:
    return {
        "thought": bool(seen.thought.strip()),
        "answer": bool(seen.answer.strip()),
        "calls": [(call.name, canonical(call.arguments)) for call in seen.calls],
        "finish_reason": seen.finish_reason,
    }


def _told(made: Sequence[tuple[str, str]]) -> str:
    return "; ".join(f"{name}({arguments})" for name, arguments in made) or "no call"
