"""The self-test against the scripted server: what passes, and what each fault is told as."""

import asyncio
from collections.abc import Iterator

import pytest

from kimi_demo.checks import stopping
from kimi_demo.checks.result import CheckResult
from kimi_demo.checks.server import CHECKS, Address, self_test
from tests import scripted_server
from tests.ports import free_port
from tests.scripted_scenarios import SCENARIOS
from tests.scripted_script import Ask, Refusal, Script
from tests.scripted_server import Scripted


def good(ask: Ask) -> Script | Refusal:
    """A server that does everything right: a call where tools are offered, a long reply where one is asked for."""
    if ask.body.get("tools"):
        return SCENARIOS["one_call"](ask)
    if "long story" in str(ask.body.get("messages")):
        return SCENARIOS["long_thought"](ask, tokens=3000)
    return SCENARIOS["reasoning"](ask)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Scripted]:
    monkeypatch.setitem(SCENARIOS, "good", good)
    with scripted_server.running() as scripted:
        yield scripted


async def results(address: Address, limit_s: float = 30.0) -> dict[str, CheckResult]:
    found = [result async for result in self_test(address, limit_s)]
    assert [result.name for result in found] == list(CHECKS)
    return {result.name: result for result in found}


def states(found: dict[str, CheckResult]) -> dict[str, str]:
    return {name: result.code or result.state for name, result in found.items() if result.state != "passed"}


async def test_a_good_server_passes(server: Scripted) -> None:
    server.scenario("good")
    found = await results(Address(server.base_url))
    assert states(found) == {}
    assert found["models"].facts["model"] == server.model_ids[0] and found["models"].facts["context"] == "8,192"
    assert found["tool_call"].facts["call"].startswith("add(")
    assert float(found["stop"].facts["seconds"]) < 20 and all(result.seconds >= 0 for result in found.values())
    assert len(server.aborts) == 1  # the stopped one, and no other


@pytest.mark.parametrize(
    ("scenario", "expected"),
    [
        ("thought_in_content", {"thinking": "check.no_reasoning_parser", "tool_call": "check.no_tool_call", "stop": "check.stop_unclear"}),
        ("answer_only", {"thinking": "check.no_thought", "tool_call": "check.no_tool_call", "stop": "check.stop_unclear"}),
        ("no_auto_tool_choice", {"tool_call": "endpoint.no_auto_tool_choice", "stop": "check.stop_unclear"}),
        ("fails", dict.fromkeys(("thinking", "instant", "tool_call", "raw", "stop"), "endpoint.server_error")),
    ],
)
async def test_faults_are_named(server: Scripted, scenario: str, expected: dict[str, str]) -> None:
    asked = Address(f"{server.base_url}", model=f"scenario:{scenario}")
    server.model_ids = [f"scenario:{scenario}"]
    assert states(await results(asked)) == expected


async def test_leaked_marks_are_a_missing_tool_parser(server: Scripted) -> None:
    server.scenario("leaked_markup")
    assert states(await results(Address(server.base_url)))["tool_call"] == "check.no_tool_parser"


async def test_arguments_that_do_not_fit(server: Scripted) -> None:
    server.scenario("wrong_arguments")
    assert states(await results(Address(server.base_url)))["tool_call"] == "check.bad_arguments"


async def test_thought_that_comes_with_thinking_off_is_a_leak(server: Scripted) -> None:
    server.scenario("answer_only", answer="I think so.</think>Paris.", counts_reasoning=False)
    found = states(await results(Address(server.base_url)))
    assert found["instant"] == "check.leak"


async def test_a_server_without_metrics(server: Scripted) -> None:
    server.scenario("good")
    server.missing = {"/metrics"}
    found = await results(Address(server.base_url))
    assert states(found) == {"stop": "check.no_metrics"} and found["stop"].state == "skipped"


async def test_a_server_that_works_on_after_the_stop(server: Scripted, monkeypatch: pytest.MonkeyPatch) -> None:
    def stubborn(ask: Ask) -> Script | Refusal:
        if "long story" in str(ask.body.get("messages")):
            server.running += 1  # and nothing takes it back
        return good(ask)

    monkeypatch.setitem(SCENARIOS, "stubborn", stubborn)
    monkeypatch.setattr(stopping, "_ABORT_S", 0.4)
    server.scenario("stubborn")
    assert states(await results(Address(server.base_url))) == {"stop": "check.stop_ignored"}


async def test_nobody_listens_and_the_rest_is_not_tried() -> None:
    found = await results(Address(f"http://127.0.0.1:{free_port()}/v1"))
    assert found["health"].code == "endpoint.refused"
    assert {found[name].state for name in CHECKS[1:]} == {"skipped"}


async def test_a_wrong_key_is_told_at_the_models_and_never_shown(server: Scripted) -> None:
    server.api_key = "right"
    found = await results(Address(server.base_url, "sk-wrong-secret"))
    assert found["health"].state == "passed" and found["models"].code == "endpoint.wrong_key"
    assert "sk-wrong-secret" not in str(found) and "sk-wrong-secret" not in repr(Address(server.base_url, "sk-wrong-secret"))


async def test_a_silent_server_is_left_after_the_limit(server: Scripted) -> None:
    server.scenario("silent", seconds=60)
    found = states(await results(Address(server.base_url), limit_s=0.5))
    assert found["thinking"] in ("check.timeout", "endpoint.silent")


async def test_leaving_the_test_closes_its_request(server: Scripted) -> None:
    server.scenario("silent", seconds=60)
    test = self_test(Address(server.base_url))

    async def whole() -> None:
        async for _ in test:
            pass

    task = asyncio.create_task(whole())
    await server.arrived()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert await server.aborted()
