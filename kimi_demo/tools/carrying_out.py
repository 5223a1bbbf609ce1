"""The calls of one round: checked, asked about where a person is to be asked, carried out in order."""

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kimi_demo.dialect.events import Event, ToolChecked, ToolDecided, ToolResult, ToolStarted, ToolWaiting
from kimi_demo.dialect.failure import Failure
from kimi_demo.dialect.reply import Call
from kimi_demo.tools.arguments import canonical
from kimi_demo.tools.people import Asking, Verdict, Wants
from kimi_demo.tools.toolbox import Checked, Outcome, Toolbox, cut

REPEATS = 3

Emit = Callable[[Event], None]
Seen = Counter[tuple[str, str]]
"""In how many rounds each call came: (name, arguments in canonical form)."""


def kinds(calls: Sequence[Call]) -> set[tuple[str, str]]:
    """The different calls of a round: twice in one round is no loop."""
    return {(call.name, canonical(call.arguments)) for call in calls}


@dataclass(frozen=True)
class Calls:
    """What carries calls out. round: the number of the round that they are of; asking: None where there is nobody to ask."""

    toolbox: Toolbox
    emit: Emit
    asking: Asking | None
    round: int

    async def carry_out(self, calls: Sequence[Call], ids: Sequence[str], seen: Seen) -> None:
        """Checks all calls that have no outcome yet, then carries them out in order; what comes of them is told as events.

        Raises Failure(tools.loop) after the last, when one of them has come in too many rounds.
        """
        looping: str | None = None
        open_calls = [(index, call) for index, call in enumerate(calls) if call.result is None and call.error is None]
        checks: dict[int, Checked] = {}
        for index, call in open_calls:
            checks[index] = await self.toolbox.check(call.name, call.arguments)
            self.emit(ToolChecked(index, checks[index].problems))
        for index, call in open_calls:
            if seen[call.name, canonical(call.arguments)] >= REPEATS:
                looping = call.name
                outcome = Outcome(error=f"Not carried out: the same call came in {REPEATS} rounds.")
            else:
                outcome = await self._outcome(index, checks[index])
            self.emit(ToolResult(index, ids[index], call.name, outcome.result, outcome.error, outcome.seconds))
        if looping is not None:
            raise Failure("tools.loop", name=looping, times=REPEATS)

    async def _outcome(self, index: int, checked: Checked) -> Outcome:
        """What becomes of one call: from the person whom it asks, or from its tool once it has leave."""
        if checked.problems:
            return Outcome(error=checked.error)
        asks = self.toolbox.asks(checked.name)
        if asks and self.asking is None:
            return Outcome(error="Not carried out: there is nobody here to ask.")
        if self.asking is not None and (asks or self.asking.approve):
            verdict = await self._verdict(index, "result" if asks else "approval", self.asking)
            if verdict is None:
                told = "answered" if asks else "approved it"
                return Outcome(error=f"Not carried out: nobody {told} within {self.asking.limit_s:g} seconds.")
            if verdict.decision == "refused":
                return Outcome(error=f"Not carried out: the user {'gave no answer' if asks else 'did not approve this call'}.")
            if verdict.decision == "answered":
                return Outcome(result=cut(verdict.text))
        self.emit(ToolStarted(index))
        return await self.toolbox.run(checked)

    async def _verdict(self, index: int, wants: Wants, asking: Asking) -> Verdict | None:
        """None when nobody said anything in time."""
        self.emit(ToolWaiting(index, wants, asking.limit_s))
        try:
            async with asyncio.timeout(asking.limit_s):
                verdict = await asking.ask(self.round, index, wants)
        except TimeoutError:
            self.emit(ToolDecided(index, "too_late"))
            return None
        self.emit(ToolDecided(index, verdict.decision))
        return verdict
