"""What one does with a finished tool conversation: go on from some round of it, ask it again, ask it without tools, ask it many times."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from kimi_demo.chats import Asking
from kimi_demo.dialect.events import Timed
from kimi_demo.dialect.failure import Failure
from kimi_demo.dialect.reply import rounds
from kimi_demo.runs.run import Run
from kimi_demo.tools.replay import before_round, with_arguments, with_result
from kimi_demo.ui.questions import question_of, role_of
from kimi_demo.ui.services import Services, ToolUse

MOST_REPEATS = 20

Cut = Callable[[Sequence[Timed]], list[Timed]]
"""A run's entries → what of them another version begins with."""


@dataclass(frozen=True)
class ToolRuns:
    """All methods take the owner, and raise Failure: runs.unknown, runs.busy, runs.too_many, and what `Cut` raises."""

    services: Services

    async def again(self, owner: str, run_id: str, cut: Cut, *, max_tokens: int | None = None) -> Run:
        """Another version of the conversation, which goes on after what `cut` leaves of this one. max_tokens: another limit."""
        run = await self._finished(owner, run_id)
        if role_of(run) != "version":
            raise Failure("runs.unknown")
        asking, use = asked_in(run)
        if max_tokens is not None:
            asking = replace(asking, sampling=asking.sampling.model_copy(update={"max_tokens": max_tokens}))
        use = replace(use, approve=use.approve or self.services.workbench.bench(owner).approve)
        before = cut(run.entries)
        started = self.services.start_tools(
            owner, run.group, asking.text, asking.sampling, thinking=asking.thinking, use=use, parent=question_of(run), before=before
        )
        self.services.desk.choose(owner, question_of(run), started.id)
        return started

    async def plain(self, owner: str, run_id: str) -> Run:
        """The same question without tools."""
        run = await self._finished(owner, run_id)
        asking, _ = asked_in(run)
        return self.services.start_plain(owner, run.group, asking, parent=question_of(run))

    async def repeat(self, owner: str, run_id: str, times: int) -> Run:
        """The same question `times` times, without asking about calls. Raises Failure: tools.repeats (limit), tools.repeat_leave."""
        if not 2 <= times <= MOST_REPEATS:
            raise Failure("tools.repeats", limit=MOST_REPEATS)
        if self.services.workbench.bench(owner).approve:
            raise Failure("tools.repeat_leave")
        run = await self._finished(owner, run_id)
        asking, use = asked_in(run)
        return self.services.start_repeat(owner, run.group, asking, use, times, parent=question_of(run))

    async def choose(self, owner: str, run_id: str) -> None:
        """Shows this version of its question."""
        run = await self.services.registry.get(run_id, owner)
        self.services.desk.choose(owner, question_of(run), run.id)

    async def _finished(self, owner: str, run_id: str) -> Run:
        """The run, when nothing is going on in its group."""
        run = await self.services.registry.get(run_id, owner)
        if run.kind != "tools" or run.asked is None or run.group is None:
            raise Failure("runs.unknown")
        # No await between this and the start of the next run: two clicks at once do not both find it idle.
        if any(going.group == run.group for going in self.services.registry.active(owner, "tools")):
            raise Failure("runs.busy")
        return run


def from_round(round: int) -> Cut:
    """Everything before that round; nothing before the first, of which a run that failed early has none."""
    return lambda entries: before_round(entries, round) if round else []


def edited(round: int, call: int, what: str, text: str) -> Cut:
    change = with_result if what == "result" else with_arguments
    return lambda entries: change(entries, round, call, text)


def asked_in(run: Run) -> tuple[Asking, ToolUse]:
    """What was asked in the run, and with which tools: those that its first request offered."""
    assert run.asked is not None
    asking = Asking.of(run.asked.text, run.asked.parameters)
    replies = rounds(run.entries)
    request: dict[str, Any] = replies[0].request if replies else {}
    names = tuple(str(each.get("function", {}).get("name")) for each in request.get("tools") or () if isinstance(each, dict))
    approve = bool(run.asked.parameters.get("approve"))
    use = ToolUse(names if replies else None, request.get("tool_choice"), request.get("parallel_tool_calls") is not False, approve)
    return asking, use
