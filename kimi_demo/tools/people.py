"""`People`: tool calls that wait for a person, for leave to be carried out or for the result itself; and what the person says."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Literal

from kimi_demo.dialect.failure import Failure
from kimi_demo.tools.toolbox import MOST_RESULT_CHARS

Wants = Literal["approval", "result"]


@dataclass(frozen=True)
class Verdict:
    """What a person said of a call. text: the result that they typed, with "answered"."""

    decision: Literal["approved", "refused", "answered"]
    text: str = ""


@dataclass(frozen=True)
class Asking:
    """How a conversation asks a person about its calls.

    ask: (round, call, what is wanted) → the verdict; called after `ToolWaiting` went out, and cancelled after limit_s seconds.
    approve: whether every call needs leave before it is carried out.
    """

    ask: Callable[[int, int, Wants], Awaitable[Verdict]]
    limit_s: float
    approve: bool = False


@dataclass(frozen=True)
class _Waiting:
    wants: Wants
    verdict: asyncio.Future[Verdict]


class People:
    """Calls that wait, by run, round and call. Belongs to the event loop's thread. Whose run it is, the caller of `answer` checks."""

    def __init__(self) -> None:
        self._waiting: dict[tuple[str, int, int], _Waiting] = {}
        self._trusted: set[str] = set()  # runs whose calls all have leave

    async def ask(self, run_id: str, round: int, call: int, wants: Wants) -> Verdict:
        """Returns when somebody has answered, at once where leave was given for the whole run; cancel it to wait no longer."""
        if wants == "approval" and run_id in self._trusted:
            return Verdict("approved")
        key = (run_id, round, call)
        waiting = _Waiting(wants, asyncio.get_running_loop().create_future())
        self._waiting[key] = waiting
        try:
            return await waiting.verdict
        finally:
            del self._waiting[key]

    def answer(self, run_id: str, round: int, call: int, verdict: Verdict) -> None:
        """Gives the verdict on a call that waits for one of its kind (any call may be refused).

        Raises Failure: tools.not_waiting (also for a second answer), tools.answer_empty, tools.answer_too_long (characters, limit).
        """
        waiting = self._waiting.get((run_id, round, call))
        if waiting is None or waiting.verdict.done() or verdict.decision not in _FITTING[waiting.wants]:
            raise Failure("tools.not_waiting")
        if verdict.decision == "answered":
            if not verdict.text.strip():
                raise Failure("tools.answer_empty")
            if len(verdict.text) > MOST_RESULT_CHARS:
                raise Failure("tools.answer_too_long", characters=len(verdict.text), limit=MOST_RESULT_CHARS)
        waiting.verdict.set_result(verdict)

    def trust(self, run_id: str, round: int, call: int) -> None:
        """Gives leave to this call and to all that follow in its run. Raises Failure("tools.not_waiting")."""
        self.answer(run_id, round, call, Verdict("approved"))
        self._trusted.add(run_id)

    def forget(self, run_id: str) -> None:
        """The run has ended."""
        self._trusted.discard(run_id)


_FITTING = {"approval": ("approved", "refused"), "result": ("answered", "refused")}
