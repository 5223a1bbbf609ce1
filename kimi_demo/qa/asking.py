"""One attempt at a case: asks the server and records what comes back."""

import asyncio
import json
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import replace
from typing import Any

from kimi_demo.dialect.conversation import ChatRequest, Message, system, user
from kimi_demo.dialect.events import AnswerDelta, Event, Phase, RoundStarted, ThoughtDelta, Timed, ToolCallDelta
from kimi_demo.dialect.failure import Failure
from kimi_demo.dialect.reply import rounds
from kimi_demo.dialect.sampling import Sampling
from kimi_demo.engines.endpoint import Endpoint
from kimi_demo.engines.port import ModelInfo
from kimi_demo.qa.attempt import Attempt, FailureSeen, ModelSeen, RoundSeen
from kimi_demo.qa.case import GUIDE, Case, Planned, ToolSpec
from kimi_demo.tools.guide import GUIDE_TOOLS
from kimi_demo.tools.rounds import converse
from kimi_demo.tools.schema_checker import SchemaChecker
from kimi_demo.tools.tool import AnyTool, SchemaTool
from kimi_demo.tools.toolbox import Toolbox

LIMIT_S = 900.0
"""How long one attempt may take before it counts as failed: longer than a silent server is waited for."""


async def attempt(
    endpoint: Endpoint, planned: Planned, checker: SchemaChecker, *, number: int = 1, streamed: bool = True, limit_s: float = LIMIT_S
) -> Attempt:
    """What came of asking once. Whatever the server does wrong is in what is returned; raises nothing but CancelledError.

    endpoint: with `as_sent`, so that nothing is put right that the server did wrong.
    """
    seen = _Recorder()
    failure: Failure | None = None
    prompt: str | None = None
    count: int | None = None
    try:
        async with asyncio.timeout(limit_s):
            if planned.case.mode == "render":
                request = _request(planned)
                prompt, count = await endpoint.render(request), await endpoint.count_tokens(request)
            else:
                await _ask(endpoint, planned, checker, seen, streamed=streamed)
            if planned.case.checks.history_kept:
                prompt = await _history(endpoint, seen, planned.case)
    except Failure as error:
        failure = error if not _wanted_end(error, planned.case) else None
    except TimeoutError:
        failure = Failure("qa.too_slow", seconds=f"{limit_s:g}")
    return Attempt(
        number=number,
        streamed=streamed,
        rounds=tuple(RoundSeen.of(reply) for reply in rounds(seen.entries)),
        notices=tuple(entry.event.name for entry in seen.entries if isinstance(entry.event, Phase)),
        failure=None if failure is None else FailureSeen(code=failure.code, params=failure.params),
        seconds=round(seen.now, 3),
        first_token_s=seen.first_token_s,
        prompt=prompt,
        prompt_count=count,
        models=tuple(ModelSeen(id=m.id, max_model_len=m.max_model_len, root=m.root) for m in endpoint.models)
        if planned.case.mode == "models"
        else (),
    )


def toolbox_of(case: Case, checker: SchemaChecker) -> Toolbox:
    """The case's tools as a conversation calls them."""
    found: list[AnyTool] = []
    for tool in case.tools:
        if isinstance(tool, ToolSpec):
            found.append(_schema_tool(tool, checker))
        else:
            found += GUIDE_TOOLS if tool == "guide" else (GUIDE[tool],)
    return Toolbox(found)


def _schema_tool(spec: ToolSpec, checker: SchemaChecker) -> SchemaTool:
    schema = json.dumps(spec.parameters)

    async def answer(arguments: str) -> str:
        return spec.returns

    return SchemaTool(
        spec.name, spec.description, spec.parameters, check=lambda arguments: checker.problems(schema, arguments), answer=answer
    )


class _Recorder:
    """The events of an attempt with the seconds since its start."""

    def __init__(self) -> None:
        self.entries: list[Timed] = []
        self.first_token_s: float | None = None
        self._started = time.monotonic()

    @property
    def now(self) -> float:
        return time.monotonic() - self._started

    def __call__(self, event: Event) -> None:
        if self.first_token_s is None and isinstance(event, ThoughtDelta | AnswerDelta | ToolCallDelta):
            self.first_token_s = round(self.now, 3)
        self.entries.append(Timed(self.now, event))


class _Port:
    """The endpoint as one attempt uses it: every request carries the case's own fields, and is asked for in one piece if so wished."""

    def __init__(self, endpoint: Endpoint, body: Mapping[str, Any], *, streamed: bool) -> None:
        self.info: ModelInfo = endpoint.info
        self._endpoint = endpoint
        self._extra = dict(body)
        self._streamed = streamed

    def body(self, request: ChatRequest) -> dict[str, object]:
        body = dict(self._endpoint.body(self._with(request)))
        if not self._streamed:
            body.pop("stream", None)
            body.pop("stream_options", None)
        return body

    async def stream(self, request: ChatRequest) -> AsyncGenerator[Event, None]:
        if not self._streamed:
            for event in await self.complete_chat(request):
                yield event
            return
        async with aclosing(self._endpoint.stream(self._with(request))) as events:
            async for event in events:
                yield event

    async def complete_chat(self, request: ChatRequest) -> list[Event]:
        return await self._endpoint.complete_chat(self._with(request))

    def _with(self, request: ChatRequest) -> ChatRequest:
        return replace(request, extra={**request.extra, **self._extra})


async def _ask(endpoint: Endpoint, planned: Planned, checker: SchemaChecker, seen: _Recorder, *, streamed: bool) -> None:
    case = planned.case
    if case.mode == "models":
        return  # the endpoint has asked for them when it was connected
    if case.mode == "raw":
        prompt = case.prompt or ""
        seen(RoundStarted(0, endpoint.raw_body(prompt, planned.sampling)))
        async with aclosing(endpoint.stream_raw(prompt, planned.sampling)) as events:
            async for event in events:
                seen(event)
        return
    port, request = _Port(endpoint, case.body, streamed=streamed), _request(planned)
    if case.tools:
        await converse(
            port,
            request.messages,
            toolbox_of(case, checker),
            planned.sampling,
            thinking=request.thinking,
            emit=seen,
            max_rounds=case.max_rounds,
            tool_choice=case.tool_choice,
        )
        return
    seen(RoundStarted(0, port.body(request)))
    async with aclosing(port.stream(request)) as events:
        async for event in events:
            seen(event)


def _request(planned: Planned) -> ChatRequest:
    case = planned.case
    messages: list[Message] = [system(case.system)] if case.system is not None else []
    messages += [dict(message) for message in case.messages] if case.messages is not None else [user(case.ask or "")]
    tools = toolbox_of(case, SchemaChecker()).schemas() if case.tools else []
    thinking = case.mode != "instant" and case.body.get("chat_template_kwargs") != {"thinking": False}
    extra = case.body if case.mode == "render" else {}
    return ChatRequest(messages, planned.sampling, thinking=thinking, tools=tools, tool_choice=case.tool_choice, extra=extra)


async def _history(endpoint: Endpoint, seen: _Recorder, case: Case) -> str | None:
    """The prompt of the last round, as the server's template makes it."""
    replies = rounds(seen.entries)
    if not replies:
        return None
    body = replies[-1].request
    messages, tools = body.get("messages") or [], body.get("tools") or ()
    return await endpoint.render(ChatRequest(messages, Sampling(), thinking=case.mode == "thinking", tools=tools))


def _wanted_end(failure: Failure, case: Case) -> bool:
    """A case that asks for the calls only ends as soon as it has them, which a conversation takes for too many rounds; and of an answer
    that may be empty it is no fault that it is."""
    if failure.code == "tools.max_rounds":
        return case.max_rounds == 1
    return failure.code == "tools.empty_turn" and case.checks.answer is not None and case.checks.answer.empty is True
