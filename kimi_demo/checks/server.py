"""The checks of a running server, one after the other."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass, field

from kimi_demo.checks.result import CheckResult, State
from kimi_demo.checks.stopping import stop_aborts
from kimi_demo.dialect.conversation import ChatRequest, user
from kimi_demo.dialect.events import AnswerDelta, Event, Finished, Remark, ThoughtDelta, ToolCallDelta, Usage
from kimi_demo.dialect.failure import Failure
from kimi_demo.dialect.sampling import PRESETS, Sampling
from kimi_demo.engines.endpoint import Endpoint
from kimi_demo.settings import EndpointKind
from kimi_demo.tools.guide import GUIDE_TOOLS
from kimi_demo.tools.toolbox import Toolbox

CHECKS = ("health", "models", "thinking", "instant", "tool_call", "raw", "stop")
"""Their names, in order. Each stands for itself, except that without `models` there is nothing to ask."""

_LIMIT_S = 300.0
"""For one check. Kimi thinks for a minute where a server is busy."""

_TOKENS = 1024
_QUESTION = "What is 17 + 25? Use the tool add."
_MARKS = ("<think>", "</think>", "<|tool_call", "<|im_")


@dataclass(frozen=True)
class Address:
    """Where the server is. api_key: never part of a result. model: one of its models, None for the first."""

    base_url: str
    api_key: str | None = field(default=None, repr=False)
    model: str | None = None
    kind: EndpointKind = "auto"
    connect_timeout_s: float = 5.0


_Check = Callable[[Endpoint], Awaitable[dict[str, str]]]


async def self_test(address: Address, limit_s: float = _LIMIT_S) -> AsyncIterator[CheckResult]:
    """The result of each check in CHECKS as it is there. Raises nothing: a server that is not there is a failed check.

    Costs the server a few hundred tokens. limit_s: seconds that one check may take.
    """
    began = time.monotonic()
    try:
        endpoint = await Endpoint.connect(
            address.base_url, address.api_key, address.kind, address.connect_timeout_s, model=address.model, silence_timeout_s=limit_s
        )
    except Failure as failure:
        for result in _unreachable(failure, time.monotonic() - began):
            yield result
        return
    connected = time.monotonic() - began
    try:
        yield await _timed("health", _healthy, endpoint, limit_s)
        facts = {"model": endpoint.info.id, "models": str(len(endpoint.models)), "kind": endpoint.kind}
        if endpoint.info.max_model_len is not None:
            facts["context"] = f"{endpoint.info.max_model_len:,}"
        yield CheckResult("models", "passed", connected, facts=facts)
        for name, check in _ASKING.items():
            yield await _timed(name, check, endpoint, limit_s)
    finally:
        await endpoint.aclose()


def _unreachable(failure: Failure, seconds: float) -> list[CheckResult]:
    """Where it could not be reached, its health is what failed; where it answered something else, its list of models."""
    answered = failure.code in _ANSWERED
    failed = "models" if answered else "health"
    found = [CheckResult("health", "passed", seconds)] if answered else []
    found.append(CheckResult(failed, "failed", seconds, failure.code, failure.params))
    return found + [CheckResult(name, "skipped") for name in CHECKS[CHECKS.index(failed) + 1 :]]


_ANSWERED = frozenset(
    f"endpoint.{name}"
    for name in (
        *("needs_key", "wrong_key", "forbidden", "web_page", "not_openai", "no_models", "model_not_listed", "no_such_route", "rejected"),
        *("busy", "loading", "server_error", "bad_reply", "redirect"),
    )
)


async def _timed(name: str, check: _Check, endpoint: Endpoint, limit_s: float) -> CheckResult:
    began = time.monotonic()
    try:
        async with asyncio.timeout(limit_s):
            facts = await check(endpoint)
    except TimeoutError:
        return CheckResult(name, "failed", time.monotonic() - began, "check.timeout", {"seconds": f"{limit_s:g}"})
    except Failure as failure:
        state: State = "skipped" if failure.code in _NOT_OFFERED else "failed"
        return CheckResult(name, state, time.monotonic() - began, failure.code, failure.params)
    return CheckResult(name, "passed", time.monotonic() - began, facts=facts)


_NOT_OFFERED = frozenset(("check.no_completions", "check.no_metrics"))
"""What a server may do without."""


async def _healthy(endpoint: Endpoint) -> dict[str, str]:
    if not await endpoint.healthy():
        raise Failure("check.unhealthy")
    return {}


@dataclass
class _Seen:
    thought: str = ""
    answer: str = ""
    call_name: str = ""
    call_arguments: str = ""
    calls: int = 0
    finish: str = ""
    tokens: int | None = None
    remarks: set[str] = field(default_factory=set)

    def add(self, event: Event) -> None:
        match event:
            case ThoughtDelta(text=text):
                self.thought += text
            case AnswerDelta(text=text):
                self.answer += text
            case ToolCallDelta():
                self.calls = max(self.calls, event.index + 1)
                if event.index == 0:
                    self.call_name += event.name
                    self.call_arguments += event.arguments
            case Usage(completion_tokens=tokens):
                self.tokens = tokens
            case Finished(reason=reason):
                self.finish = reason
            case Remark(name=name):
                self.remarks.add(name)

    @property
    def facts(self) -> dict[str, str]:
        return {} if self.tokens is None else {"tokens": str(self.tokens)}


async def _asked(endpoint: Endpoint, request: ChatRequest) -> _Seen:
    seen = _Seen()
    async with aclosing(endpoint.stream(request)) as events:
        async for event in events:
            seen.add(event)
    return seen


def _request(endpoint: Endpoint, text: str, thinking: bool) -> ChatRequest:
    """Greedy, so that the same server gives the same result again; Moonshot's own takes no values but its own."""
    room = endpoint.info.max_model_len
    tokens = _TOKENS if room is None else max(1, min(_TOKENS, room // 2))
    preset = PRESETS["moonshot_thinking" if thinking else "moonshot_instant"].sampling
    greedy = {} if endpoint.kind == "moonshot" else {"temperature": 0.0, "top_p": 1.0}
    return ChatRequest([user(text)], preset.model_copy(update={"max_tokens": tokens, **greedy}), thinking)


async def _thinking(endpoint: Endpoint) -> dict[str, str]:
    """The thought comes apart from the answer, by the server's doing."""
    seen = await _asked(endpoint, _request(endpoint, "What is the capital of France?", True))
    if "no_reasoning_parser" in seen.remarks or any(mark in seen.answer for mark in _MARKS[:2]):
        raise Failure("check.no_reasoning_parser")
    if not seen.thought.strip():
        raise Failure("check.no_thought")
    if not seen.answer.strip() and seen.finish != "length":
        raise Failure("check.no_answer", reason=seen.finish)
    return seen.facts


async def _instant(endpoint: Endpoint) -> dict[str, str]:
    """With thinking off there is an answer, and no thought in it or beside it."""
    seen = await _asked(endpoint, _request(endpoint, "What is the capital of France?", False))
    if seen.thought.strip() or any(mark in seen.answer for mark in _MARKS[:2]):
        raise Failure("check.leak")
    if not seen.answer.strip():
        raise Failure("check.no_answer", reason=seen.finish)
    return seen.facts


async def _tool_call(endpoint: Endpoint) -> dict[str, str]:
    """The model calls a tool, and the server hands the call on as one, with arguments that fit the tool's schema."""
    toolbox = Toolbox(GUIDE_TOOLS)
    asked = _request(endpoint, _QUESTION, True)
    seen = await _asked(endpoint, ChatRequest(asked.messages, asked.sampling, True, toolbox.schemas()))
    if any(mark in seen.thought + seen.answer for mark in _MARKS[2:]):
        raise Failure("check.no_tool_parser")
    if not seen.calls:
        raise Failure("check.no_tool_call", reason=seen.finish)
    checked = await toolbox.check(seen.call_name, seen.call_arguments)
    if checked.problems:
        raise Failure("check.bad_arguments", call=f"{seen.call_name}({seen.call_arguments[:200]})")
    return {"call": f"{seen.call_name}({seen.call_arguments[:200]})", **seen.facts}


async def _raw(endpoint: Endpoint) -> dict[str, str]:
    """A text completion, without the chat template."""
    if not endpoint.has_raw:
        raise Failure("check.no_completions")
    seen = _Seen()
    async with aclosing(endpoint.stream_raw("The capital of France is", Sampling(temperature=0, top_p=1, max_tokens=8))) as events:
        async for event in events:
            seen.add(event)
    if not seen.answer:
        raise Failure("check.no_answer", reason=seen.finish)
    return seen.facts


_ASKING: dict[str, _Check] = {"thinking": _thinking, "instant": _instant, "tool_call": _tool_call, "raw": _raw, "stop": stop_aborts}
