"""The rounds of a tool conversation, against a scripted model."""

import asyncio
import threading
from collections.abc import Sequence
from typing import Any

import pytest

from kimi_demo.dialect.conversation import user
from kimi_demo.dialect.events import Event, Finished, Phase, RoundStarted, ThoughtDelta, Timed, ToolCallDelta, ToolResult
from kimi_demo.dialect.failure import Failure
from kimi_demo.dialect.reply import rounds
from kimi_demo.dialect.sampling import PRESETS
from kimi_demo.tools.guide import GUIDE_TOOLS
from kimi_demo.tools.rounds import converse
from kimi_demo.tools.tool import Arguments, Tool
from kimi_demo.tools.toolbox import Toolbox
from tests.tools.scripted_port import ScriptedPort, calls, says

ADD = ("functions.add:0", "add", {"a": 2, "b": 3})


async def converse_with(port: ScriptedPort, events: list[Event] | None = None, **more: Any) -> list[Event]:
    found: list[Event] = [] if events is None else events
    given: dict[str, Any] = {"messages": [user("?")], "toolbox": Toolbox(GUIDE_TOOLS), "sampling": PRESETS["tools"].sampling, **more}
    await converse(port, thinking=True, emit=found.append, **given)
    return found


def results(events: Sequence[Event]) -> list[ToolResult]:
    return [event for event in events if isinstance(event, ToolResult)]


def phases(events: Sequence[Event]) -> list[str]:
    return [event.name for event in events if isinstance(event, Phase)]


async def fails(port: ScriptedPort, **more: Any) -> tuple[Failure, list[Event]]:
    events: list[Event] = []
    with pytest.raises(Failure) as raised:
        await converse_with(port, events, **more)
    return raised.value, events


async def test_an_answer_without_calls_is_one_round() -> None:
    port = ScriptedPort([says("Hello.", thought="Easy.")])
    events = await converse_with(port)
    assert [event.type for event in events] == ["round_started", "thought_delta", "answer_delta", "finished"]
    assert port.closed == [0]


async def test_results_go_back_with_reasoning_and_ids_as_the_model_wrote_them() -> None:
    port = ScriptedPort([calls(ADD, thought="I add."), says("5")])
    events = await converse_with(port)
    assert [(r.index, r.id, r.name, r.result, r.error) for r in results(events)] == [(0, "functions.add:0", "add", "5", None)]
    assert list(port.asked[1].messages) == [
        user("?"),
        {
            "role": "assistant",
            "content": None,
            "reasoning": "I add.",
            "tool_calls": [{"id": "functions.add:0", "type": "function", "function": {"name": "add", "arguments": '{"a": 2, "b": 3}'}}],
        },
        {"role": "tool", "tool_call_id": "functions.add:0", "content": "5"},
    ]
    assert port.asked[1].tools == Toolbox(GUIDE_TOOLS).schemas()


async def test_each_request_is_a_round_that_holds_its_body() -> None:
    port = ScriptedPort([calls(ADD), says("5")])
    started = [event for event in await converse_with(port) if isinstance(event, RoundStarted)]
    assert [event.index for event in started] == [0, 1]
    assert [len(event.request["messages"]) for event in started] == [1, 3]


async def test_several_calls_are_carried_out_in_order() -> None:
    port = ScriptedPort([calls(ADD, ("functions.mul:1", "mul", {"a": 4, "b": 5})), says("5 and 20")])
    events = await converse_with(port)
    assert [(r.index, r.id, r.result) for r in results(events)] == [(0, "functions.add:0", "5"), (1, "functions.mul:1", "20")]
    assert [message.get("tool_call_id") for message in port.asked[1].messages] == [None, None, "functions.add:0", "functions.mul:1"]


async def test_errors_go_back_to_the_model_and_it_may_try_again() -> None:
    wrong = ("functions.add:0", "add", {"a": "2", "b": 3})
    port = ScriptedPort([calls(wrong, ("functions.sub:1", "sub", {})), calls(("functions.add:2", *ADD[1:])), says("5")])
    events = await converse_with(port)
    first, second, third = results(events)
    assert first.error is not None and first.error.splitlines()[1] == 'a: must be an integer (got "2")'
    assert second.error == 'There is no tool named "sub". Tools: add, mul, compare, count_letter_in_string.'
    assert third.result == "5"
    assert [message["content"] for message in port.asked[1].messages if message["role"] == "tool"] == [first.error, second.error]


@pytest.mark.parametrize("raw", ['{"a": 2, "b"', "[2, 3]", "2", "", '{"a": 1'])
async def test_arguments_that_are_no_object_go_back_as_an_empty_one(raw: str) -> None:
    # Other servers refuse every later request of a conversation that holds them.
    port = ScriptedPort([calls(("functions.add:0", "add", raw)), says("Sorry.")])
    events = await converse_with(port)
    assert results(events)[0].error
    sent = port.asked[1].messages[1]["tool_calls"][0]["function"]["arguments"]
    assert sent == "{}"
    assert rounds([Timed(0, event) for event in events])[0].calls[0].arguments == raw


async def test_missing_ids_are_counted_over_the_whole_conversation() -> None:
    earlier = {"role": "assistant", "tool_calls": [{"id": "functions.add:0"}, {"id": "functions.add:1"}]}
    port = ScriptedPort(
        [calls(("", "add", {"a": 1, "b": 1}), ("", "mul", {"a": 1, "b": 2})), calls(("", "add", {"a": 2, "b": 2})), says("ok")]
    )
    events = await converse_with(port, messages=[user("?"), earlier])
    expected = ["functions.add:2", "functions.mul:3", "functions.add:4"]
    assert [r.id for r in results(events)] == expected
    replies = rounds([Timed(0, event) for event in events])
    assert [call.id for reply in replies for call in reply.calls] == expected
    assert [m["tool_call_id"] for m in port.asked[2].messages if m["role"] == "tool"] == expected


async def test_equal_ids_in_a_round_are_told_apart_only_in_what_is_sent() -> None:
    twin = ("functions.add:0", "add", {"a": 1, "b": 1})
    port = ScriptedPort([calls(twin, twin[:2] + ({"a": 2, "b": 2},)), says("ok")])
    events = await converse_with(port)
    assert [call["id"] for call in port.asked[1].messages[1]["tool_calls"]] == ["functions.add:0", "functions.add:1"]
    assert [m["content"] for m in port.asked[1].messages if m.get("tool_call_id") == "functions.add:1"] == ["4"]
    assert [call.id for call in rounds([Timed(0, event) for event in events])[0].calls] == ["functions.add:0"] * 2


async def test_foreign_ids_stay_as_they_are_over_several_rounds() -> None:
    port = ScriptedPort([calls(("call_abc", *ADD[1:])), calls(("call_abc", "mul", {"a": 1, "b": 1})), says("ok")])
    await converse_with(port)
    assert [m["tool_call_id"] for m in port.asked[2].messages if m["role"] == "tool"] == ["call_abc", "call_abc"]


@pytest.mark.parametrize(
    "empty", [[Finished("tool_calls")], [ToolCallDelta(0), Finished("tool_calls")], [ToolCallDelta(0), Finished("stop")]]
)
async def test_announced_calls_that_did_not_come_are_asked_for_once_more_in_one_piece(empty: list[Event]) -> None:
    port = ScriptedPort([[ThoughtDelta("hm"), *empty], calls(ADD), says("5")])
    events = await converse_with(port)
    assert port.unstreamed == [1]
    assert phases(events) == ["tools.asked_again"]
    assert results(events)[0].result == "5"
    assert list(port.asked[1].messages) == [user("?")]
    bodies = [event.request for event in events if isinstance(event, RoundStarted)]
    assert [body["stream"] for body in bodies] == [True, False, True]
    assert "stream_options" not in bodies[1]


async def test_it_is_asked_again_only_once() -> None:
    failure, events = await fails(ScriptedPort([[Finished("tool_calls")], [Finished("tool_calls")]]))
    assert failure.code == "tools.no_call"
    assert phases(events) == ["tools.asked_again"]


async def test_a_turn_with_nothing_in_it_is_named() -> None:
    failure, _ = await fails(ScriptedPort([[ThoughtDelta("I call a tool."), Finished("stop")]]))
    assert failure.code == "tools.empty_turn"


async def test_a_thought_that_used_up_the_tokens_is_no_failure_of_the_tools() -> None:
    events = await converse_with(ScriptedPort([[ThoughtDelta("and then"), Finished("length")]]))
    assert rounds([Timed(0, event) for event in events])[0].cut_off_in_thought


async def test_a_call_that_was_cut_off_is_shown_and_not_carried_out() -> None:
    carried_out: list[object] = []
    port = ScriptedPort([calls(ADD, ("functions.add:1", "add", '{"a": 2'), reason="length")])
    failure, events = await fails(port, toolbox=Toolbox([recording(carried_out)]))
    assert (failure.code, failure.params) == ("tools.cut_off", {"limit": "4096"})
    assert [(r.index, r.result is None, "4096" in (r.error or "")) for r in results(events)] == [(0, True, True), (1, True, True)]
    assert carried_out == []


async def test_the_same_call_in_a_third_round_ends_the_conversation() -> None:
    carried_out: list[object] = []
    same = [calls((f"functions.add:{i}", "add", raw)) for i, raw in enumerate(('{"a":1,"b":2}', '{"b": 2, "a": 1}', '{"a": 1, "b": 2}'))]
    failure, events = await fails(ScriptedPort(same), toolbox=Toolbox([recording(carried_out)]))
    assert (failure.code, failure.params) == ("tools.loop", {"name": "add", "times": "3"})
    assert len(carried_out) == 2
    assert len(results(events)) == 3 and results(events)[2].error


async def test_three_equal_calls_in_one_round_and_other_arguments_are_no_loop() -> None:
    same = [(f"functions.add:{i}", "add", {"a": 1, "b": 2}) for i in range(3)]
    others = [calls((f"functions.add:{i}", "add", {"a": 1, "b": i})) for i in range(3, 6)]
    events = await converse_with(ScriptedPort([calls(*same), *others, says("ok")]))
    assert [r.result for r in results(events)] == ["3", "3", "3", "4", "5", "6"]


async def test_the_last_round_allowed_is_shown_before_the_conversation_ends() -> None:
    port = ScriptedPort([calls((f"functions.add:{i}", "add", {"a": i, "b": 1})) for i in range(3)])
    failure, events = await fails(port, max_rounds=3)
    assert (failure.code, failure.params) == ("tools.max_rounds", {"limit": "3"})
    assert [r.result for r in results(events)] == ["1", "2", "3"]
    assert len(port.asked) == 3


@pytest.mark.parametrize(
    "reply",
    [says("<|tool_calls_section_begin|><|tool_call_begin|>functions.add:0"), says("Done.", thought="I do <|tool_call_begin|>add")],
)
async def test_leaked_marks_are_flagged_and_the_text_stays(reply: list[Event]) -> None:
    events = await converse_with(ScriptedPort([reply]))
    assert phases(events) == ["tools.marks_leaked"]
    assert all(event in events for event in reply)


async def test_a_forced_call_is_forced_until_it_was_made() -> None:
    port = ScriptedPort([[Finished("tool_calls")], calls(ADD), says("5")])
    await converse_with(port, tool_choice="required")
    assert [request.tool_choice for request in port.asked] == ["required", "required", "auto"]


@pytest.mark.parametrize("choice", ["none", "auto", None])
async def test_other_choices_hold_throughout(choice: str | None) -> None:
    port = ScriptedPort([calls(ADD), says("5")])
    await converse_with(port, tool_choice=choice)
    assert [request.tool_choice for request in port.asked] == [choice, choice]


async def test_a_failure_of_the_port_passes_through() -> None:
    class Refusing(ScriptedPort):
        def body(self, request: object) -> dict[str, object]:
            raise Failure("endpoint.refused", url="http://localhost")

    failure, _ = await fails(Refusing([]))
    assert failure.code == "endpoint.refused"


async def test_cancelling_closes_the_stream_at_once() -> None:
    port = ScriptedPort([[ThoughtDelta("hm")]], hang=True)
    task = asyncio.create_task(converse_with(port))
    await port.hanging.wait()
    assert port.closed == []
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert port.closed == [0]


async def test_the_stream_is_closed_when_its_events_cannot_be_taken() -> None:
    def full(event: Event) -> None:
        if isinstance(event, ThoughtDelta):
            raise MemoryError

    port = ScriptedPort([[ThoughtDelta("hm"), ThoughtDelta("hm")]])
    with pytest.raises(MemoryError):
        await converse(port, [user("?")], Toolbox(GUIDE_TOOLS), PRESETS["tools"].sampling, thinking=True, emit=full)
    assert port.closed == [0]


async def test_cancelling_during_a_tool_does_not_wait_for_it() -> None:
    entered, release = threading.Event(), threading.Event()

    def slow(arguments: Arguments) -> str:
        entered.set()
        release.wait(60)
        return "late"

    port = ScriptedPort([calls(("functions.slow:0", "slow", {}))])
    events: list[Event] = []
    task = asyncio.create_task(converse_with(port, events, toolbox=Toolbox([Tool("slow", "Waits.", Arguments, slow)], limit_s=60)))
    assert await asyncio.to_thread(entered.wait, 30)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(task, 30)  # the tool itself is let go only below
    release.set()
    assert results(events) == []


def recording(calls: list[object]) -> Tool:
    """`add`, which remembers being called."""
    add = GUIDE_TOOLS[0]

    def function(arguments: Any) -> str:
        calls.append(arguments)
        return add.function(arguments)

    return Tool(add.name, add.description, add.arguments, function)
