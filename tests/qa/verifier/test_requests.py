"""Moonshot's verifier data: read by the line, sent as it stands, judged as the verifier judges, resumable."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from kimi_demo.dialect.failure import Failure
from kimi_demo.engines.endpoint import Endpoint
from kimi_demo.qa.verifier.requests import read_requests
from kimi_demo.qa.verifier.results import Journal, Result, read_reference, summary
from kimi_demo.qa.verifier.running import VerifierRun
from tests.qa.playing import playing
from tests.scripted_scenarios import rejected, too_many
from tests.scripted_script import Ask, Refusal, Script, call, told
from tests.scripted_server import Scripted, running

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOL = {"type": "function", "function": {"name": "weather", "description": "", "parameters": SCHEMA}}


@pytest.fixture(scope="module")
def server() -> Iterator[Scripted]:
    with running() as started:
        yield started


@pytest.fixture
async def endpoint(server: Scripted) -> AsyncIterator[Endpoint]:
    connected = await Endpoint.connect(server.base_url)
    yield connected
    await connected.aclose()


def file_of(tmp_path: Path, *bodies: Any) -> Path:
    path = tmp_path / "samples.jsonl"
    path.write_text("".join(json.dumps(body) + "\n" for body in bodies), encoding="utf-8")
    return path


def body(text: str, **more: Any) -> dict[str, Any]:
    return {"model": "kimi-k2", "messages": [{"role": "user", "content": text}], "tools": [TOOL], **more}


async def run(endpoint: Endpoint, path: Path, output: Path, *, resume: bool = False, **options: Any) -> dict[int, Result]:
    file = read_requests(path)
    with Journal(output, {"requests_sha256": file.sha256}, resume=resume) as journal:
        await VerifierRun(endpoint, file.requests, journal, pause_s=0.01, **options).run()
        return dict(journal.done)


def answers(name: str, arguments: str) -> Script:
    return Script(call(0, f"functions.{name}:0", name, arguments), finish="tool_calls")


def play(ask: Ask) -> Script | Refusal:
    said = ask.body["messages"][-1]["content"]
    match said:
        case "good":
            return answers("weather", '{"city": "Bern"}')
        case "bad":
            return answers("weather", '{"town": "Bern"}')
        case "json":
            return answers("weather", '{"city": "Bern"')
        case "unknown":
            return answers("launch", "{}")
        case "list":
            return answers("weather", '["Bern"]')
        case "lost":
            return Script((), finish="tool_calls")
        case "long":
            return Script(told("content", "It is"), finish="length")
        case "refused":
            return rejected(ask)
    return Script(told("content", "Sunny."))


async def test_results_and_their_sums(server: Scripted, endpoint: Endpoint, tmp_path: Path) -> None:
    words = ("good", "bad", "json", "unknown", "list", "lost", "long", "refused", "talk")
    path = file_of(tmp_path, *(body(word, stream=index % 2 == 0) for index, word in enumerate(words)))
    with playing(server, play):
        done = await run(endpoint, path, tmp_path / "out.jsonl")
    by_word = {word: done[index] for index, word in enumerate(words, 1)}
    assert by_word["good"].tool_calls_valid is True and by_word["good"].problems == []
    for word in ("bad", "json", "unknown", "list"):
        assert by_word[word].tool_calls_valid is False and by_word[word].problems, word
    assert by_word["lost"].finish_reason == "tool_calls" and by_word["lost"].tool_calls_valid is None
    assert by_word["refused"].status == "failed" and "endpoint.rejected" in by_word["refused"].response["error"]
    reference = {1: "tool_calls", 2: "stop", 7: "tool_calls", 9: "stop", 99: "tool_calls"}
    found = summary("kimi", done.values(), reference)
    assert (found.success_count, found.failure_count, found.finish_stop, found.finish_others) == (8, 1, 1, 1)
    assert found.finish_others_detail == {"length": 1}
    assert (found.finish_tool_calls, found.successful_tool_call_count, found.schema_validation_error_count) == (6, 1, 5)
    assert found.schema_accuracy == pytest.approx(1 / 6)
    assert found.counts == {"TP": 1, "FP": 1, "FN": 1, "TN": 1} and found.tool_call_f1 == 0.5 and found.reference_requests == 4
    assert read_reference(tmp_path / "out.jsonl") == {index: each.finish_reason for index, each in done.items() if index != 8}


async def test_requests_are_sent_as_they_stand(server: Scripted, endpoint: Endpoint, tmp_path: Path) -> None:
    past = {"role": "assistant", "content": "", "reasoning_content": "Hm.", "tool_calls": [{"id": "functions.weather:0"}]}
    first: dict[str, Any] = {
        "messages": [{"role": "_input", "content": "s"}, past, {"role": "user", "content": "talk"}],
        "seed": 7,
        "tools": [TOOL],
    }
    path = file_of(tmp_path, first, body("talk", stream=True, temperature=0.6, max_tokens=64000, tool_choice="auto"))
    with playing(server, play):
        await run(endpoint, path, tmp_path / "out.jsonl", at_once=1)
    one, other = (chat.body for chat in server.chats)
    assert one == {
        "model": server.model_ids[0],
        "messages": [{"role": "system", "content": "s"}, *first["messages"][1:]],
        "seed": 7,
        "tools": [TOOL],
    }
    assert other.pop("stream_options") and other == body("talk", stream=True, temperature=0.6, max_tokens=64000, tool_choice="auto") | {
        "model": server.model_ids[0]
    }


async def test_going_on_sends_what_is_missing_and_what_failed(server: Scripted, endpoint: Endpoint, tmp_path: Path) -> None:
    path, output = file_of(tmp_path, *(body(word) for word in ("good", "refused", "talk"))), tmp_path / "out.jsonl"
    with playing(server, play):
        await run(endpoint, path, output)
    lines = output.read_text().splitlines(keepends=True)
    done_talk = next(line for line in lines if '"data_index": 3' in line)
    output.write_text("".join(line for line in lines if line != done_talk) + done_talk[:40])  # as a crash leaves it
    with playing(server, lambda ask: Script(told("content", "Now."))):
        done = await run(endpoint, path, output, resume=True)
        assert sorted(chat.body["messages"][-1]["content"] for chat in server.chats) == ["refused", "talk"]
    assert {index: result.status for index, result in done.items()} == {1: "success", 2: "success", 3: "success"}
    for line in output.read_text().splitlines():
        json.loads(line)
    with playing(server, play):
        await run(endpoint, path, output, resume=True)
        assert not server.chats


async def test_another_run_is_not_gone_on_with(tmp_path: Path) -> None:
    output = tmp_path / "out.jsonl"
    with Journal(output, {"model": "a", "body": {}}, resume=False) as journal:
        journal.add(Result(1, "success"))
    for about, resume, code in (
        ({"model": "a", "body": {}}, False, "qa.results_exist"),
        ({"model": "b", "body": {}}, True, "qa.results_differ"),
    ):
        with pytest.raises(Failure) as caught:
            Journal(output, about, resume=resume)
        assert caught.value.code == code
    with Journal(output, {"model": "a", "body": {}}, resume=True) as journal:
        assert journal.finished == {1}
    with pytest.raises(Failure) as caught:
        Journal(tmp_path, {}, resume=True)
    assert caught.value.code in ("qa.results_differ", "qa.unwritable")


async def test_a_busy_server_is_asked_again(server: Scripted, endpoint: Endpoint, tmp_path: Path) -> None:
    count = iter(range(10))
    with playing(server, lambda ask: too_many(ask) if next(count) < 2 else Script(told("content", "Now."))):
        done = await run(endpoint, file_of(tmp_path, body("talk")), tmp_path / "out.jsonl")
    assert done[1].status == "success" and len(server.chats) == 3


async def test_a_server_that_goes_away_ends_the_run_and_leaves_the_rest_for_later(tmp_path: Path) -> None:
    with running() as other:
        endpoint = await Endpoint.connect(other.base_url)
    path = file_of(tmp_path, *(body("talk") for _ in range(50)))
    with pytest.raises(Failure) as caught:
        await run(endpoint, path, tmp_path / "out.jsonl", at_once=2)
    await endpoint.aclose()
    assert caught.value.code == "endpoint.refused"
    assert len((tmp_path / "out.jsonl").read_text().splitlines()) < 10


async def test_stopping_closes_the_open_requests(server: Scripted, endpoint: Endpoint, tmp_path: Path) -> None:
    path = file_of(tmp_path, *(body("talk", stream=True) for _ in range(9)))
    with playing(server, lambda ask: Script((), silence_s=600)):
        task = asyncio.create_task(run(endpoint, path, tmp_path / "out.jsonl", at_once=3))
        await server.arrived(3)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await server.aborted(3)
    assert not endpoint.as_sent


@pytest.mark.parametrize(
    ("written", "line", "said"),
    [
        (b'{"messages": [{"role": "user"}]}\n\n{"messages": }\n', 3, "no JSON"),
        (b"[1]\n", 1, "an object"),
        (b'{"messages": []}\n', 1, "messages"),
        (b'{"messages": ["hi"]}\n', 1, "messages"),
        (b'{"messages": [{}], "tools": {}}\n', 1, "tools"),
        (b'{"messages": [{}]}\n\xff\xfe\n', 2, "UTF-8"),
        (b"[" * 100_000, 1, "JSON"),
    ],
)
def test_a_line_that_is_no_request_is_named(written: bytes, line: int, said: str, tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(written)
    with pytest.raises(Failure) as caught:
        read_requests(path)
    assert caught.value.code == "qa.request_wrong" and caught.value.params["line"] == str(line) and said in caught.value.params["problem"]


def test_fields_for_every_request(tmp_path: Path) -> None:
    file = read_requests(file_of(tmp_path, body("hi", temperature=1.0, n=2)), {"temperature": 0.6, "n": None})
    assert file.requests[0].body["temperature"] == 0.6 and "n" not in file.requests[0].body and "model" not in file.requests[0].body


@pytest.mark.parametrize(("written", "code"), [(None, "qa.unreadable"), (b"", "qa.no_requests"), (b"\n \n", "qa.no_requests")])
def test_no_requests(written: bytes | None, code: str, tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    if written is not None:
        path.write_bytes(written)
    with pytest.raises(Failure) as caught:
        read_requests(path)
    assert caught.value.code == code


def test_no_reference(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text('{"a": 1}\nnonsense\n')
    with pytest.raises(Failure) as caught:
        read_reference(path)
    assert caught.value.code == "qa.no_reference"
