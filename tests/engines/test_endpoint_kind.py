"""What goes over the wire, by kind of server."""

from dataclasses import replace
from typing import Any

import pytest

from kimi_demo.dialect.conversation import ChatRequest, tool_answer, user
from kimi_demo.dialect.sampling import Sampling
from kimi_demo.engines.endpoint_kind import Kind, Wire, kind_by_name

CALL = {"id": "functions.add:0", "type": "function", "function": {"name": "add", "arguments": "{}"}}
LOOP = (user("hi"), {"role": "assistant", "content": None, "reasoning": "hm", "tool_calls": [CALL]}, tool_answer("functions.add:0", "3"))
SAMPLING = Sampling(temperature=0.6, top_p=0.9, top_k=20, min_p=0.0, max_tokens=77, seed=5, thinking_token_budget=100)
TOOL = {"type": "function", "function": {"name": "add", "description": "", "parameters": {"type": "object"}}}
REQUEST = ChatRequest(LOOP, SAMPLING, thinking=False, tools=(TOOL,), tool_choice="auto")


def body(kind: Kind, owner: str = "", request: ChatRequest = REQUEST, stream: bool = True) -> dict[str, Any]:
    return Wire.of(kind, "m", owner).chat_body(request, stream=stream)


def test_vllm() -> None:
    assert body("vllm", "vllm") == {
        "model": "m",
        "messages": list(LOOP),
        "stream": True,
        "stream_options": {"include_usage": True, "continuous_usage_stats": True},
        "temperature": 0.6,
        "top_p": 0.9,
        "max_tokens": 77,
        "seed": 5,
        "top_k": 20,
        "min_p": 0.0,
        "thinking_token_budget": 100,
        "chat_template_kwargs": {"thinking": False},
        "tools": [TOOL],
        "tool_choice": "auto",
    }


@pytest.mark.parametrize("thinking", [True, False, 1, 0, "yes", ""])
def test_the_switch_is_a_json_boolean_and_alone(thinking: Any) -> None:
    kwargs = body("vllm", request=replace(REQUEST, thinking=thinking))["chat_template_kwargs"]
    assert kwargs == {"thinking": bool(thinking)}
    assert type(kwargs["thinking"]) is bool


def test_moonshot_takes_its_own_switch_and_no_sampling() -> None:
    sent = body("moonshot")
    assert sent["thinking"] == {"type": "disabled"}
    assert sent.keys() == {"model", "messages", "stream", "stream_options", "max_tokens", "thinking", "tools", "tool_choice"}
    assert body("moonshot", request=replace(REQUEST, thinking=True))["thinking"] == {"type": "enabled"}


def test_openai_takes_no_switch_and_no_extras() -> None:
    sent = body("openai")
    assert sent.keys() == {
        "model",
        "messages",
        "stream",
        "stream_options",
        "temperature",
        "top_p",
        "max_tokens",
        "seed",
        "tools",
        "tool_choice",
    }
    assert sent["stream_options"] == {"include_usage": True}


@pytest.mark.parametrize(
    ("kind", "owner", "field"),
    [("vllm", "vllm", "reasoning"), ("vllm", "sglang", "reasoning_content"), ("moonshot", "", "reasoning_content"), ("openai", "", None)],
)
def test_reasoning_goes_back_under_the_name_that_the_server_reads(kind: Kind, owner: str, field: str | None) -> None:
    message = body(kind, owner)["messages"][1]
    assert {name: value for name, value in message.items() if "reasoning" in name} == ({field: "hm"} if field else {})
    assert message["tool_calls"] == [CALL]
    assert LOOP[1]["reasoning"] == "hm", "the conversation itself is not touched"


def test_unstreamed_and_weaker() -> None:
    assert "stream" not in body("vllm", stream=False) and "stream_options" not in body("vllm", stream=False)
    wire = Wire.of("vllm", "m", "vllm").asking_less()
    assert wire is not None and wire.chat_body(REQUEST)["stream_options"] == {"include_usage": True}
    wire = wire.asking_less()
    assert wire is not None and "stream_options" not in wire.chat_body(REQUEST) and wire.chat_body(REQUEST)["stream"] is True
    assert wire.asking_less() is None


def test_no_tools_no_tool_choice() -> None:
    sent = body("vllm", request=ChatRequest([user("hi")], Sampling(), tool_choice="auto"))
    assert "tools" not in sent and "tool_choice" not in sent and "top_k" not in sent and "seed" not in sent


def test_tokenize_renders_the_same_prompt() -> None:
    assert Wire.of("vllm", "m", "vllm").tokenize_body(REQUEST) == {
        "model": "m",
        "messages": list(LOOP),
        "tools": [TOOL],
        "chat_template_kwargs": {"thinking": False},
    }


@pytest.mark.parametrize(
    ("url", "owners", "kind"),
    [
        ("https://api.moonshot.cn/v1", [], "moonshot"),
        ("https://api.moonshot.ai/v1", ["vllm"], "moonshot"),
        ("https://moonshot.ai.evil.example/v1", [], None),
        ("https://notmoonshot.ai/v1", [], None),
        ("http://gateway/v1", ["moonshot"], "moonshot"),
        ("http://host/v1", ["vllm"], "vllm"),
        ("http://host/v1", ["sglang"], "vllm"),
        ("http://host/v1", ["openai"], None),
    ],
)
def test_kind_by_name(url: str, owners: list[str], kind: str | None) -> None:
    assert kind_by_name(url, owners) == kind


EVERYTHING = Sampling(
    top_k=20,
    min_p=0.1,
    seed=3,
    stop=("END",),
    presence_penalty=0.5,
    frequency_penalty=-0.5,
    repetition_penalty=1.1,
    json_schema={"type": "object"},
)
RESPONSE_FORMAT = {"type": "json_schema", "json_schema": {"name": "answer", "schema": {"type": "object"}}}


def test_each_kind_gets_the_parameters_that_it_takes_and_no_others() -> None:
    request = ChatRequest([user("hi")], EVERYTHING)
    shared = {"stop": ["END"], "seed": 3, "presence_penalty": 0.5, "frequency_penalty": -0.5}
    vllm = body("vllm", "vllm", request=request)
    assert shared.items() <= vllm.items() and (vllm["top_k"], vllm["min_p"], vllm["repetition_penalty"]) == (20, 0.1, 1.1)
    assert vllm["structured_outputs"] == {"json": {"type": "object"}} and "response_format" not in vllm
    sglang = body("vllm", "sglang", request=request)
    assert sglang["response_format"] == RESPONSE_FORMAT and "structured_outputs" not in sglang and sglang["top_k"] == 20
    openai = body("openai", "", request=request)
    assert shared.items() <= openai.items() and openai["response_format"] == RESPONSE_FORMAT
    assert not {"top_k", "min_p", "repetition_penalty", "structured_outputs"} & set(openai)
    moonshot = body("moonshot", "", request=request)
    assert set(moonshot) - {"model", "messages", "stream", "stream_options", "thinking"} == {"max_tokens", "stop"}


def test_extra_fields_stand_in_the_place_of_others_and_none_leaves_one_out() -> None:
    extra = {"chat_template_kwargs": {"enable_thinking": False}, "temperature": None, "n": 1}
    sent = body("vllm", request=replace(REQUEST, extra=extra))
    assert sent["chat_template_kwargs"] == {"enable_thinking": False} and sent["n"] == 1
    assert "temperature" not in sent and sent["top_p"] == 0.9


@pytest.mark.parametrize(("kind", "sent"), [("vllm", True), ("openai", True), ("moonshot", False)])
def test_one_call_at_a_time_is_asked_for_where_the_server_knows_the_field(kind: Kind, sent: bool) -> None:
    request = replace(REQUEST, parallel=False)
    assert ("parallel_tool_calls" in body(kind, request=request)) is sent
    assert body(kind, request=request).get("parallel_tool_calls") is (False if sent else None)
    assert "parallel_tool_calls" not in body(kind)
    assert "parallel_tool_calls" not in body(kind, request=replace(request, tools=()))
