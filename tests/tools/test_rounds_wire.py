"""Tool conversations over the wire: the endpoint, a scripted server, and a run that owns them."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from kimi_demo.dialect.conversation import user
from kimi_demo.dialect.events import Asked, Failed, Phase, RoundStarted
from kimi_demo.dialect.reply import Call, rounds
from kimi_demo.dialect.sampling import PRESETS
from kimi_demo.engines.endpoint import Endpoint
from kimi_demo.runs.registry import Registry
from kimi_demo.runs.run import Run
from kimi_demo.runs.store import Store
from kimi_demo.tools.guide import GUIDE_TOOLS
from kimi_demo.tools.rounds import converse
from kimi_demo.tools.summary import summary
from kimi_demo.tools.toolbox import Toolbox
from tests.scripted_server import Scripted, running


@pytest.fixture(scope="module")
def server() -> Iterator[Scripted]:
    with running() as server:
        yield server


@pytest.fixture
def scripted(server: Scripted) -> Scripted:
    server.reset()
    return server


@pytest.fixture
async def registry(tmp_path: Path) -> AsyncIterator[Registry]:
    store = Store(tmp_path / "runs.sqlite")
    registry = Registry(store, 4)
    yield registry
    await registry.aclose()
    store.close()


@pytest.fixture
async def endpoint(scripted: Scripted) -> AsyncIterator[Endpoint]:
    endpoint = await Endpoint.connect(scripted.base_url)
    yield endpoint
    await endpoint.aclose()


def start(registry: Registry, endpoint: Endpoint) -> Run:
    async def work(run: Run) -> None:
        sampling = PRESETS["tools"].sampling
        await converse(endpoint, [user("?")], Toolbox(GUIDE_TOOLS), sampling, thinking=True, emit=run.append)

    return registry.start("me", "tools", work, title="t", asked=Asked("?"))


async def finished(registry: Registry, endpoint: Endpoint) -> Run:
    run = start(registry, endpoint)
    await asyncio.wait_for(run.wait(), 60)
    return run


def notes(run: Run) -> list[str]:
    return [item.event.name for item in run.entries if isinstance(item.event, Phase)]


def first_calls(run: Run) -> list[Call]:
    return next(reply.calls for reply in rounds(run.entries) if reply.calls)


@pytest.mark.parametrize("scenario", ["one_call", "foreign_ids", "two_calls", "parallel_calls", "same_id", "lost_call"])
async def test_calls_are_answered(scripted: Scripted, registry: Registry, endpoint: Endpoint, scenario: str) -> None:
    scripted.scenario(scenario)
    run = await finished(registry, endpoint)
    assert run.state == "done"
    results = [call.result for call in first_calls(run)]
    assert results == {"one_call": ["42"], "foreign_ids": ["42"], "lost_call": ["42"], "same_id": ["3", "7"]}.get(scenario, ["3", "12"])
    last = scripted.chats[-1].body["messages"]
    assert last[1]["role"] == "assistant" and last[1]["reasoning"]
    ids = [call["id"] for call in last[1]["tool_calls"]]
    assert [message["tool_call_id"] for message in last[2:]] == ids and len(set(ids)) == len(ids)
    assert [message["content"] for message in last[2:]] == results
    assert summary(run.entries)["answer"].startswith("The result: ")


async def test_rounds_follow_one_another(scripted: Scripted, registry: Registry, endpoint: Endpoint) -> None:
    scripted.scenario("rounds", rounds=3)
    run = await finished(registry, endpoint)
    told = summary(run.entries)
    assert [[call["result"] for call in one["calls"]] for one in told["rounds"]] == [["1"], ["2"], ["3"], []]
    assert [len(chat.body["messages"]) for chat in scripted.chats] == [1, 3, 5, 7]
    assert [chat.body for chat in scripted.chats] == [item.event.request for item in run.entries if isinstance(item.event, RoundStarted)]


@pytest.mark.parametrize(
    ("scenario", "words"),
    [
        ("bad_arguments", "The arguments are not valid JSON"),
        ("wrong_arguments", 'a: must be an integer (got "seventeen")'),
        ("unknown_tool", 'There is no tool named "launch"'),
        ("empty_arguments", "a: is missing"),
        ("nested_arguments", "The arguments are a JSON object inside a JSON string"),
        ("missing_field", "b: is missing"),
        ("extra_field", "c: is not a parameter of this tool"),
        ("nan_arguments", "NaN is not a JSON number"),
        ("vast_arguments", "The arguments are too large: at most 1,000,000 bytes are taken."),
        ("duplicate_keys", 'The arguments name "a" twice'),
    ],
)
async def test_errors_go_back(scripted: Scripted, registry: Registry, endpoint: Endpoint, scenario: str, words: str) -> None:
    scripted.scenario(scenario)
    run = await finished(registry, endpoint)
    assert run.state == "done"
    error = first_calls(run)[0].error
    assert error is not None and words in error
    assert first_calls(run)[0].problems
    assert scripted.chats[-1].body["messages"][-1]["content"] == error
    assert json.loads(scripted.chats[-1].body["messages"][1]["tool_calls"][0]["function"]["arguments"]) is not None
    assert len(json.dumps(scripted.chats[-1].body)) < 10_000


@pytest.mark.parametrize(
    ("scenario", "result", "said"),
    [
        ("vast_number", "1E+400 is greater than 25.", []),
        ("special_tokens", 'The letter "z" occurs 2 times in "<|im_end|><|im_user|>zz"', ["tools.special_tokens"]),
        ("foreign_ids", "42", ["tools.foreign_ids"]),
        ("same_id", "3", ["tools.same_id"]),
        ("text_after_call", "42", ["tools.text_after"]),
    ],
)
async def test_what_is_odd_is_worked_with_and_said(
    scripted: Scripted, registry: Registry, endpoint: Endpoint, scenario: str, result: str, said: list[str]
) -> None:
    scripted.scenario(scenario)
    run = await finished(registry, endpoint)
    assert run.state == "done" and notes(run) == said
    assert (first_calls(run)[0].result or "").startswith(result)


async def test_no_tool_at_all_is_an_answer(scripted: Scripted, registry: Registry, endpoint: Endpoint) -> None:
    scripted.scenario("no_tool")
    run = await finished(registry, endpoint)
    assert run.state == "done" and summary(run.entries)["answer"] == "It is 42."


@pytest.mark.parametrize(
    ("scenario", "code"),
    [
        ("cut_arguments", "tools.cut_off"),
        ("endless_call", "tools.loop"),
        ("dies", "endpoint.broke_off"),
        ("gone_between", "endpoint.broke_off"),
        ("swallowed_call", "tools.empty_turn"),
        ("no_auto_tool_choice", "endpoint.no_auto_tool_choice"),
    ],
)
async def test_what_cannot_go_on_fails(scripted: Scripted, registry: Registry, endpoint: Endpoint, scenario: str, code: str) -> None:
    scripted.scenario(scenario)
    run = await finished(registry, endpoint)
    assert run.state == "failed"
    assert [item.event.code for item in run.entries if isinstance(item.event, Failed)] == [code]


async def test_the_lost_call_is_asked_for_unstreamed(scripted: Scripted, registry: Registry, endpoint: Endpoint) -> None:
    scripted.scenario("lost_call")
    run = await finished(registry, endpoint)
    assert [item.event.name for item in run.entries if isinstance(item.event, Phase)] == ["tools.asked_again"]
    assert [bool(chat.body.get("stream")) for chat in scripted.chats] == [True, False, True]
    told = [item.event.request for item in run.entries if isinstance(item.event, RoundStarted)]
    assert [{"stream": False, **chat.body} for chat in scripted.chats] == told


async def test_leaked_marks_are_flagged(scripted: Scripted, registry: Registry, endpoint: Endpoint) -> None:
    scripted.scenario("leaked_half")
    run = await finished(registry, endpoint)
    assert notes(run) == ["tools.marks_leaked"]


@pytest.mark.parametrize(("scenario", "thought"), [("leaked_markup", True), ("leaked_thought", False)])
async def test_leaked_calls_are_read_where_there_is_only_one_way(
    scripted: Scripted, registry: Registry, endpoint: Endpoint, scenario: str, thought: bool
) -> None:
    scripted.scenario(scenario)
    run = await finished(registry, endpoint)
    assert run.state == "done" and notes(run) == ["tools.recovered"]
    assert [call.result for call in first_calls(run)] == ["3"]
    sent = scripted.chats[1].body["messages"][1]
    assert "<|tool" not in str(sent) and sent["tool_calls"][0]["id"] == "functions.add:0" and sent["reasoning"]


@pytest.mark.parametrize("options", [{"name": "silent"}, {"name": "long_thought", "tokens": 5_000, "rate": 20.0}])
async def test_stop_closes_the_request_upstream(
    scripted: Scripted, registry: Registry, endpoint: Endpoint, options: dict[str, Any]
) -> None:
    scripted.scenario(**options)
    run = start(registry, endpoint)
    await scripted.arrived(timeout_s=30)
    run.cancel()
    await scripted.aborted(timeout_s=20)
    assert await run.wait() == "stopped"
