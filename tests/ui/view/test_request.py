"""What a round sent, as JSON, curl and Python: the last two are carried out against a server that records what comes."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kimi_demo.dialect.conversation import ChatRequest
from kimi_demo.dialect.events import AnswerDelta, Event, Finished, RoundStarted, ThoughtDelta, Timed, ToolCallDelta, Usage
from kimi_demo.dialect.images import SCHEME, content, image_ids, replaced
from kimi_demo.dialect.reply import Reply, rounds
from kimi_demo.dialect.sampling import Sampling
from kimi_demo.engines.endpoint_kind import Wire
from kimi_demo.ui.texts import texts
from kimi_demo.ui.view.request import FORMS, as_curl, as_json, as_python, closed_html, received, request_html, request_text
from tests import scripted_server
from tests.scripted_server import Scripted

HARD = 'it\'s "quoted" \\ $HOME `id` $(id)\nJSON\n\ttabbed 你好 🎉 </script> \'\'\' """ {x} %s \u2028 \x07'
IMAGE = "ab" * 32


@pytest.fixture(scope="module")
def scripted() -> Iterator[Scripted]:
    with scripted_server.running() as server:
        yield server


def body(text: Any = HARD, **changes: Any) -> dict[str, Any]:
    sampling = Sampling(top_k=20, stop=("a\nb",), seed=1, json_schema={"type": "object", "properties": {"a": {"const": None}}})
    tool = {"type": "function", "function": {"name": "add", "parameters": {"type": "object", "additionalProperties": False}}}
    request = ChatRequest([{"role": "user", "content": text}], sampling, thinking=False, tools=[tool], tool_choice="auto")
    return Wire.of("vllm", "/models/k", "vllm").chat_body(request) | changes


def run_shell(script: str) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": os.environ["PATH"], "KIMI_DEMO_API_KEY": "sk-test"}
    return subprocess.run(["bash", "-eu", "-s"], input=script, capture_output=True, text=True, env=environment, timeout=60)


def run_python(script: str) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": os.environ["PATH"], "KIMI_DEMO_API_KEY": "sk-test", "PYTHONIOENCODING": "utf-8"}
    return subprocess.run([sys.executable, "-"], input=script, capture_output=True, text=True, env=environment, timeout=60)


@pytest.mark.parametrize("how", ["curl", "python"])
@pytest.mark.parametrize("sent", [body(), body("[[one_call]] x"), body(stream=False, stream_options=None)], ids=["hard", "call", "whole"])
def test_the_text_makes_the_very_request_and_shows_the_reply(how: str, sent: dict[str, Any], scripted: Scripted) -> None:
    sent = {name: value for name, value in sent.items() if value is not None}
    done = run_shell(as_curl(sent, scripted.base_url)) if how == "curl" else run_python(as_python(sent, scripted.base_url))
    assert done.returncode == 0, done.stderr
    request = scripted.chats[-1]
    assert request.body == sent and request.path == "/v1/chat/completions"
    assert request.headers["authorization"] == "Bearer sk-test"
    assert "add" in done.stdout if "one_call" in str(sent) else "Done" in done.stdout


@pytest.mark.parametrize("how", ["curl", "python"])
def test_a_raw_completion_goes_to_its_own_route(how: str, scripted: Scripted) -> None:
    sent = Wire.of("vllm", "m", "vllm").raw_body("我想问你，什么是深度学习算法？<think>\n", Sampling(temperature=0, max_tokens=1024))
    done = run_shell(as_curl(sent, scripted.base_url)) if how == "curl" else run_python(as_python(sent, scripted.base_url))
    assert done.returncode == 0, done.stderr
    assert scripted.chats[-1].body == sent and scripted.chats[-1].path == "/v1/completions" and done.stdout.strip()


def test_an_image_of_megabytes_goes_through_curl(scripted: Scripted) -> None:
    sent = replaced(body(content("hi", [IMAGE])), lambda image: "data:image/png;base64," + "A" * 3_000_000)
    assert run_shell(as_curl(sent, scripted.base_url)).returncode == 0
    assert scripted.chats[-1].body == sent


JSON: Any = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(JSON)
def test_any_body_is_the_same_in_every_form(value: Any) -> None:
    sent = {"model": "m", "messages": value, "odd": value}
    caught: dict[str, Any] = {}

    class Recorder:
        def __init__(self, **client: Any) -> None:
            self.chat = self.completions = self

        def create(self, **given: Any) -> "Recorder":
            caught.update(given | given.pop("extra_body"))
            return self

        def model_dump_json(self, indent: int) -> str:
            return ""

    script = as_python(sent, "http://127.0.0.1:1/v1").replace("from openai import OpenAI", "")
    exec(compile(script, "shown", "exec"), {"OpenAI": Recorder, "print": lambda *_, **__: None})
    assert caught == sent
    assert json.loads(as_json(sent)) == sent
    document = as_curl(sent, "http://127.0.0.1:1/v1").split("<<'JSON'\n", 1)[1]
    assert document.split("\n").index("JSON") == len(document.split("\n")) - 2, "the end mark stands once, at the end"


def reply(request: dict[str, Any] | None = None) -> Reply:
    events: list[Event] = [
        RoundStarted(0, body() if request is None else request),
        ThoughtDelta("hm"),
        AnswerDelta("hi"),
        ToolCallDelta(0, "functions.add:0", "add", '{"a": 1}'),
        Usage(10, 4, 1, 3),
        Finished("stop"),
    ]
    return rounds(Timed(0.0, event) for event in events)[0]


def test_what_was_received_is_put_together() -> None:
    assert received(reply()) == {
        "choices": [
            {
                "index": 0,
                "message": {
                    "role": "assistant",
                    "content": "hi",
                    "reasoning": "hm",
                    "tool_calls": [{"id": "functions.add:0", "type": "function", "function": {"name": "add", "arguments": '{"a": 1}'}}],
                },
                "finish_reason": "stop",
            }
        ],
        "usage": {
            "prompt_tokens": 10,
            "completion_tokens": 4,
            "completion_tokens_details": {"reasoning_tokens": 1},
            "prompt_tokens_details": {"cached_tokens": 3},
        },
    }


def test_images_are_short_where_they_are_shown_and_whole_where_they_are_copied() -> None:
    with_image = reply(body(content("look", [IMAGE])))
    html = request_html(with_image, "http://h/v1", "kimi/request/r/0", lambda image: f"<{image[:4]}>", texts("en"))
    assert html.count("&lt;abab&gt;") == 3 and SCHEME not in html
    assert html.count('data-copy-from="kimi/request/r/0/') == 3
    for form in FORMS[:3]:
        assert "data:x" in request_text(form, with_image, "http://h/v1", lambda image: "data:x")
    assert "data-copy-from" not in request_html(reply(), "http://h/v1", "w", lambda image: image, texts("en"))


def test_what_is_shown_is_text_and_nothing_else() -> None:
    html = request_html(reply(body("<img src=x onerror=alert(1)></pre><script>")), "http://h/v1", "w", lambda image: image, texts("en"))
    assert "<img" not in html and "<script" not in html


def test_a_round_that_sent_nothing_says_so() -> None:
    assert "Nothing was sent." in request_html(Reply(), "http://h/v1", "w", lambda image: image, texts("en"))


def test_the_closed_box_knows_its_round() -> None:
    assert 'data-load="kimi/request/abc/2"' in closed_html("run-abc-2", texts("en"))


def test_references_to_images() -> None:
    message = {"role": "user", "content": content("hi", ["a", "b"])}
    assert image_ids({"messages": [message, {"role": "user", "content": f"{SCHEME}no"}]}) == ["a", "b"]
    assert content("hi", []) == "hi"
    assert image_ids(replaced(message, lambda image: "data:")) == [] and image_ids(message) == ["a", "b"]
