"""The scripted server itself: tests of other things stand on it."""

import asyncio
import json
import sys
import time
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.scripted_scenarios import SCENARIOS, marker, play
from tests.scripted_script import Ask, Refusal, pieces
from tests.scripted_server import MODEL_ID, Scripted, running
from tests.scripted_wire import frames, recut, whole

STREAM = {"stream": True, "stream_options": {"include_usage": True, "continuous_usage_stats": True}}
MESSAGES = [{"role": "user", "content": "hi"}]
CUT = ("dies", "error_event", "lost_call")
QUICK: dict[str, dict[str, Any]] = {"silent": {"seconds": 0}, "long_thought": {"tokens": 3, "rate": None}}


@pytest.fixture(scope="module")
def server() -> Iterator[Scripted]:
    with running() as started:
        yield started


@pytest.fixture
def scripted(server: Scripted) -> Scripted:
    server.reset()
    return server


def chat(scripted: Scripted, text: str = "hi", **fields: Any) -> httpx2.Response:
    body = {"model": MODEL_ID, "messages": [{"role": "user", "content": text}]} | fields
    return httpx2.post(f"{scripted.base_url}/chat/completions", json=body, trust_env=False)


def chunks_of(sse: str) -> list[dict[str, Any]]:
    lines = [line.removeprefix("data: ") for line in sse.split("\n\n") if line]
    assert lines[-1] == "[DONE]"
    return [json.loads(line) for line in lines[:-1]]


def said(chunks: list[dict[str, Any]], field: str) -> str:
    return "".join(choice["delta"].get(field) or "" for chunk in chunks for choice in chunk.get("choices", ()))


@given(st.text())
def test_pieces_are_the_text(text: str) -> None:
    assert "".join(pieces(text)) == text


@pytest.mark.parametrize("name", [name for name in SCENARIOS if name not in CUT])
def test_every_scenario_says_the_same_streamed_and_whole(name: str) -> None:
    streamed = Ask({"messages": MESSAGES, **STREAM})
    script = play(name, streamed, QUICK.get(name, {}))
    if isinstance(script, Refusal):
        assert script == play(name, Ask({"messages": MESSAGES}), {}) or name == "no_stream_options"
        return
    chunks = chunks_of(b"".join(frames(script, streamed, "m")).decode())
    reply = whole(script, Ask({"messages": MESSAGES}), "m")
    for field in ("content", "reasoning", "reasoning_content"):
        assert said(chunks, field) == (reply["choices"][0]["message"].get(field) or "")
    if script.usage:
        assert chunks[-1]["choices"] == [] and chunks[-1]["usage"] == reply["usage"]
        assert all("usage" in chunk for chunk in chunks if "choices" in chunk)


def test_usage_comes_only_as_asked(scripted: Scripted) -> None:
    assert not any("usage" in chunk for chunk in chunks_of(chat(scripted, stream=True).text))
    final = chunks_of(chat(scripted, stream=True, stream_options={"include_usage": True}).text)
    assert ["usage" in chunk for chunk in final] == [False] * (len(final) - 1) + [True]


def test_the_prompt_names_the_scenario_before_the_model_and_the_server(scripted: Scripted) -> None:
    scripted.scenario("answer_only", answer="server")
    assert chat(scripted).json()["choices"][0]["message"]["content"] == "server"
    assert chat(scripted, model="scenario:one_call").json()["choices"][0]["finish_reason"] == "tool_calls"
    marked = chat(scripted, "please [[answer_only answer=prompt]]", model="scenario:one_call")
    assert marked.json()["choices"][0]["message"]["content"] == "prompt"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[[dies after=3]]", ("dies", {"after": 3})),
        ("a [[long_thought tokens=9 rate=2.5]] b", ("long_thought", {"tokens": 9, "rate": 2.5})),
        ("[[reasoning]]", ("reasoning", {})),
        ("[[nothing of ours]]", None),
        ("a [[1, 2], [3, 4]] matrix", None),
    ],
)
def test_marker(text: str, expected: Any) -> None:
    assert marker(text) == expected


def test_a_scenario_or_option_that_is_none_fails_in_the_test(scripted: Scripted) -> None:
    with pytest.raises(KeyError):
        scripted.scenario("nonsense")
    with pytest.raises(TypeError):
        scripted.scenario("reasoning", speed=3)


def test_requests_are_recorded(scripted: Scripted) -> None:
    chat(scripted, "to be recorded", temperature=0.5)
    (request,) = scripted.chats
    assert (request.method, request.path, request.body["temperature"]) == ("POST", "/v1/chat/completions", 0.5)
    assert request.headers["content-type"] == "application/json" and request.aborted_at is None


def test_the_other_routes(scripted: Scripted) -> None:
    with httpx2.Client(base_url=scripted.root, trust_env=False) as client:
        assert client.get("/health").status_code == 200
        assert client.get("/version").json() == {"version": "0.32.0"}
        card = client.get("/v1/models").json()["data"][0]
        assert (card["id"], card["root"], card["max_model_len"], card["owned_by"]) == (MODEL_ID, MODEL_ID, 8192, "vllm")
        body = {"messages": MESSAGES, "return_token_strs": True, "chat_template_kwargs": {"thinking": True}}
        counted = client.post("/tokenize", json=body).json()
        assert counted["count"] == 5 and counted["token_strs"][-1] == "<think>"
        prompt = client.post("/detokenize", json={"tokens": counted["tokens"]}).json()["prompt"]
        assert prompt.endswith("<|im_end|><|im_assistant|>assistant<|im_middle|><think>")
        assert client.get("/nothing").status_code == 404
        scripted.missing = {"/version"}
        assert client.get("/version").status_code == 404
        scripted.api_key = "k"
        assert client.get("/v1/models").status_code == 401 and client.get("/health").status_code == 200
        assert client.get("/v1/models", headers={"Authorization": "Bearer k"}).status_code == 200


def test_cutting_goes_through_characters(scripted: Scripted) -> None:
    parts = recut(["思考🎉".encode()], 2)
    assert b"".join(parts).decode() == "思考🎉"
    with pytest.raises(UnicodeDecodeError):
        parts[1].decode()


def test_a_dying_server_closes_the_socket(scripted: Scripted) -> None:
    scripted.scenario("dies", after=2)
    with pytest.raises(httpx2.RemoteProtocolError):
        chat(scripted, stream=True)


async def test_running_and_aborted_requests_are_seen(scripted: Scripted) -> None:
    async def gauge() -> float:
        text = (await client.get(f"{scripted.root}/metrics")).text
        return float(text.splitlines()[-1].split()[-1])

    scripted.scenario("silent", seconds=60)
    body = {"model": MODEL_ID, "messages": MESSAGES, "stream": True}
    async with httpx2.AsyncClient(trust_env=False) as client:
        assert await gauge() == 0
        async with client.stream("POST", f"{scripted.base_url}/chat/completions", json=body):
            assert await gauge() == 1
            since = time.monotonic()
        (request,) = await scripted.aborted()
        assert request.aborted_at is not None and since - 0.01 <= request.aborted_at < since + 1
        assert request.sent == 0
        assert await gauge() == 0


async def _read(host: str, port: int, body: bytes) -> int:
    """Chunks of one stream, read from a bare socket so that the reading costs next to nothing."""
    reader, writer = await asyncio.open_connection(host, port)
    head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    writer.write(head.encode() + body)
    count, tail = 0, b""
    while not tail.endswith(b"0\r\n\r\n"):
        got = await reader.read(65536)
        assert got, "the server closed the connection"
        count, tail = count + got.count(b"data: "), (tail + got)[-5:]
    writer.close()
    return count


async def test_alone_it_holds_64_streams_at_50_tokens_a_second() -> None:
    """Run as a program, as benchmarks do. The bound is half the speed: the machine may be busy, but not that slow."""
    command = [sys.executable, "-m", "tests.scripted_server", "--port", "0", "--scenario", "long_thought"]
    options = ["--option", "tokens=150", "--option", "rate=50"]
    process = await asyncio.create_subprocess_exec(*command, *options, stdout=asyncio.subprocess.PIPE)
    try:
        assert process.stdout is not None
        url = httpx2.URL((await process.stdout.readline()).decode().split()[-1])
        assert url.port is not None
        body = json.dumps({"model": "m", "messages": MESSAGES, **STREAM}).encode()
        since = time.monotonic()
        counts = await asyncio.gather(*(_read(url.host, url.port, body) for _ in range(64)))
        seconds = time.monotonic() - since
        assert set(counts) == {1 + 150 + 2 + 1 + 1 + 1}  # role, thought, answer, finish, usage, [DONE]
        assert 150 / 50 <= seconds < 2 * 156 / 50
    finally:
        process.terminate()
        await process.wait()
