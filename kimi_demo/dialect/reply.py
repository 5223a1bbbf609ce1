"""`Reply`: one round's events reduced to what is shown of it. And the split at `</think>` for text that no server parsed."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from kimi_demo.dialect.events import (
    AnswerDelta,
    CarriedOver,
    Finished,
    Problem,
    RoundStarted,
    ThoughtDelta,
    Timed,
    ToolCallDelta,
    ToolChecked,
    ToolDecided,
    ToolEdited,
    ToolResult,
    ToolStarted,
    ToolWaiting,
    Usage,
)

THOUGHT_END = "</think>"


@dataclass
class Call:
    """A tool call as it stands: `arguments` is the raw JSON text so far; result and error are None until it has run.

    problems: what is wrong with the arguments, None until they were checked. waiting: what it waits for from a person, at the moment;
    waiting_since, started_at: seconds after the run's start. decision: a person's, as ToolDecided has it. edited: what of it a person
    has changed: "arguments", "result".
    """

    id: str = ""
    name: str = ""
    arguments: str = ""
    result: str | None = None
    error: str | None = None
    seconds: float | None = None
    problems: tuple[Problem, ...] | None = None
    waiting: ToolWaiting | None = None
    waiting_since: float | None = None
    decision: str | None = None
    started_at: float | None = None
    edited: frozenset[str] = frozenset()


@dataclass
class Reply:
    """One round of a run. Times are seconds after the run's start; None where it has not happened (yet).

    request: the body that was sent, as `RoundStarted` has it.
    context, can_continue: as RoundStarted has them.
    text_after_calls: whether the reply went on with text after its calls.
    carried: what an earlier run had written of it; its text is part of `thought` and `answer`, its tokens are not part of `usage`.
    """

    thought: str = ""
    answer: str = ""
    calls: list[Call] = field(default_factory=list)
    finish_reason: str | None = None
    usage: Usage | None = None
    request: dict[str, Any] = field(default_factory=dict)
    started_at: float | None = None
    first_token_at: float | None = None
    first_answer_at: float | None = None
    thought_ended_at: float | None = None
    last_token_at: float | None = None
    carried: CarriedOver | None = None
    context: int | None = None
    can_continue: bool = False
    text_after_calls: bool = False

    def add(self, timed: Timed) -> None:
        """Takes the next event in. Events that are not of a reply (phases, rows, …) change nothing."""
        at, event = timed.at, timed.event
        match event:
            case RoundStarted(request=request):
                self.started_at, self.request = at, request
                self.context, self.can_continue = event.context, event.can_continue
            case CarriedOver(thought=thought, answer=answer):
                self.carried = event
                self.thought, self.answer = thought, answer
            case ThoughtDelta(text=text):
                self._token(at)
                self.thought += text
                self.thought_ended_at = at
            case AnswerDelta(text=text):
                self._token(at)
                if self.first_answer_at is None and text.strip():
                    self.first_answer_at = at
                self.answer += text
                self.text_after_calls = self.text_after_calls or (bool(self.calls) and bool(text.strip()))
            case ToolCallDelta():
                self._token(at)
                self._call_delta(event)
            case ToolChecked() | ToolWaiting() | ToolDecided() | ToolStarted() | ToolEdited() | ToolResult() if event.index < len(
                self.calls
            ):
                _call_event(self.calls[event.index], at, event)
            case Usage():
                self.usage = event
            case Finished(reason=reason):
                self.finish_reason = reason
            case _:
                pass

    def _token(self, at: float) -> None:
        if self.first_token_at is None:
            self.first_token_at = at
        self.last_token_at = at

    def _call_delta(self, delta: ToolCallDelta) -> None:
        while len(self.calls) <= delta.index:
            self.calls.append(Call())
        call = self.calls[delta.index]
        call.id += delta.id
        call.name += delta.name
        call.arguments += delta.arguments

    @property
    def max_tokens(self) -> int | None:
        """The limit that was sent."""
        limit = self.request.get("max_tokens")
        return limit if isinstance(limit, int) else None

    @property
    def budget(self) -> bool:
        """Whether the server was asked to limit the thought."""
        return self.request.get("thinking_token_budget") is not None

    @property
    def cut_off_in_thought(self) -> bool:
        """The token limit was spent on thinking: finish reason `length` and no answer, no call."""
        return self.finish_reason == "length" and not self.answer.strip() and not self.calls

    @property
    def thinking_seconds(self) -> float | None:
        """From the request to the end of the thought (so far), an earlier run's thinking included; None when nothing was thought."""
        before = self.carried.thinking_seconds if self.carried is not None else None
        if self.thought_ended_at is None:
            return before
        return self.thought_ended_at - (self.started_at or 0.0) + (before or 0.0)


def _call_event(call: Call, at: float, event: ToolChecked | ToolWaiting | ToolDecided | ToolStarted | ToolEdited | ToolResult) -> None:
    match event:
        case ToolChecked(problems=problems):
            call.problems = problems
        case ToolWaiting():
            call.waiting, call.waiting_since = event, at
        case ToolDecided(decision=decision):
            call.waiting, call.decision = None, decision
        case ToolStarted():
            call.started_at = at
        case ToolEdited(what=what):
            call.edited |= {what}
        case ToolResult():
            call.waiting = None
            call.result, call.error, call.seconds = event.result, event.error, event.seconds


def rounds(timed: Iterable[Timed]) -> list[Reply]:
    """The rounds of a run, in order: a new `Reply` at each `RoundStarted`."""
    replies: list[Reply] = []
    for item in timed:
        if isinstance(item.event, RoundStarted):
            replies.append(Reply())
        if replies:
            replies[-1].add(item)
    return replies


def split_thought(text: str, *, thinking: bool) -> tuple[str | None, str]:
    """(reasoning, answer) of a completion that no reasoning parser has split.

    The prompt already opened `<think>` when `thinking`; then text without `</think>` is all thought (the model was cut off).
    With thinking off, reasoning is None. Only the first mark splits: a later one belongs to the answer and is shown for what it is.
    """
    head, mark, tail = text.partition(THOUGHT_END)
    if not thinking:
        return (head.removeprefix("<think>") or None, tail.lstrip("\n")) if mark else (None, text)
    head = head.removeprefix("<think>")
    return (head, tail.lstrip("\n")) if mark else (head, "")
