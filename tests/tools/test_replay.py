"""Going on from a finished tool conversation: what another version begins with, and what the model is then sent."""

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kimi_demo.dialect.conversation import user
from kimi_demo.dialect.events import (
    Asked,
    Ended,
    Event,
    Failed,
    Phase,
    RoundStarted,
    ThoughtDelta,
    Timed,
    ToolCallDelta,
    ToolEdited,
    ToolResult,
    ToolWaiting,
)
from kimi_demo.dialect.failure import Failure
from kimi_demo.dialect.reply import rounds
from kimi_demo.dialect.sampling import PRESETS
from kimi_demo.tools.guide import GUIDE_TOOLS
from kimi_demo.tools.replay import all_rounds, before_round, may_go_on, with_arguments, with_result
from kimi_demo.tools.rounds import converse
from kimi_demo.tools.toolbox import Toolbox
from tests.tools.scripted_port import ScriptedPort, calls, says

ADD = ("functions.add:0", "add", {"a": 2, "b": 3})
MUL = ("functions.mul:1", "mul", {"a": 4, "b": 5})


async def had(*replies: list[Event], max_rounds: int = 8) -> list[Timed]:
    """A conversation as a run keeps it, an event a second."""
    events: list[Event] = [Asked("?"), Phase("connecting")]
    try:
        await again(ScriptedPort(replies), events, max_rounds=max_rounds)
        events.append(Ended("done"))
    except Failure as failure:
        events += [Failed(failure.code, failure.params), Ended("failed")]
    return [Timed(float(at), event) for at, event in enumerate(events)]


async def again(port: ScriptedPort, events: list[Event], before: Sequence[Timed] = (), **more: Any) -> None:
    sampling, toolbox = PRESETS["tools"].sampling, Toolbox(GUIDE_TOOLS, limit_s=60)
    await converse(port, [user("?")], toolbox, sampling, thinking=True, emit=events.append, before=rounds(before), **more)


def answers(port: ScriptedPort, request: int = 0) -> list[tuple[str, str]]:
    return [(m["tool_call_id"], m["content"]) for m in port.asked[request].messages if m["role"] == "tool"]


async def test_an_edited_result_is_what_the_model_gets() -> None:
    run = await had(calls(ADD, MUL, thought="Two."), says("5 and 20"))
    before = with_result(run, 0, 0, "6")
    assert [event.event for event in before if isinstance(event.event, ToolEdited)] == [ToolEdited(0, "result")]
    assert before[0].event.type == "round_started" and not any(isinstance(each.event, Asked | Ended) for each in before)
    port, events = ScriptedPort([says("6 and 20")]), list[Event]()
    await again(port, events, before)
    assert answers(port) == [("functions.add:0", "6"), ("functions.mul:1", "20")]
    assert port.asked[0].messages[1]["reasoning"] == "Two."
    assert [event.index for event in events if isinstance(event, RoundStarted)] == [1]
    call = rounds(before)[0].calls[0]
    assert (call.result, call.error, call.edited) == ("6", None, frozenset({"result"}))


async def test_edited_arguments_are_carried_out_and_the_other_calls_are_not_again() -> None:
    run = await had(calls(ADD, MUL), says("5 and 20"))
    before = with_arguments(run, 0, 0, '{"a": 20, "b": 30}')
    port, events = ScriptedPort([says("50 and 20")]), list[Event]()
    await again(port, events, before)
    assert [(event.index, event.result) for event in events if isinstance(event, ToolResult)] == [(0, "50")]
    assert answers(port) == [("functions.add:0", "50"), ("functions.mul:1", "20")]
    assert port.asked[0].messages[1]["tool_calls"][0]["function"]["arguments"] == '{"a": 20, "b": 30}'


async def test_what_a_person_puts_in_can_be_stored_and_sent() -> None:
    run = await had(calls(ADD), says("5"))
    for changed in (with_arguments(run, 0, 0, '{"a": "\ud800"}'), with_result(run, 0, 0, "\ud800")):
        assert "\ud800" not in str(rounds(changed)[0].calls[0])


async def test_edited_arguments_that_are_wrong_are_an_error_as_any_other() -> None:
    run = await had(calls(ADD), says("5"))
    port, events = ScriptedPort([says("Sorry.")]), list[Event]()
    await again(port, events, with_arguments(run, 0, 0, "{"))
    assert "not valid JSON" in answers(port)[0][1]


async def test_a_later_round_that_is_edited_keeps_those_before() -> None:
    run = await had(calls(ADD), calls(MUL), says("ok"))
    before = with_result(run, 1, 0, "21")
    port = ScriptedPort([says("ok")])
    await again(port, [], before)
    assert answers(port) == [("functions.add:0", "5"), ("functions.mul:1", "21")]
    assert [each.at for each in before] == sorted(each.at for each in before)


async def test_a_call_that_was_cut_off_can_be_completed_by_hand() -> None:
    run = await had(calls(ADD, ("functions.mul:1", "mul", '{"a": 4'), reason="length"))
    port, events = ScriptedPort([says("5 and 20")]), list[Event]()
    await again(port, events, with_arguments(run, 0, 1, '{"a": 4, "b": 5}'))
    assert answers(port) == [("functions.add:0", "5"), ("functions.mul:1", "20")]


async def test_more_rounds_after_the_last_allowed() -> None:
    run = await had(calls(ADD), calls(MUL), max_rounds=2)
    assert isinstance(run[-2].event, Failed) and run[-2].event.code == "tools.max_rounds"
    port, events = ScriptedPort([calls(("functions.add:2", "add", {"a": 1, "b": 1})), says("ok")]), list[Event]()
    await again(port, events, all_rounds(run), max_rounds=2)
    assert [event.index for event in events if isinstance(event, RoundStarted)] == [2, 3]
    assert len(answers(port, 1)) == 3


async def test_the_round_that_failed_is_asked_for_again() -> None:
    run = await had(calls(ADD), says("5"))
    gone = [*(each for each in run if each.at < run[-3].at), Timed(90.0, Failed("endpoint.broke_off")), Timed(90.0, Ended("failed"))]
    before = before_round(gone, 1)
    port, events = ScriptedPort([says("5")]), list[Event]()
    await again(port, events, before)
    assert answers(port) == [("functions.add:0", "5")]
    assert before_round(gone, 0) == []


async def test_ids_go_on_counting_and_loops_are_still_seen() -> None:
    same = [calls((f"functions.add:{i}", "add", {"a": 1, "b": 2})) for i in range(2)]
    run = await had(*same, says("3"))
    port, events = ScriptedPort([calls(("", "add", {"b": 2, "a": 1}))]), list[Event]()
    with pytest.raises(Failure, match="tools.loop"):
        await again(port, events, before_round(run, 2))
    assert [event.id for event in events if isinstance(event, ToolCallDelta) and event.id] == ["functions.add:2"]


async def test_calls_that_were_open_when_the_app_ended_are_carried_out() -> None:
    run = await had(calls(ADD, MUL), says("5 and 20"))
    results = [index for index, each in enumerate(run) if isinstance(each.event, ToolResult)]
    broken = [*run[: results[1]], Timed(50.0, ToolWaiting(1, "approval", 60)), Timed(99.0, Ended("interrupted"))]
    before = all_rounds(broken)
    assert rounds(before)[0].calls[1].waiting is None
    port, events = ScriptedPort([says("ok")]), list[Event]()
    await again(port, events, before)
    assert [(event.index, event.result) for event in events if isinstance(event, ToolResult)] == [(1, "20")]
    assert answers(port) == [("functions.add:0", "5"), ("functions.mul:1", "20")]


async def test_an_empty_round_that_was_asked_again_leaves_nothing_to_send() -> None:
    run = await had([ThoughtDelta("hm"), ToolCallDelta(0), *calls(ADD)[-1:]], calls(ADD), says("5"))
    port = ScriptedPort([says("5")])
    await again(port, [], before_round(run, 2))
    assert [message["role"] for message in port.asked[0].messages] == ["user", "assistant", "tool"]


@pytest.mark.parametrize("round", [-1, 2, 99])
async def test_rounds_that_are_not_there(round: int) -> None:
    run = await had(calls(ADD), says("5"))
    with pytest.raises(Failure, match="tools.no_such_round"):
        before_round(run, round)
    for change in (with_result, with_arguments):
        with pytest.raises(Failure, match="tools.no_such_round"):
            change(run, round, 0, "{}")


@pytest.mark.parametrize(("round", "call"), [(0, 1), (0, -1), (1, 0)])
async def test_calls_that_are_not_there(round: int, call: int) -> None:
    run = await had(calls(ADD), says("5"))
    with pytest.raises(Failure, match="tools.no_such_call"):
        with_result(run, round, call, "x")


async def test_where_there_is_nothing_to_go_on_from() -> None:
    answered, empty = await had(calls(ADD), says("5")), [Timed(0.0, Asked("?")), Timed(0.0, Ended("failed"))]
    for run in (answered, empty):
        with pytest.raises(Failure, match="tools.cannot_go_on"):
            all_rounds(run)
    assert not may_go_on(rounds(answered)[-1])


TEXTS = st.one_of(
    st.text(max_size=60),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
        max_leaves=8,
    ).map(json.dumps),
    st.sampled_from(
        ['{"a": 1, "b": 2}', '{"a":1e400,"b":2}', '{"a":NaN}', '{"a":1,"a":2}', "[" * 500, '"{}"', "{", "\ud800", '{"a":"\\ud800"}']
    ),
)


CALLS = st.tuples(st.text(max_size=12), st.sampled_from(["add", "compare", "count_letter_in_string", "", "x\ud800"]), TEXTS)


@settings(max_examples=60, deadline=None)
@given(st.lists(CALLS, min_size=1, max_size=3).filter(lambda given: any(name for _, name, _ in given)))
async def test_whatever_is_called_the_conversation_goes_on_and_can_be_sent(given: list[tuple[str, str, str]]) -> None:
    """Every call has an outcome, ids are told apart, and what goes back is JSON that any server reads."""
    port, events = ScriptedPort([calls(*given), calls(*given), says("ok")]), list[Event]()
    await again(port, events)
    for request in port.asked[1:]:
        turns = [message for message in request.messages if message["role"] == "assistant"]
        for turn in turns:
            ids = [call["id"] for call in turn["tool_calls"]]
            assert len(set(ids)) == len(ids)
            for call in turn["tool_calls"]:
                assert isinstance(json.loads(call["function"]["arguments"], parse_constant=lambda name: pytest.fail(name)), dict)
        sent = [call["id"] for turn in turns for call in turn["tool_calls"]]
        assert [message["tool_call_id"] for message in request.messages if message["role"] == "tool"] == sent
    for reply in rounds([Timed(0.0, event) for event in events]):
        if any(call.name for call in reply.calls):
            assert all((call.result is None) is not (call.error is None) for call in reply.calls)
            assert all(call.result is None for call in reply.calls if call.problems)
