"""Calls that wait for a person: who is asked, what may be said, and what becomes of it."""

import asyncio
from typing import Any

import pytest

from kimi_demo.dialect.conversation import user
from kimi_demo.dialect.events import Event, Timed, ToolDecided, ToolResult, ToolStarted, ToolWaiting
from kimi_demo.dialect.failure import Failure
from kimi_demo.dialect.reply import rounds
from kimi_demo.dialect.sampling import PRESETS
from kimi_demo.tools.guide import GUIDE_TOOLS, Pair
from kimi_demo.tools.people import Asking, People, Verdict, Wants
from kimi_demo.tools.rounds import converse
from kimi_demo.tools.tool import Tool
from kimi_demo.tools.toolbox import MOST_RESULT_CHARS, Toolbox
from tests.tools.scripted_port import ScriptedPort, calls, says

ADD = ("functions.add:0", "add", {"a": 2, "b": 3})
ASKED = Tool("weigh", "A person weighs two things.", Pair, lambda arguments: "never", asks=True)
WEIGH = ("functions.weigh:0", "weigh", {"a": 1, "b": 2})


class Talk:
    """A conversation under way, and the people who may say something in it."""

    def __init__(self, port: ScriptedPort, *, approve: bool = False, limit_s: float = 60.0, anybody: bool = True) -> None:
        self.people, self.port = People(), port
        self.events: list[Event] = []
        self.waiting = asyncio.Event()

        async def ask(round: int, call: int, wants: Wants) -> Verdict:
            return await self.people.ask("run", round, call, wants)

        asking = Asking(ask, limit_s, approve) if anybody else None
        sampling, toolbox = PRESETS["tools"].sampling, Toolbox([*GUIDE_TOOLS, ASKED], limit_s=60)
        self.task = asyncio.create_task(
            converse(port, [user("?")], toolbox, sampling, thinking=True, emit=self.take, max_rounds=8, asking=asking)
        )

    def take(self, event: Event) -> None:
        self.events.append(event)
        if isinstance(event, ToolWaiting):
            self.waiting.set()

    async def until_it_waits(self) -> None:
        await asyncio.wait_for(self.waiting.wait(), 30)
        self.waiting.clear()
        await asyncio.sleep(0)  # it asks in the step after it has said so

    def found(self, kind: type[Any]) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]


async def test_a_call_is_carried_out_once_it_is_approved() -> None:
    talk = Talk(ScriptedPort([calls(ADD), says("5")]), approve=True)
    await talk.until_it_waits()
    assert talk.found(ToolWaiting) == [ToolWaiting(0, "approval", 60.0)]
    assert talk.found(ToolStarted) == []
    call = rounds([Timed(0, event) for event in talk.events])[0].calls[0]
    assert call.waiting is not None and call.problems == () and call.result is None
    talk.people.answer("run", 0, 0, Verdict("approved"))
    await talk.task
    assert [event.result for event in talk.found(ToolResult)] == ["5"]
    assert talk.found(ToolDecided) == [ToolDecided(0, "approved")]


async def test_a_refused_call_is_not_carried_out_and_the_model_is_told() -> None:
    talk = Talk(ScriptedPort([calls(ADD), says("ok")]), approve=True)
    await talk.until_it_waits()
    talk.people.answer("run", 0, 0, Verdict("refused"))
    await talk.task
    told = "Not carried out: the user did not approve this call."
    assert [event.error for event in talk.found(ToolResult)] == [told]
    assert talk.port.asked[1].messages[-1]["content"] == told
    assert talk.found(ToolStarted) == []


async def test_each_call_is_asked_about() -> None:
    talk = Talk(ScriptedPort([calls(ADD, ("functions.mul:1", "mul", {"a": 2, "b": 3})), says("ok")]), approve=True)
    await talk.until_it_waits()
    talk.people.answer("run", 0, 0, Verdict("refused"))
    await talk.until_it_waits()
    talk.people.answer("run", 0, 1, Verdict("approved"))
    await talk.task
    assert [event.result for event in talk.found(ToolResult)] == [None, "6"]


async def test_leave_for_the_whole_run_is_asked_for_once() -> None:
    talk = Talk(ScriptedPort([calls(ADD, ("functions.mul:1", "mul", {"a": 2, "b": 3})), calls(WEIGH), says("ok")]), approve=True)
    await talk.until_it_waits()
    talk.people.trust("run", 0, 0)
    while not any(event.wants == "result" for event in talk.found(ToolWaiting)):  # what only a person knows is asked for all the same
        await talk.until_it_waits()
    talk.people.answer("run", 1, 0, Verdict("answered", "x"))
    await talk.task
    assert [event.result for event in talk.found(ToolResult)] == ["5", "6", "x"]
    talk.people.forget("run")
    asked = asyncio.ensure_future(talk.people.ask("run", 0, 0, "approval"))
    await asyncio.sleep(0)
    assert not asked.done()
    asked.cancel()


async def test_nobody_is_asked_about_a_call_that_cannot_be_carried_out() -> None:
    talk = Talk(ScriptedPort([calls(("functions.add:0", "add", {"a": 1})), says("ok")]), approve=True)
    await talk.task
    assert talk.found(ToolWaiting) == [] and talk.found(ToolResult)[0].error.splitlines()[1] == "b: is missing"


async def test_the_result_of_a_tool_that_asks_is_typed() -> None:
    talk = Talk(ScriptedPort([calls(WEIGH), says("ok")]))
    await talk.until_it_waits()
    assert talk.found(ToolWaiting)[0].wants == "result"
    talk.people.answer("run", 0, 0, Verdict("answered", "The first is heavier.\ud800"))
    await talk.task
    assert talk.port.asked[1].messages[-1]["content"] == "The first is heavier.?"
    assert talk.found(ToolResult)[0].result == "The first is heavier.?"


async def test_nobody_says_anything_in_time() -> None:
    talk = Talk(ScriptedPort([calls(WEIGH), says("ok")]), limit_s=0.01)
    await asyncio.wait_for(talk.task, 30)
    assert talk.found(ToolDecided) == [ToolDecided(0, "too_late")]
    assert talk.found(ToolResult)[0].error == "Not carried out: nobody answered within 0.01 seconds."
    with pytest.raises(Failure, match="tools.not_waiting"):
        talk.people.answer("run", 0, 0, Verdict("answered", "late"))


async def test_where_there_is_nobody_to_ask() -> None:
    talk = Talk(ScriptedPort([calls(WEIGH), says("ok")]), anybody=False)
    await talk.task
    assert talk.found(ToolResult)[0].error == "Not carried out: there is nobody here to ask."


async def test_stopping_ends_the_waiting() -> None:
    talk = Talk(ScriptedPort([calls(ADD)]), approve=True)
    await talk.until_it_waits()
    talk.task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await talk.task
    with pytest.raises(Failure, match="tools.not_waiting"):
        talk.people.answer("run", 0, 0, Verdict("approved"))


@pytest.mark.parametrize(
    ("place", "verdict", "code"),
    [
        (("run", 0, 0), Verdict("approved"), "tools.not_waiting"),  # a result is wanted
        (("run", 0, 1), Verdict("answered", "x"), "tools.not_waiting"),
        (("run", 1, 0), Verdict("answered", "x"), "tools.not_waiting"),
        (("other", 0, 0), Verdict("answered", "x"), "tools.not_waiting"),
        (("run", 0, 0), Verdict("answered", " \n"), "tools.answer_empty"),
        (("run", 0, 0), Verdict("answered", "x" * (MOST_RESULT_CHARS + 1)), "tools.answer_too_long"),
    ],
)
async def test_what_does_not_fit_is_refused_and_the_call_goes_on_waiting(place: tuple[str, int, int], verdict: Verdict, code: str) -> None:
    talk = Talk(ScriptedPort([calls(WEIGH), says("ok")]))
    await talk.until_it_waits()
    with pytest.raises(Failure, match=code):
        talk.people.answer(*place, verdict)
    talk.people.answer("run", 0, 0, Verdict("answered", "y"))
    with pytest.raises(Failure, match="tools.not_waiting"):  # in the moment before the run goes on as well
        talk.people.answer("run", 0, 0, Verdict("answered", "z"))
    await talk.task
    assert talk.found(ToolResult)[0].result == "y"
