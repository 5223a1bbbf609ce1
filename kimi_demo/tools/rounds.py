"""The rounds of a conversation with tools: the model thinks and calls, the tools answer, until it answers itself."""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from typing import Any

from kimi_demo.dialect.conversation import ChatRequest, Message, assistant_in_loop, tool_answer
from kimi_demo.dialect.events import (
    Event,
    Phase,
    RoundStarted,
    Timed,
    ToolCallDelta,
    ToolChecked,
    ToolDecided,
    ToolResult,
    ToolStarted,
    ToolWaiting,
)
from kimi_demo.dialect.failure import Failure
from kimi_demo.dialect.reply import Call, Reply
from kimi_demo.dialect.sampling import Sampling
from kimi_demo.engines.port import ChatPort
from kimi_demo.tools.arguments import as_plain_json, canonical
from kimi_demo.tools.people import Asking, Verdict, Wants
from kimi_demo.tools.toolbox import Checked, Outcome, Toolbox, cut

MARK = "<|tool_call"  # how each of Kimi's tool marks begins, "<|tool_calls_section_begin|>" as well
REPEATS = 3

Emit = Callable[[Event], None]


async def converse(
    port: ChatPort,
    messages: Sequence[Message],
    toolbox: Toolbox,
    sampling: Sampling,
    *,
    thinking: bool,
    emit: Emit,
    max_rounds: int = 8,
    tool_choice: str | dict[str, Any] | None = None,
    asking: Asking | None = None,
) -> None:
    """Asks, calls the tools that the reply calls (in order), asks again with their results, until a reply calls none.

    Every request is a round (`RoundStarted` with its body). A `tool_choice` that forces a call holds until the first one was made,
    for it would force one for ever. asking: how a person is asked for leave, or for the result of a tool that `asks`; None where there
    is nobody. Remarks that a person should see go out as Phase: tools.asked_again when a streamed reply
    announced calls and brought none (vllm#54701), and it is asked for once more in one piece; tools.marks_leaked when the
    server left tool marks in the text.

    Raises Failure: tools.loop (name, times) when the same call comes in a third round, tools.max_rounds (limit),
    tools.cut_off (limit) when the token limit fell into a call (none of that reply is carried out), tools.no_call and
    tools.empty_turn when the model ends with nothing to show; and what `port` raises. By then everything was emitted.
    """
    history = list(messages)
    earlier_calls = sum(len(message.get("tool_calls") or ()) for message in messages)
    seen: Counter[tuple[str, str]] = Counter()
    called, streamed = False, True
    for index in range(max_rounds):
        choice = "auto" if called and tool_choice not in (None, "auto", "none") else tool_choice
        request = ChatRequest(tuple(history), sampling, thinking=thinking, tools=toolbox.schemas(), tool_choice=choice)
        reply = await _ask(port, request, index, emit, streamed=streamed)
        if MARK in reply.answer or MARK in reply.thought:
            emit(Phase("tools.marks_leaked"))
        if reply.calls and reply.finish_reason == "length":
            _refuse_cut_off(reply, sampling.max_tokens, emit)
        if not any(call.name for call in reply.calls):
            if not reply.calls and reply.finish_reason != "tool_calls":
                if reply.finish_reason == "stop" and not reply.answer.strip():
                    raise Failure("tools.empty_turn")
                return
            if not streamed:
                raise Failure("tools.no_call")
            emit(Phase("tools.asked_again"))
            streamed = False
            continue
        called = streamed = True
        _fill_ids(reply, earlier_calls, emit)
        ids = _distinct_ids(reply.calls, earlier_calls)
        earlier_calls += len(reply.calls)
        history.append(_sent(reply, ids))
        seen.update({(call.name, canonical(call.arguments)) for call in reply.calls})  # a set: twice in one round is no loop
        history += await _results(index, reply.calls, ids, toolbox, seen, emit, asking)
    raise Failure("tools.max_rounds", limit=max_rounds)


async def _ask(port: ChatPort, request: ChatRequest, index: int, emit: Emit, *, streamed: bool) -> Reply:
    """One round's reply, its events emitted as they come."""
    body = dict(port.body(request))
    if not streamed:
        body["stream"] = False
        body.pop("stream_options", None)
    emit(RoundStarted(index, body))
    reply = Reply()
    # aclosing: whatever ends this, a cancellation above all, the request upstream is closed before anything else happens
    async with aclosing(port.stream(request) if streamed else _at_once(port, request)) as events:
        async for event in events:
            emit(event)
            reply.add(Timed(0.0, event))
    return reply


async def _at_once(port: ChatPort, request: ChatRequest) -> AsyncGenerator[Event, None]:
    for event in await port.complete_chat(request):
        yield event


async def _results(
    round: int,
    calls: Sequence[Call],
    ids: Sequence[str],
    toolbox: Toolbox,
    seen: Counter[tuple[str, str]],
    emit: Emit,
    asking: Asking | None,
) -> list[Message]:
    """Checks the calls, then carries them out in order; their answers as messages. Raises Failure(tools.loop) after the last."""
    answers: list[Message] = []
    looping: str | None = None
    checks = []
    for index, call in enumerate(calls):
        checks.append(await toolbox.check(call.name, call.arguments))
        emit(ToolChecked(index, checks[-1].problems))
    for index, (call, call_id, checked) in enumerate(zip(calls, ids, checks, strict=True)):
        if seen[call.name, canonical(call.arguments)] >= REPEATS:
            looping = call.name
            emit(ToolResult(index, call_id, call.name, error=f"Not carried out: the same call came in {REPEATS} rounds."))
            continue
        outcome = await _outcome(round, index, checked, toolbox, emit, asking)
        emit(ToolResult(index, call_id, call.name, outcome.result, outcome.error, outcome.seconds))
        answers.append(tool_answer(call_id, outcome.text))
    if looping is not None:
        raise Failure("tools.loop", name=looping, times=REPEATS)
    return answers


async def _outcome(round: int, index: int, checked: Checked, toolbox: Toolbox, emit: Emit, asking: Asking | None) -> Outcome:
    """What becomes of one call: from the person whom it asks, or from its tool once it has leave."""
    if checked.problems:
        return Outcome(error=checked.error)
    asks = toolbox.asks(checked.name)
    if asks and asking is None:
        return Outcome(error="Not carried out: there is nobody here to ask.")
    if asking is not None and (asks or asking.approve):
        verdict = await _verdict(round, index, "result" if asks else "approval", emit, asking)
        if verdict is None:
            return Outcome(error=f"Not carried out: nobody {'answered' if asks else 'approved it'} within {asking.limit_s:g} seconds.")
        if verdict.decision == "refused":
            return Outcome(error=f"Not carried out: the user {'gave no answer' if asks else 'did not approve this call'}.")
        if verdict.decision == "answered":
            return Outcome(result=cut(verdict.text))
    emit(ToolStarted(index))
    return await toolbox.run(checked)


async def _verdict(round: int, index: int, wants: Wants, emit: Emit, asking: Asking) -> Verdict | None:
    """None when nobody said anything in time."""
    emit(ToolWaiting(index, wants, asking.limit_s))
    try:
        async with asyncio.timeout(asking.limit_s):
            verdict = await asking.ask(round, index, wants)
    except TimeoutError:
        emit(ToolDecided(index, "too_late"))
        return None
    emit(ToolDecided(index, verdict.decision))
    return verdict


def _refuse_cut_off(reply: Reply, max_tokens: int, emit: Emit) -> None:
    for index, call in enumerate(reply.calls):
        error = f"Not carried out: the reply was cut off at {max_tokens} tokens before it was complete."
        emit(ToolResult(index, call.id, call.name, error=error))
    raise Failure("tools.cut_off", limit=max_tokens)


def _fill_ids(reply: Reply, earlier_calls: int, emit: Emit) -> None:
    """Gives calls without an id Kimi's own form, which counts over the whole conversation; said as an event, so that it shows."""
    for index, call in enumerate(reply.calls):
        if not call.id:
            delta = ToolCallDelta(index, id=kimi_id(call.name, earlier_calls + index))
            emit(delta)
            reply.add(Timed(0.0, delta))


def _distinct_ids(calls: Sequence[Call], earlier_calls: int) -> list[str]:
    """The ids that results refer to: verbatim, except that of two equal ones in a round the later is renumbered.

    Only what is sent changes; the call is shown with the id that the model wrote.
    """
    ids: list[str] = []
    for index, call in enumerate(calls):
        number = earlier_calls + index
        call_id = call.id
        while call_id in ids:
            call_id = kimi_id(call.name, number)
            number += 1
        ids.append(call_id)
    return ids


def kimi_id(name: str, number: int) -> str:
    """Kimi's form of a call's id (MoonshotAI/Kimi-K2, docs/tool_call_guidance.md)."""
    return f"functions.{name}:{number}"


def _sent(reply: Reply, ids: Sequence[str]) -> Message:
    """The reply as it goes back to the model. Arguments that are no JSON object become {}, as vLLM 0.32 makes them (with a log
    line); other servers refuse the whole request, this one and every later one. What was wrong stands in the call's result."""
    message = assistant_in_loop(reply)
    for sent, call_id in zip(message["tool_calls"], ids, strict=True):
        sent["id"] = call_id
        if not as_plain_json(sent["function"]["arguments"]):
            sent["function"]["arguments"] = "{}"
    return message
