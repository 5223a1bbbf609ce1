"""What each kind of run does. Each appends its events to the run it is given and raises Failure when it cannot go on."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import replace

from kimi_demo.batches.engines import ServerRows, is_of_the_row
from kimi_demo.dialect.conversation import ChatRequest, Message, user
from kimi_demo.dialect.events import BatchStarted, CarriedOver, Phase, PromptTokens, Remark, RoundStarted, RowFinished, Timed
from kimi_demo.dialect.failure import Failure
from kimi_demo.dialect.reply import rounds
from kimi_demo.dialect.sampling import Sampling
from kimi_demo.dialect.special_tokens import without_special
from kimi_demo.engines.accelerators import Lease
from kimi_demo.engines.chat_engine import ChatEngine
from kimi_demo.engines.endpoint import Endpoint
from kimi_demo.engines.endpoint_prompt import continued, is_text
from kimi_demo.engines.offline import OfflineEngine
from kimi_demo.engines.offline_rows import RowAsk, own_seed
from kimi_demo.engines.room import fit, raw_fit
from kimi_demo.owners import is_viewer
from kimi_demo.runs.run import Run
from kimi_demo.tools.attempts import attempted
from kimi_demo.tools.people import Asking
from kimi_demo.tools.rounds import converse
from kimi_demo.tools.toolbox import Toolbox

REPEATS_AT_ONCE = 4
"""Of a repeated question: a server answers several at once almost as fast as one, and other visitors are to have their turn."""

Expand = Callable[[str, ChatRequest], Awaitable[ChatRequest]]
"""(owner, request) → the request with its images in it, where it only refers to them."""


async def chat(run: Run, engine: ChatEngine, request: ChatRequest, expand: Expand | None = None) -> None:
    """One reply, streamed. What the run keeps of the request refers to images; what is sent holds them."""
    endpoint = await engine.ready(run.append)
    request, marks = _harmless(run, engine, request)
    whole = request if expand is None else await expand(run.owner, request)
    whole = await fit(whole, endpoint)
    shown = replace(request, sampling=whole.sampling)
    run.append(started(endpoint, endpoint.body(shown), shown.messages))
    _tell_lowered(run, request.sampling, whole.sampling)
    _tell_neutralised(run, marks)
    async with engine.explaining(), aclosing(endpoint.stream(whole)) as events:
        async for event in events:
            run.append(event)


async def chat_elsewhere(run: Run, engine: ChatEngine, connect: Callable[[], Awaitable[Endpoint]], request: ChatRequest) -> None:
    """One reply, streamed, from another server than the one that answers the chat. Raises the failures of `connect` and of the endpoint."""
    run.append(Phase("connecting"))
    endpoint = await connect()
    try:
        request, marks = _harmless(run, engine, request)
        whole = await fit(request, endpoint)
        run.append(RoundStarted(0, request=endpoint.body(whole), context=endpoint.info.max_model_len))
        _tell_lowered(run, request.sampling, whole.sampling)
        _tell_neutralised(run, marks)
        async with aclosing(endpoint.stream(whole)) as events:
            async for event in events:
                run.append(event)
    finally:
        await endpoint.aclose()


async def go_on(run: Run, engine: ChatEngine, request: ChatRequest, before: CarriedOver) -> None:
    """The same reply, carried over from an earlier run and continued: through a raw completion, since the parser of a chat
    completion would take what follows for thought.

    Raises Failure: chat.cannot_continue, endpoint.prompt_too_long, and those of the endpoint.
    """
    endpoint = await engine.ready(run.append)
    request, _ = _harmless(run, engine, request)
    prompt = await endpoint.render(request) if endpoint.has_raw and is_text(request.messages) else None
    if prompt is None:
        raise Failure("chat.cannot_continue")
    prompt = continued(prompt, before.thought, before.answer)
    # A grammar or a budget counts from the beginning of a reply, which this is not.
    sampling = request.sampling.model_copy(update={name: None for name in ("thinking_token_budget", "json_schema")})
    wanted, (sampling, _) = sampling, await raw_fit(endpoint, prompt, sampling)
    run.append(started(endpoint, endpoint.raw_body(prompt, sampling, as_rendered=True), request.messages))
    _tell_lowered(run, wanted, sampling)
    run.append(before)
    async with (
        engine.explaining(),
        aclosing(endpoint.stream_raw(prompt, sampling, in_thought=not before.answer, as_rendered=True)) as events,
    ):
        async for event in events:
            run.append(event)


async def complete(run: Run, engine: ChatEngine, prompt: str, sampling: Sampling) -> None:
    """A raw prompt, completed."""
    endpoint = await engine.ready(run.append)
    wanted, (sampling, tokens) = sampling, await raw_fit(endpoint, prompt, sampling)
    if tokens is not None:
        run.append(PromptTokens(tokens.count, tuple(text for text, _ in tokens.pieces), tuple(size for _, size in tokens.pieces)))
    run.append(RoundStarted(0, request=endpoint.raw_body(prompt, sampling), context=endpoint.info.max_model_len))
    _tell_lowered(run, wanted, sampling)
    async with engine.explaining(), aclosing(endpoint.stream_raw(prompt, sampling)) as events:
        async for event in events:
            run.append(event)


def _harmless(run: Run, engine: ChatEngine, request: ChatRequest) -> tuple[ChatRequest, list[str]]:
    """The request with special tokens as plain text, and which there were; as it is where the operator lets them through."""
    if engine.settings.special_tokens and not is_viewer(run.owner):
        return request, []
    return without_special(request)


def _tell_neutralised(run: Run, marks: Sequence[str]) -> None:
    if marks:
        run.append(Remark("neutralised", {"marks": " ".join(marks[:8])}))


def _tell_lowered(run: Run, wanted: Sampling, sent: Sampling) -> None:
    """What was asked for did not fit into the context, so less was sent: that is said in the reply, not only in its request."""
    if sent.max_tokens < wanted.max_tokens:
        run.append(Remark("max_tokens_lowered", {"wanted": f"{wanted.max_tokens:,}", "sent": f"{sent.max_tokens:,}"}))


def started(endpoint: Endpoint, body: dict[str, object], messages: Sequence[Message]) -> RoundStarted:
    """A chat round, and what its server could do with it afterwards."""
    can_continue = endpoint.has_raw and endpoint.renders and is_text(messages)
    return RoundStarted(0, request=body, can_continue=can_continue, context=endpoint.info.max_model_len)


async def use_tools(
    run: Run,
    engine: ChatEngine,
    request: ChatRequest,
    toolbox: Toolbox,
    *,
    max_rounds: int,
    asking: Asking | None = None,
    before: Sequence[Timed] = (),
) -> None:
    """Rounds of thought, calls and results until the model answers. asking: how a person is asked; None where there is nobody.

    before: the rounds of an earlier run that this one goes on from; they become part of it.
    """
    run.carry(before)
    endpoint = await engine.ready(run.append)
    told: set[str] = set()

    async def prepare(asked: ChatRequest) -> ChatRequest:
        asked, marks = _harmless(run, engine, asked)
        if fresh := [mark for mark in marks if mark not in told]:
            told.update(fresh)
            run.append(Phase("tools.neutralised", params={"marks": " ".join(fresh[:8])}))
        return await fit(asked, endpoint)

    async with engine.explaining():
        await converse(
            endpoint,
            request.messages,
            toolbox,
            request.sampling,
            thinking=request.thinking,
            emit=run.append,
            max_rounds=max_rounds,
            tool_choice=request.tool_choice,
            parallel=request.parallel,
            asking=asking,
            before=rounds(before),
            prepare=prepare,
        )


async def repeat(run: Run, engine: ChatEngine, request: ChatRequest, toolbox: Toolbox, *, times: int, max_rounds: int) -> None:
    """The same tool conversation `times` times, a few at once; what came of each is an Attempt. Nobody is asked about a call."""
    endpoint = await engine.ready(run.append)
    request, _ = _harmless(run, engine, request)
    places = asyncio.Semaphore(REPEATS_AT_ONCE)
    done = 0

    async def attempt(number: int) -> None:
        nonlocal done
        async with places:
            run.append(
                await attempted(endpoint, request, toolbox, number, max_rounds=max_rounds, prepare=lambda asked: fit(asked, endpoint))
            )
        done += 1
        run.append(Phase("tools_repeating", done, times))

    run.append(Phase("tools_repeating", 0, times))
    async with asyncio.TaskGroup() as group:
        for number in range(times):
            group.create_task(attempt(number))


async def batch(
    run: Run, engine: OfflineEngine, lease: Lease, rows: Sequence[Sequence[Message]], sampling: Sampling, *, thinking: bool, takeover: bool
) -> None:
    """Every row through the in-process engine, loading it first when needed.

    takeover: whether the chat server may be stopped for it where both want the same GPUs.
    """
    await lease.acquire("batch", engine.unload, takeover=takeover)
    try:
        await engine.load(run.append)
        await engine.generate(rows, sampling, thinking, run.append)
    except Failure:
        if engine.state not in ("loading", "ready"):  # it has nothing on the GPUs: do not keep the chat from them
            lease.release("batch")
        raise


async def batch_on_server(run: Run, engine: ChatEngine, prompts: Sequence[str], sampling: Sampling, *, thinking: bool) -> None:
    """Every prompt through the server that answers the chat. A row that it refuses is told with the reason and stops no other.

    Raises the Failures of `ChatEngine.ready`, and what a row meets that is not of its own making.
    """
    rows = ServerRows(await engine.ready(run.append))
    run.append(BatchStarted(len(prompts)))
    waiting = iter(enumerate(prompts))

    async def in_turn() -> None:
        for index, prompt in waiting:
            try:
                got = await rows.answer(RowAsk([user(prompt)], own_seed(sampling, index), thinking))
            except Failure as failure:
                if not is_of_the_row(failure):
                    raise
                run.append(RowFinished(index, prompt, error=failure.code, error_params=failure.params))
            else:
                counted = (got.finish_reason, got.prompt_tokens, got.completion_tokens, got.seconds)
                run.append(RowFinished(index, prompt, got.reasoning, got.answer, *counted))

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(min(rows.room, len(prompts))):
                group.create_task(in_turn())
    except ExceptionGroup as several:
        raise several.exceptions[0] from None
