"""The rounds of a conversation with tools: the model thinks and calls, the tools answer, until it answers itself."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from typing import Any

from kimi_demo.dialect.conversation import ChatRequest, Message
from kimi_demo.dialect.events import Event, Phase, RoundStarted, Timed, ToolCallDelta, ToolResult
from kimi_demo.dialect.failure import Failure
from kimi_demo.dialect.reply import Call, Reply
from kimi_demo.dialect.sampling import Sampling
from kimi_demo.engines.port import ChatPort
from kimi_demo.tools.carrying_out import Calls, Emit, Seen, kinds
from kimi_demo.tools.history import calls_in, distinct_ids, has_calls, history, kimi_id
from kimi_demo.tools.leaked import leaked_calls, marked
from kimi_demo.tools.oddities import oddities
from kimi_demo.tools.people import Asking
from kimi_demo.tools.toolbox import Toolbox

Prepare = Callable[[ChatRequest], Awaitable[ChatRequest]]


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
    parallel: bool = True,
    asking: Asking | None = None,
    before: Sequence[Reply] = (),
    prepare: Prepare | None = None,
) -> None:
    """Asks, calls the tools that the reply calls (in order), asks again with their results, until a reply calls none.

    Every request is a round (`RoundStarted` with its body). A `tool_choice` that forces a call holds until the first one was made,
    for it would force one for ever. parallel: whether a reply may hold several calls.

    asking: how a person is asked for leave, or for the result of a tool that `asks`; None where there
    is nobody. before: rounds that have been had already (their events are the caller's); calls of the last one that have no outcome
    are carried out first, and `max_rounds` more may follow. prepare: what is done to each request before it is sent.

    Remarks that a person should see go out as Phase, `tools.…`: asked_again when a streamed reply announced calls and brought none
    (vllm#54701), and it is asked for once more in one piece; recovered when calls were read out of the text in which the server left
    them, marks_leaked when they could not be; and those of `oddities`.

    Raises Failure: tools.loop (name, times) when the same call comes in a third round, tools.max_rounds (limit),
    tools.cut_off (limit) when the token limit fell into a call (none of that reply is carried out), tools.no_call and
    tools.empty_turn when the model ends with nothing to show; and what `port` raises. By then everything was emitted.
    """
    replies, seen, streamed = list(before), Seen(), True
    for reply in replies:
        seen.update(kinds(reply.calls))
    if replies and has_calls(replies[-1]):
        await _answer(replies[-1], len(replies) - 1, calls_in(history(messages, replies[:-1])), toolbox, seen, emit, asking)
    for index in range(len(replies), len(replies) + max_rounds):
        called = any(has_calls(reply) for reply in replies)
        choice = "auto" if called and tool_choice not in (None, "auto", "none") else tool_choice
        sent = history(messages, replies)
        request = ChatRequest(tuple(sent), sampling, thinking=thinking, tools=toolbox.schemas(), tool_choice=choice, parallel=parallel)
        if prepare is not None:
            request = await prepare(request)
        reply = await _ask(port, request, index, emit, streamed=streamed)
        _recover(reply, toolbox, emit)
        if reply.calls and reply.finish_reason == "length":
            _refuse_cut_off(reply, request.sampling.max_tokens, emit)
        if not has_calls(reply):
            if not reply.calls and reply.finish_reason != "tool_calls":
                if reply.finish_reason == "stop" and not reply.answer.strip():
                    raise Failure("tools.empty_turn")
                return
            if not streamed:
                raise Failure("tools.no_call")
            emit(Phase("tools.asked_again"))
            streamed = False
            replies.append(reply)
            continue
        streamed = True
        for name in oddities(reply):
            emit(Phase(f"tools.{name}"))
        earlier = calls_in(sent)
        _fill_ids(reply, earlier, emit)
        replies.append(reply)
        seen.update(kinds(reply.calls))
        await _answer(reply, index, earlier, toolbox, seen, emit, asking)
    raise Failure("tools.max_rounds", limit=max_rounds)


async def _answer(reply: Reply, index: int, earlier_calls: int, toolbox: Toolbox, seen: Seen, emit: Emit, asking: Asking | None) -> None:
    """Has the reply's calls carried out, and puts what came of them into it."""

    def told(event: Event) -> None:
        emit(event)
        reply.add(Timed(0.0, event))

    await Calls(toolbox, told, asking, index).carry_out(reply.calls, distinct_ids(reply.calls, earlier_calls), seen)


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


def _recover(reply: Reply, toolbox: Toolbox, emit: Emit) -> None:
    """Calls that the server left in the text become calls, where there is only one way to read them."""
    found = leaked_calls(reply, toolbox.names)
    if found:
        emit(Phase("tools.recovered"))
        _add_calls(reply, found, emit)
    elif marked(reply):
        emit(Phase("tools.marks_leaked"))


def _add_calls(reply: Reply, calls: Sequence[Call], emit: Emit) -> None:
    for index, call in enumerate(calls):
        delta = ToolCallDelta(index, call.id, call.name, call.arguments)
        emit(delta)
        reply.add(Timed(0.0, delta))


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
