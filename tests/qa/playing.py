"""A scripted server for suites: a Kimi that answers rightly, and any number of ways to answer wrongly."""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from kimi_demo.engines.endpoint import Endpoint
from kimi_demo.qa.case import Overrides, Suite
from kimi_demo.qa.report import CaseReport, Report
from kimi_demo.qa.running import QaRun
from kimi_demo.tools.guide import GUIDE_TOOLS
from kimi_demo.tools.toolbox import carry_out
from tests import scripted_server
from tests.scripted_scenarios import SCENARIOS
from tests.scripted_script import Ask, Refusal, Script, call, thought_of, told
from tests.scripted_server import Scripted

Play = Callable[[Ask], Script | Refusal]
TOOLS = {tool.name: tool for tool in GUIDE_TOOLS}
_CALLS: tuple[tuple[str, str, Callable[[re.Match[str]], dict[str, Any]]], ...] = (
    (r"How many (\w) are in (\w+)", "count_letter_in_string", lambda m: {"a": m[2], "b": m[1]}),
    (r"(\w+)中有多少个(\w)", "count_letter_in_string", lambda m: {"a": m[1], "b": m[2]}),
    (r"([\d.]+)和([\d.]+)，哪个", "compare", lambda m: {"a": float(m[1]), "b": float(m[2])}),
)


def text_of(ask: Ask) -> str:
    """The last user message."""
    users = [m for m in ask.body.get("messages") or [] if m.get("role") == "user"]
    return str(users[-1]["content"]) if users else str(ask.body.get("prompt", ""))


def correct(ask: Ask) -> Script:
    """What a right deployment answers to the questions of Smoke, Guide and Load."""
    said = text_of(ask)
    if ask.body.get("tools") and not ask.round:
        for pattern, name, arguments in _CALLS:
            if found := re.search(pattern, said):
                written = json.dumps(arguments(found), ensure_ascii=False)
                return Script((*thought_of(ask, f"I need {name}."), *call(0, f"functions.{name}:0", name, written)), finish="tool_calls")
    if ask.round:
        return Script((*thought_of(ask, "The tool has answered."), *told("content", in_words(ask))))
    code = re.search(r"nothing else: (\S+)", said)
    answer = code[1] if code else "It predicts text."
    return Script((*thought_of(ask, "A short answer will do."), *told("content", answer)))


def in_words(ask: Ask) -> str:
    """The answer after a tool has been called, in the language of the question."""
    last = ask.body["messages"][-1]
    result = str(last["content"])
    number = re.search(r"occurs (\d+)", result)
    chinese = "中文" in text_of(ask)
    if number:
        return f"出现了{number[1]}次。" if chinese else f"It occurs {number[1]} times."
    compared = re.match(r"(\S+) is (less|greater) than (\S+)\.$", result)
    if compared:
        small, large = (compared[1], compared[3]) if compared[2] == "less" else (compared[3], compared[1])
        return f"{small}比{large}小。" if chinese else f"{small} is smaller than {large}."
    return f"The result is {result}"


@contextmanager
def playing(scripted: Scripted, play: Play, **settings: Any) -> Iterator[Scripted]:
    """The server answers every chat and completion with `play`; settings: fields of `Scripted`."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(SCENARIOS, "qa", play)
        scripted.reset()
        scripted.name = "qa"
        for name, value in settings.items():
            setattr(scripted, name, value)
        yield scripted


async def run_suite(scripted: Scripted, suite: Suite, overrides: Overrides | None = None, **options: Any) -> Report:
    endpoint = await Endpoint.connect(scripted.base_url)
    try:
        return await QaRun(endpoint, suite, overrides=overrides, **options).run()
    finally:
        await endpoint.aclose()


def one_case(**case: Any) -> Suite:
    """A suite with this case alone."""
    return Suite.model_validate({"name": "t", "title": "t", "cases": [{"id": "c", **case}]})


def outcomes(case: CaseReport) -> dict[str, str]:
    return {check.check: check.outcome for check in case.checks}


def with_template(patch: pytest.MonkeyPatch, template: Callable[[dict[str, Any]], str]) -> None:
    """The server renders conversations with `template`: the body of /tokenize → the prompt."""

    def tokenized(body: dict[str, Any], *, opens_thought: bool) -> dict[str, Any]:
        text = template(body) if "messages" in body else str(body.get("prompt") or "")
        return {"count": len(text), "tokens": list(map(ord, text)), "token_strs": [text]}

    patch.setattr(scripted_server, "tokenized", tokenized)


def kimi_template(body: dict[str, Any]) -> str:
    """As Kimi's own: thoughts and calls of the running loop are in it."""
    text = "# Tools\nnamespace functions {}\n" if body.get("tools") else ""
    for message in body["messages"]:
        text += f"<|im_{message['role']}|>{message['role']}<|im_middle|>"
        if message["role"] == "assistant":
            text += f"<think>{message.get('reasoning') or ''}</think>"
        text += message.get("content") or ""
        for made in message.get("tool_calls") or ():
            function = made["function"]
            text += f"<|tool_call_begin|>{made['id']}<|tool_call_argument_begin|>{function['arguments']}<|tool_call_end|>"
        text += "<|im_end|>"
    off = (body.get("chat_template_kwargs") or {}).get("thinking") is False
    return f"{text}<|im_assistant|>assistant<|im_middle|><think>" + ("</think>" if off else "")


def result_of(name: str, arguments: dict[str, Any]) -> str:
    return carry_out(TOOLS[name], json.dumps(arguments)).text


def changed(play: Play, **fields: Any) -> Play:
    """`play` with other fields of its Script."""

    def other(ask: Ask) -> Script | Refusal:
        script = play(ask)
        return replace(script, **fields) if isinstance(script, Script) else script

    return other
