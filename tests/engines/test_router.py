"""vLLM's router, started by our own line, in front of two scripted servers as one base URL."""

import asyncio
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest

from kimi_demo.dialect.conversation import ChatRequest, user
from kimi_demo.dialect.events import AnswerDelta, Event, Finished, ThoughtDelta
from kimi_demo.dialect.failure import Failure
from kimi_demo.dialect.sampling import Sampling
from kimi_demo.engines.endpoint import Endpoint
from kimi_demo.engines.nodes import router_commands
from tests import scripted_server
from tests.ports import free_port
from tests.scripted_server import Scripted

KEY = "key-of-both"
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the router is built for Linux only")


@pytest.fixture
def servers() -> Iterator[tuple[Scripted, Scripted, ExitStack]]:
    """Two of them, and what ends the second."""
    with scripted_server.running(api_key=KEY) as first, ExitStack() as second:
        yield first, second.enter_context(scripted_server.running(api_key=KEY)), second


@pytest.fixture
def base_url(servers: tuple[Scripted, Scripted, ExitStack], tmp_path: Path) -> Iterator[str]:
    port = free_port()
    words = shlex.split(router_commands("127.0.0.1", [server.root for server in servers[:2]], port)[-1].line)
    with (tmp_path / "router.log").open("wb") as log:
        program = Path(sys.executable).with_name("vllm-router")
        line = [str(program), *words[1:], "--prometheus-port", str(free_port())]
        process = subprocess.Popen(line, stdout=log, stderr=log)
    try:
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        process.kill()
        process.wait()


async def connected(base_url: str, key: str) -> Endpoint:
    """Once the router is there."""
    async with asyncio.timeout(60), httpx.AsyncClient() as client:
        while True:
            try:
                if (await client.get(base_url.removesuffix("/v1") + "/health")).status_code == 200:
                    return await Endpoint.connect(base_url, key)
            except httpx.TransportError:
                await asyncio.sleep(0.05)  # a program that starts is no event


async def ask(endpoint: Endpoint, text: str) -> list[Event]:
    return [event async for event in endpoint.stream(ChatRequest([user(text)], Sampling(max_tokens=512)))]


async def test_two_servers_are_one_address_also_when_one_of_them_goes(servers: tuple[Scripted, Scripted, ExitStack], base_url: str) -> None:
    first, second, ends_second = servers
    endpoint = await connected(base_url, KEY)
    try:
        assert endpoint.kind == "vllm" and endpoint.info.id == first.model_ids[0] and endpoint.info.max_model_len == 8192
        for events in await asyncio.gather(*(ask(endpoint, f"[[long_thought tokens=60 rate=40]] {number}") for number in range(16))):
            assert {ThoughtDelta, AnswerDelta, Finished} <= {type(event) for event in events}
        assert len(first.chats) >= 4 and len(second.chats) >= 4
        body = first.chats[0].body
        assert body["chat_template_kwargs"] == {"thinking": True} and first.chats[0].headers["authorization"] == f"Bearer {KEY}"

        # A stop goes through.
        stream = endpoint.stream(ChatRequest([user("[[long_thought tokens=4000 rate=50]]")], Sampling(max_tokens=4096)))
        async for event in stream:
            if isinstance(event, ThoughtDelta):
                break
        await stream.aclose()
        async with asyncio.timeout(30):
            while not first.aborts and not second.aborts:  # noqa: ASYNC110  (either may have got it)
                await asyncio.sleep(0.02)

        ends_second.close()
        in_a_row = 0
        async with asyncio.timeout(60):
            while in_a_row < 6:
                try:
                    assert isinstance((await ask(endpoint, "[[reasoning]] one server is left"))[-1], Finished)
                    in_a_row += 1
                except Failure:  # until its silence is noticed
                    in_a_row = 0
                    await asyncio.sleep(0.2)
    finally:
        await endpoint.aclose()
    with pytest.raises(Failure) as refused:
        await Endpoint.connect(base_url, "another-key")
    assert refused.value.code == "endpoint.wrong_key"
