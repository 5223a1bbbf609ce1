"""Rows through a chat server: what comes back, what is the row's own fault, and what is the server's."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from kimi_demo.batches import engines
from kimi_demo.batches.engines import ServerRows, is_of_the_row
from kimi_demo.dialect.failure import Failure
from kimi_demo.dialect.sampling import Sampling
from kimi_demo.engines.endpoint import Endpoint
from kimi_demo.engines.offline_rows import RowAsk
from kimi_demo.engines.offline_stream import RowAnswer
from tests import scripted_server
from tests.scripted_server import Scripted


@pytest.fixture(scope="module")
def shared() -> Iterator[Scripted]:
    with scripted_server.running() as server:
        yield server


@pytest.fixture
def server(shared: Scripted) -> Scripted:
    shared.reset()
    return shared


@asynccontextmanager
async def connected(server: Scripted) -> AsyncIterator[ServerRows]:
    endpoint = await Endpoint.connect(server.base_url)
    try:
        yield ServerRows(endpoint)
    finally:
        await endpoint.aclose()


def ask(text: str = "q", *, thinking: bool = True, **sampling: Any) -> RowAsk:
    return RowAsk([{"role": "user", "content": text}], Sampling(**sampling), thinking)


async def test_thought_answer_and_counts_come_apart(server: Scripted) -> None:
    async with connected(server) as rows:
        found = await rows.answer(ask(thinking=True))
        instant = await rows.answer(ask(thinking=False))
    assert found.reasoning and found.answer and found.finish_reason == "stop" and found.seconds > 0
    assert found.prompt_tokens > 0 and found.completion_tokens > (found.reasoning_tokens or 0) > 0
    assert found.rendered is not None and "q" in found.rendered and instant.reasoning is None and instant.answer
    assert rows.standing.running == 0 and rows.model == server.model_ids[0]


@pytest.mark.parametrize(
    ("scenario", "own"),
    [("rejected", True), ("too_long", True), ("error_event", True), ("fails", True), ("dies", True), ("not_found", False)],
)
async def test_whose_failure_it_is(server: Scripted, scenario: str, own: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A row on which a server that is well fails each time is that row's fault: others must not wait for it for ever."""
    monkeypatch.setattr(engines, "_FIRST_WAIT_S", 0.01)
    async with connected(server) as rows:
        with pytest.raises(Failure) as failed:
            await rows.answer(ask(f"[[{scenario}]]"))
    assert is_of_the_row(failed.value) == own, failed.value
    assert len(server.chats) == (3 if scenario in ("error_event", "fails", "dies") else 1)


async def test_a_server_that_is_gone_is_no_fault_of_the_row() -> None:
    with scripted_server.running() as passing:
        async with connected(passing) as rows:
            going = asyncio.create_task(rows.answer(ask("[[long_thought tokens=500 rate=20]]")))
            await passing.arrived(1)
            passing.scenario("fails")  # /health too
            with pytest.raises(Failure) as failed:
                await rows.answer(ask("q"))
            assert failed.value.code == "endpoint.server_error" and not is_of_the_row(failed.value)
            going.cancel()


async def test_a_busy_server_is_asked_again(server: Scripted, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "_FIRST_WAIT_S", 0.01)
    async with connected(server) as rows:
        server.scenario("too_many")
        waiting = asyncio.create_task(rows.answer(ask()))
        await server.arrived(2)
        server.scenario("reasoning")
        assert isinstance(await asyncio.wait_for(waiting, 20), RowAnswer)


async def test_a_row_that_is_given_up_stops_computing_there(server: Scripted) -> None:
    async with connected(server) as rows:
        going = asyncio.create_task(rows.answer(ask("[[long_thought tokens=500 rate=20]]")))
        async with asyncio.timeout(20):
            while not rows.standing.running:  # noqa: ASYNC110 - of a count that nobody signals
                await asyncio.sleep(0.01)
        going.cancel()
        await server.aborted(1)
        await asyncio.wait({going})
        assert going.cancelled() and rows.standing.running == 0
