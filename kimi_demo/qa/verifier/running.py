"""`VerifierRun`: every request of a file to a server, several at once; each result goes into the journal as it comes."""

import asyncio
import json
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from kimi_demo.dialect.conversation import ChatRequest
from kimi_demo.dialect.events import Event, RoundStarted, Timed
from kimi_demo.dialect.failure import Failure
from kimi_demo.dialect.reply import Call, Reply
from kimi_demo.dialect.sampling import Sampling
from kimi_demo.engines.endpoint import Endpoint
from kimi_demo.qa.metrics import CALLS
from kimi_demo.qa.verifier.requests import Request
from kimi_demo.qa.verifier.results import Journal, Result
from kimi_demo.tools.parameters_schema import validator_of
from kimi_demo.tools.schema_checker import SchemaChecker

RETRIES = 3
"""How often a request is sent again that a server was too busy for."""

_BUSY = ("endpoint.busy", "endpoint.loading", "endpoint.connect_timeout")
_GONE = ("endpoint.refused", "endpoint.unreachable", "endpoint.unknown_host", "endpoint.closed", "endpoint.needs_key", "endpoint.wrong_key")
_OURS = ("temperature", "top_p", "max_tokens", "chat_template_kwargs", "thinking", "tools", "tool_choice", "stream", "stream_options")
"""Fields that `Endpoint` would put in by itself: the file alone says what is sent."""


class VerifierRun:
    """on_result: called with each result. pause_s: before a request that was too early is sent again; doubled each time."""

    def __init__(
        self,
        endpoint: Endpoint,
        requests: tuple[Request, ...],
        journal: Journal,
        *,
        at_once: int = 5,
        pause_s: float = 1.0,
        on_result: Callable[[Result], None] | None = None,
    ) -> None:
        self._endpoint = endpoint
        self._left = [request for request in requests if request.index not in journal.finished]
        self._journal = journal
        self._at_once = at_once
        self._pause_s = pause_s
        self._told = on_result
        self._gone_in_a_row = 0

    async def run(self) -> None:
        """Returns when all are done. Cancelling it closes the open requests; what is in the journal stays.

        Raises the Failure of a server that is gone: what is left can be run later.
        """
        before, self._endpoint.as_sent = self._endpoint.as_sent, True
        checker, left = SchemaChecker(), iter(self._left)

        async def worker() -> None:
            for request in left:
                await self._one(request, checker)

        tasks = [asyncio.create_task(worker()) for _ in range(min(self._at_once, len(self._left)))]
        try:
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self._endpoint.as_sent = before
            await checker.aclose()

    async def _one(self, request: Request, checker: SchemaChecker) -> None:
        started = time.monotonic()
        try:
            reply = await self._reply(request)
        except Failure as failure:
            self._gone_in_a_row = self._gone_in_a_row + 1 if failure.code in _GONE else 0
            if self._gone_in_a_row > 2 * self._at_once:
                raise
            result = Result(request.index, "failed", response={"error": str(failure)})
        else:
            self._gone_in_a_row = 0
            result = await self._judged(request, reply, checker)
        now = datetime.now(UTC).isoformat(timespec="seconds")
        took = int((time.monotonic() - started) * 1000)
        result = replace(result, duration_ms=took, hash=request.hash, last_run_at=now)
        await asyncio.to_thread(self._journal.add, result)
        if self._told is not None:
            self._told(result)

    async def _reply(self, request: Request) -> Reply:
        for again in range(RETRIES + 1):
            try:
                return await self._ask(request)
            except Failure as failure:
                if failure.code not in _BUSY or again == RETRIES:
                    raise
                await asyncio.sleep(self._pause_s * 2**again)
        raise AssertionError("unreachable")

    async def _ask(self, request: Request) -> Reply:
        reply, started = Reply(), time.monotonic()

        def add(event: Event) -> None:
            reply.add(Timed(time.monotonic() - started, event))

        asked = chat_request(request)
        add(RoundStarted(0))
        if request.streamed:
            stream = self._endpoint.stream(asked)
            try:
                async for event in stream:
                    add(event)
            finally:
                await stream.aclose()
        else:
            for event in await self._endpoint.complete_chat(asked):
                add(event)
        return reply

    async def _judged(self, request: Request, reply: Reply, checker: SchemaChecker) -> Result:
        problems: list[str] = []
        valid: bool | None = None
        if reply.finish_reason == CALLS and reply.calls:
            for call in reply.calls:
                problems += await _problems(call, request, checker)
            valid = not problems
        made = [{"id": c.id, "type": "function", "function": {"name": c.name, "arguments": c.arguments}} for c in reply.calls]
        usage = reply.usage
        return Result(
            request.index,
            "success",
            finish_reason=reply.finish_reason,
            tool_calls_valid=valid,
            problems=problems,
            response={"reasoning": reply.thought, "content": reply.answer, "tool_calls": made},
            usage={"prompt_tokens": usage.prompt_tokens, "completion_tokens": usage.completion_tokens} if usage is not None else None,
        )


def chat_request(request: Request) -> ChatRequest:
    """The request with exactly the file's fields: what the endpoint would add by itself is left out. How it is streamed is its business."""
    given = {name: value for name, value in request.body.items() if name not in ("messages", "stream", "stream_options")}
    extra: dict[str, Any] = {name: None for name in _OURS if name not in ("stream", "stream_options")} | given
    return ChatRequest(request.body["messages"], Sampling(), extra=extra)


async def _problems(call: Call, request: Request, checker: SchemaChecker) -> list[str]:
    """What is wrong with a call, judged as the verifier does: its tool must be offered with a schema, and its arguments must be JSON that
    passes it. "" stands for no arguments, since vLLM streams {} so. Schemas and arguments are held together in a process of their own,
    where the schema is one that this takes; the others here, on a thread."""
    schema = next((_schema(tool) for tool in request.tools if _name(tool) == call.name), None)
    if not schema:
        return [f"{call.name}: no such tool, or a tool without a schema"]
    try:
        arguments = json.loads(call.arguments or "{}")
    except (ValueError, RecursionError) as error:
        return [f"{call.name}: the arguments are no JSON: {error}"]
    if isinstance(arguments, dict):
        try:
            found = await checker.problems(json.dumps(schema), json.dumps(arguments))
            return [f"{call.name}: {each.where or '.'}: {each.told}" for each in found]
        except Failure as failure:
            if failure.code in ("tool_schema.too_slow", "tool_schema.no_worker"):
                return [f"{call.name}: {failure}"]
    return await asyncio.to_thread(_plainly, call.name, schema, arguments)


def _plainly(name: str, schema: dict[str, Any], arguments: Any) -> list[str]:
    try:
        error = next(validator_of(schema).iter_errors(arguments), None)
    except Exception as wrong:  # a schema that is none: the verifier counts that as a call that does not pass
        return [f"{name}: {type(wrong).__name__}: {wrong}"[:300]]
    return [] if error is None else [f"{name}: {error.message}"[:300]]


def _name(tool: dict[str, Any]) -> str | None:
    function = tool.get("function")
    return function.get("name") if isinstance(function, dict) else None


def _schema(tool: dict[str, Any]) -> dict[str, Any] | None:
    parameters = tool["function"].get("parameters")
    return parameters if isinstance(parameters, dict) else None
