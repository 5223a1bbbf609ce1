"""Closing a reply closes the request at the server, at once, whatever the server is doing."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from kimi_demo.dialect.conversation import ChatRequest, user
from kimi_demo.dialect.events import Event
from kimi_demo.dialect.failure import Failure
from kimi_demo.dialect.sampling import Sampling
from kimi_demo.engines.endpoint import Endpoint
from tests.scripted_server import Recorded, Scripted, running

AT_ONCE_S = 0.3
REQUEST = ChatRequest([user("hi")], Sampling())


@pytest.fixture
def scripted() -> Iterator[Scripted]:
    with running() as server:
        yield server


@pytest.fixture
async def endpoint(scripted: Scripted) -> AsyncIterator[Endpoint]:
    connected = await Endpoint.connect(scripted.base_url)
    yield connected
    await connected.aclose()


def waited(request: Recorded, since: float) -> float:
    assert request.aborted_at is not None
    return request.aborted_at - since


async def test_closing_a_flowing_reply(scripted: Scripted, endpoint: Endpoint) -> None:
    scripted.scenario("long_thought", tokens=5000, rate=50)
    stream = endpoint.stream(REQUEST)
    for _ in range(5):
        await anext(stream)
    since = time.monotonic()
    await stream.aclose()
    (request,) = await scripted.aborted()
    assert waited(request, since) < AT_ONCE_S
    assert request.sent < 100


async def test_leaving_the_loop_and_closing(scripted: Scripted, endpoint: Endpoint) -> None:
    """`break` out of a stream that is closed by `aclosing`, as a run does it."""
    from contextlib import aclosing

    scripted.scenario("long_thought", tokens=5000, rate=50)
    async with aclosing(endpoint.stream(REQUEST)) as stream:
        async for _ in stream:
            break
    since = time.monotonic()
    (request,) = await scripted.aborted()
    assert waited(request, since) < AT_ONCE_S


@pytest.mark.parametrize(
    ("scenario", "options"),
    [
        ("long_thought", {"tokens": 5000, "rate": 50}),
        ("silent", {"seconds": 60}),
        ("silent", {"seconds": 60, "headers": True}),
        ("long_thought", {"tokens": 10, "rate": 0.01}),
    ],
)
async def test_cancelling_the_task_that_reads(scripted: Scripted, endpoint: Endpoint, scenario: str, options: dict[str, Any]) -> None:
    scripted.scenario(scenario, **options)
    seen: list[Event] = []

    async def read() -> None:
        async for event in endpoint.stream(REQUEST):
            seen.append(event)

    task = asyncio.create_task(read())
    await scripted.arrived()
    await asyncio.sleep(0)  # one turn of the loop: the request is out, the answer is not read yet
    since = time.monotonic()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    (request,) = await scripted.aborted()
    assert waited(request, since) < AT_ONCE_S
    assert scripted.running == 0


async def test_cancelling_an_unstreamed_request(scripted: Scripted, endpoint: Endpoint) -> None:
    scripted.scenario("silent", seconds=60)
    task = asyncio.create_task(endpoint.complete_chat(REQUEST))
    await scripted.arrived()
    since = time.monotonic()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    (request,) = await scripted.aborted()
    assert waited(request, since) < AT_ONCE_S


async def test_twenty_replies_closed_together(scripted: Scripted, endpoint: Endpoint) -> None:
    scripted.scenario("long_thought", tokens=5000, rate=20)
    streams = [endpoint.stream(REQUEST) for _ in range(20)]
    await asyncio.gather(*(anext(stream) for stream in streams))
    since = time.monotonic()
    await asyncio.gather(*(stream.aclose() for stream in streams))
    requests = await scripted.aborted(20)
    assert max(waited(request, since) for request in requests) < AT_ONCE_S


async def test_closing_the_endpoint_ends_its_replies(scripted: Scripted, endpoint: Endpoint) -> None:
    scripted.scenario("silent", seconds=60)

    async def read() -> list[Event]:
        return [event async for event in endpoint.stream(REQUEST)]

    task = asyncio.create_task(read())
    await scripted.arrived()
    await endpoint.aclose()
    with pytest.raises(Failure) as caught:
        await asyncio.wait_for(task, 5)
    assert caught.value.code in ("endpoint.closed", "endpoint.broke_off")
    await scripted.aborted()


async def test_a_server_that_says_nothing_for_too_long(scripted: Scripted) -> None:
    endpoint = await Endpoint.connect(scripted.base_url, silence_timeout_s=0.3)
    scripted.scenario("silent", seconds=60)
    with pytest.raises(Failure) as caught:
        await anext(endpoint.stream(REQUEST))
    assert (caught.value.code, caught.value.params["seconds"]) == ("endpoint.silent", "0.3")
    await scripted.aborted()
    await endpoint.aclose()
