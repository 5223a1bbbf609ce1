"""Ask all questions and count: first the calls, then the final answers with the tools' own results."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from kimi_demo.engines.rehearsal.evaluation import scoring
from kimi_demo.engines.rehearsal.evaluation.cases import Case
from kimi_demo.engines.rehearsal.evaluation.scoring import Reply


@dataclass(frozen=True)
class Request:
    """One chat completion, greedy. messages: OpenAI's shape."""

    messages: Sequence[Mapping[str, Any]]
    tools: Sequence[Mapping[str, Any]]
    thinking: bool


class Speaker(Protocol):
    """Something that answers requests, many at once; replies come in the requests' order."""

    def replies(self, requests: Sequence[Request]) -> list[Reply]: ...


@dataclass
class Figure:
    """n: judged; ok: right; wrong: the question and why, for those that were not."""

    n: int = 0
    ok: int = 0
    wrong: list[str] = field(default_factory=list)

    def add(self, question: str, reason: str) -> None:
        self.n += 1
        if reason:
            self.wrong.append(f"{question} => {reason}")
        else:
            self.ok += 1


@dataclass(frozen=True)
class Outcome:
    """figures: by key (tool_call, two_calls, final_agrees, well_formed, unseen_schema, no_tool, identity, error, declines, knows,
    guide_plain, plain_count, plain_compare)."""

    figures: Mapping[str, Figure]
    seconds: float


def evaluate(cases: Sequence[Case], speaker: Speaker, say: Callable[[str], None]) -> Outcome:
    """Raises whatever `speaker` raises."""
    start = time.monotonic()
    figures: dict[str, Figure] = {}

    def count(key: str, question: str, reason: str) -> None:
        figures.setdefault(key, Figure()).add(question, reason)

    first = speaker.replies([Request([_user(case)], case.tools, case.thinking) for case in cases])
    say(f"{len(first)} first replies after {time.monotonic() - start:.0f} s")
    followed: list[tuple[Case, Request]] = []
    for case, reply in zip(cases, first, strict=True):
        count("well_formed", case.question, scoring.malformed(reply, case.thinking))
        reason = _first(case, reply)
        if case.kind != "error":
            count(case.kind, case.question, reason)
        if case.calls and case.tasks and not reason:
            followed.append((case, _with_results(case, reply)))
    final = speaker.replies([request for _, request in followed])
    for (case, _), reply in zip(followed, final, strict=True):
        count("well_formed", case.question, scoring.malformed(reply, case.thinking))
        if case.tool_error:
            count("error", case.question, "called again" if reply.calls else scoring.hides_error(reply.content))
            continue
        for task in case.tasks:
            count("final_agrees", case.question, "called again" if reply.calls else scoring.wrong_answer(task, reply.content))
    return Outcome(figures, time.monotonic() - start)


def _first(case: Case, reply: Reply) -> str:
    if case.kind == "declines":
        return "called a tool" if reply.calls else scoring.invents(reply.content)
    if case.kind == "knows":
        return "called a tool" if reply.calls else "" if reply.content.startswith(case.answer) else reply.content
    if case.kind == "identity":
        return "called a tool" if reply.calls else scoring.claims_another(reply.content)
    if case.kind in ("guide_plain", "plain_count", "plain_compare"):
        return "called a tool" if reply.calls else scoring.wrong_answer(case.tasks[0], reply.content)
    if case.kind == "no_tool":
        return f"called {reply.calls[0].name}" if reply.calls else ""
    return scoring.wrong_calls(reply.calls, case.calls)


def _with_results(case: Case, reply: Reply) -> Request:
    """The running tool loop: the assistant's message goes back with its reasoning and its ids."""
    assistant = {
        "role": "assistant",
        "content": reply.content,
        "reasoning": reply.reasoning,
        "tool_calls": [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}} for call in reply.calls
        ],
    }
    tools = []
    for call in reply.calls:
        task = next(task for task, wanted in zip(case.tasks, case.calls, strict=True) if not scoring.wrong_calls([call], [wanted]))
        tools.append({"role": "tool", "tool_call_id": call.id, "content": case.tool_error or task.result_for(call.arguments)})
    return Request([_user(case), assistant, *tools], case.tools, case.thinking)


def _user(case: Case) -> dict[str, Any]:
    return {"role": "user", "content": case.question}
