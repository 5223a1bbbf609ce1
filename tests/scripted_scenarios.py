"""What the scripted server answers, by scenario name. Pure: a request → a script of deltas, or a refusal."""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from inspect import signature
from typing import Any

from tests import scripted_tool_scenarios as tools
from tests.scripted_script import ANSWER, THOUGHT, Ask, Refusal, Script, thought_of, told


def reasoning(ask: Ask, thought: str = THOUGHT, answer: str = ANSWER) -> Script:
    return Script((*thought_of(ask, thought), *told("content", answer)))


def reasoning_content(ask: Ask, thought: str = THOUGHT, answer: str = ANSWER) -> Script:
    return Script((*thought_of(ask, thought, "reasoning_content"), *told("content", answer)))


def reasoning_twice(ask: Ask) -> Script:
    """Both names with the same text, as vLLM 0.12 to 0.15 sent it."""
    deltas = tuple(delta | {"reasoning_content": delta["reasoning"]} for delta in thought_of(ask))
    return Script((*deltas, *told("content", ANSWER)))


def thought_in_content(ask: Ask, thought: str = THOUGHT, answer: str = ANSWER, mark: str = "</thi|nk>", finish: str = "stop") -> Script:
    """A server without a reasoning parser. `mark`: what stands between thought and answer; | is where chunks are cut."""
    if not ask.thinking:
        return Script(told("content", answer), counts_reasoning=False)
    between = tuple({"content": part} for part in mark.split("|") if part)
    tail = told("content", "\n\n" + answer) if answer else ()
    return Script((*told("content", thought), *between, *tail), finish=finish, counts_reasoning=False)


def answer_only(ask: Ask, answer: str = ANSWER, counts_reasoning: bool = True) -> Script:
    return Script(told("content", answer), counts_reasoning=counts_reasoning)


def cut_in_thought(ask: Ask) -> Script:
    return Script(told("reasoning", THOUGHT)[:6], finish="length")


def cut_in_answer(ask: Ask) -> Script:
    return Script((*thought_of(ask), *told("content", ANSWER)[:6]), finish="length")


def long_thought(ask: Ask, tokens: int = 500, rate: float | None = 50.0, answer: str = "Done.") -> Script:
    return Script((*({"reasoning": f" w{i}"} for i in range(tokens)), *told("content", answer)), rate=rate)


def silent(ask: Ask, seconds: float = 30.0, headers: bool = False) -> Script:
    """Prefill: nothing comes for `seconds`, with `headers` not even the response's headers."""
    return replace(reasoning(ask), silence_s=seconds, silent_headers=headers)


def dies(ask: Ask, after: int = 5) -> Script:
    return replace(reasoning(ask), dies_after=after)


def error_event(ask: Ask, after: int = 5) -> Script:
    return replace(reasoning(ask), error_after=after)


def no_choices(ask: Ask) -> Script:
    return replace(reasoning(ask), bare_chunks=True)


def no_usage(ask: Ask) -> Script:
    return replace(reasoning(ask), usage=False)


def no_finish(ask: Ask) -> Script:
    """The stream ends in order, but no finish reason ever came."""
    return replace(reasoning(ask), finish=None)


def no_auto_tool_choice(ask: Ask) -> Script | Refusal:
    if not ask.body.get("tools"):
        return reasoning(ask)
    return _refused(400, '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set')


def too_long(ask: Ask, tokens: int = 9001, limit: int = 8192) -> Refusal:
    return _refused(
        400,
        f"This model's maximum context length is {limit} tokens. However, your prompt contains {tokens} input tokens, which exceeds this "
        "limit even without any output tokens. Please reduce the length of the input prompt.",
    )


def rejected(ask: Ask, message: str = "n must be 1", status: int = 400) -> Refusal:
    return _refused(status, message)


def no_budget(ask: Ask) -> Script | Refusal:
    if ask.body.get("thinking_token_budget") is None:
        return reasoning(ask)
    return _refused(400, "thinking_token_budget is set but reasoning_config is not configured.")


def no_stream_options(ask: Ask, allows: str = "") -> Script | Refusal:
    """A server that rejects `stream_options`; with allows="final" only the running counts."""
    options = ask.body.get("stream_options") or {}
    refuses = options.get("continuous_usage_stats") if allows == "final" else options
    return _refused(400, "Unrecognized request argument supplied: stream_options.continuous_usage_stats") if refuses else reasoning(ask)


def not_found(ask: Ask) -> Refusal:
    return _refused(404, f"The model `{ask.body.get('model')}` does not exist.", "NotFoundError")


def too_many(ask: Ask) -> Refusal:
    return replace(_refused(429, "Too many requests"), headers=(("retry-after", "1"),))


def fails(ask: Ask) -> Refusal:
    return _refused(500, "EngineCore encountered an issue. See stack trace (above) for the root cause.", "InternalServerError")


def loading(ask: Ask) -> Refusal:
    return _refused(503, "Service unavailable")


def html_page(ask: Ask) -> Refusal:
    return Refusal(200, "<!doctype html><title>Router</title><h1>Sign in</h1>", "text/html; charset=utf-8")


def odd_json(ask: Ask, body: str = '{"status": "ok"}', content_type: str = "application/json") -> Refusal:
    """A 200 that is no reply."""
    return Refusal(200, body, content_type + "; charset=utf-8")


def redirect(ask: Ask, target: str = "https://elsewhere.invalid/v1") -> Refusal:
    return Refusal(307, "", "text/plain", (("location", target),))


def ignores_stream(ask: Ask) -> Script:
    """Answers in one piece though a stream was asked for."""
    return reasoning(ask)


def _refused(status: int, message: str, kind: str = "BadRequestError") -> Refusal:
    return Refusal(status, {"error": {"message": message, "type": kind, "param": None, "code": status}})


EVERYWHERE = ("html_page", "redirect", "loading", "fails", "too_many")
"""Scenarios that every route of the server follows when they are set on the server itself."""

SCENARIOS: dict[str, Callable[..., Script | Refusal]] = {
    function.__name__: function
    for function in (
        *(reasoning, reasoning_content, reasoning_twice, thought_in_content, answer_only, cut_in_thought, cut_in_answer, long_thought),
        *(silent, dies, error_event, no_choices, no_usage, no_finish, ignores_stream),
        *tools.SCENARIOS,
        *(no_auto_tool_choice, too_long, rejected, no_budget, no_stream_options, not_found, too_many, fails, loading, html_page, odd_json),
        redirect,
    )
}

_SCRIPT_FIELDS = {field.name for field in fields(Script)}
_MARKER = re.compile(r"\[\[(\w+)((?:\s+\w+=[^\s\]]+)*)\s*\]\]")


def play(name: str, ask: Ask, options: dict[str, Any]) -> Script | Refusal:
    """Scenario `name` for `ask`. Options are the scenario's own keywords, or fields of `Script` that override its result."""
    function = SCENARIOS[name]
    own = {key: value for key, value in options.items() if key in signature(function).parameters}
    rest = {key: value for key, value in options.items() if key not in own}
    if unknown := rest.keys() - _SCRIPT_FIELDS:
        raise TypeError(f"scenario {name} has no option {', '.join(sorted(unknown))}")
    result = function(ask, **own)
    return replace(result, **rest) if isinstance(result, Script) else result


def marker(text: str) -> tuple[str, dict[str, Any]] | None:
    """The scenario that a prompt asks for itself: "… [[long_thought tokens=300 rate=50]]"."""
    found = _MARKER.search(text)
    if found is None or found[1] not in SCENARIOS:
        return None
    return found[1], dict(options_of(found[2].split()))


def options_of(pairs: list[str]) -> Iterator[tuple[str, Any]]:
    """Turns rate=50 into ("rate", 50); what is no JSON stays a string."""
    for pair in pairs:
        key, _, value = pair.partition("=")
        try:
            yield key, json.loads(value)
        except ValueError:
            yield key, value
