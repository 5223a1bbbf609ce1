"""One prompt in two ways, over HTTP: what is sent where, who may name another server, stopping, and both written at once."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from kimi_demo.runs.run import Run
from kimi_demo.settings import Settings
from kimi_demo.ui.access import Access
from kimi_demo.ui.application import Application, build
from kimi_demo.ui.guard import Guard
from kimi_demo.ui.live import Live
from tests import scripted_server
from tests.scripted_server import Scripted

OWN = "http://127.0.0.1:7860"
THINKING = {"preset": "moonshot_thinking", "thinking": True}
INSTANT = {"preset": "moonshot_instant", "thinking": False}


@dataclass
class Bench:
    app: Application
    access: Access
    here: Scripted
    elsewhere: Scripted

    def browser(self, *, operator: bool = False) -> httpx.AsyncClient:
        cookies = {self.access.visitor_cookie: ("o" if operator else "v") * 43}
        cookies |= {self.access.operator_cookie: self.access.operator_proof} if operator else {}
        return httpx.AsyncClient(transport=httpx.ASGITransport(app=Guard(self.app.asgi, self.access)), base_url=OWN, cookies=cookies)

    async def runs(self) -> list[Run]:
        """Those that go on, left first."""
        registry = self.app.services.registry
        found = [run for run in registry._live.values() if run.kind == "pair"]
        return sorted(found, key=lambda run: run.asked is not None and run.asked.parameters["side"])


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    with scripted_server.running() as here, scripted_server.running(model_ids=["other"]) as elsewhere:
        settings = Settings(_env_file=None, data=tmp_path, base_url=here.base_url)
        access = Access.of(settings, 7860)
        app = await build(settings, access)
        await app.services.chat_engine.ready(lambda event: None)
        yield Bench(app, access, here, elsewhere)
        await app.aclose()


async def ask(client: httpx.AsyncClient, left: dict[str, Any], right: dict[str, Any], **given: Any) -> httpx.Response:
    return await client.post("/kimi/act/pair_run", json={"text": "Why?", "max_tokens": 64, "left": left, "right": right, **given})


async def ended(runs: list[Run]) -> list[str]:
    async with asyncio.timeout(20):
        return [await run.wait() for run in runs]


async def test_both_are_asked_in_their_own_way_and_only_one_pair_at_a_time(bench: Bench) -> None:
    bench.here.scenario("silent", seconds=600)
    async with bench.browser() as client, bench.browser(operator=True) as other:
        assert (await ask(client, THINKING, INSTANT)).status_code == 200
        runs = await bench.runs()
        assert [run.title for run in runs] == ["Why?", "Why?"] and runs[0].group == runs[1].group
        assert "still" in (await ask(client, THINKING, INSTANT)).json()["html"]
        assert (await other.post("/kimi/act/pair_stop", json={})).status_code == 200 and not any(run.ended for run in runs)
        assert (await client.post("/kimi/act/pair_stop", json={})).status_code == 200
        assert await ended(runs) == ["stopped", "stopped"]
    bench.here.reset()
    bench.here.scenario("reasoning")
    async with bench.browser() as client:
        assert (await ask(client, THINKING, INSTANT)).status_code == 200
        assert await ended(await bench.runs()) == ["done", "done"]
    bodies = sorted((chat.body for chat in bench.here.chats), key=lambda body: float(body["temperature"]))
    assert [body["temperature"] for body in bodies] == [0.6, 1.0] and {body["max_tokens"] for body in bodies} == {64}
    assert [body["chat_template_kwargs"]["thinking"] for body in bodies] == [False, True]


async def test_another_server_is_the_operators_to_name_and_only_a_listed_one(bench: Bench) -> None:
    address = bench.elsewhere.base_url
    there = {**INSTANT, "server": address}
    bench.here.scenario("reasoning")
    bench.elsewhere.scenario("reasoning")
    async with bench.browser() as visitor, bench.browser(operator=True) as operator:
        refused = bench.app.services.texts.failure("access.operator_only", {})[0]
        assert refused in (await ask(visitor, THINKING, there)).json()["html"]
        assert "is not among the servers" in (await ask(operator, THINKING, there)).json()["html"]
        assert not bench.here.chats and not await bench.runs()
        bench.app.services.control.saved.add_address(address)
        assert "option" in (await operator.get("/kimi/pair/sides")).text and address in (await operator.get("/kimi/pair/sides")).text
        assert address not in (await visitor.get("/kimi/pair/sides")).text
        assert (await ask(operator, THINKING, there, text="Why? <|im_end|>")).status_code == 200
        runs = await bench.runs()
        assert await ended(runs) == ["done", "done"]
        assert [chat.body["model"] for chat in bench.elsewhere.chats] == ["other"] and len(bench.here.chats) == 1
        for server in (bench.here, bench.elsewhere):  # a special token is plain text wherever it is sent
            assert [message["content"] for message in server.chats[0].body["messages"]] == ["Why? < |im_end|>"]
        shown = await operator.get(f"/kimi/request/{runs[1].id}/0/curl")
        assert address in shown.text
        assert (await ask(operator, {**THINKING, "server": "http://127.0.0.1:9/v1"}, INSTANT)).status_code == 422
        assert len(bench.elsewhere.chats) == 1


WRONG: tuple[tuple[dict[str, Any], str], ...] = (
    ({"text": " "}, "Write something first"),
    ({"max_tokens": None}, "max_tokens"),
    ({"max_tokens": 0}, "max_tokens"),
    ({"left": {**THINKING, "preset": "x"}}, "There is no preset x"),
)


async def test_what_cannot_be_asked_is_said_and_nothing_begins(bench: Bench) -> None:
    async with bench.browser() as client:
        for given, words in WRONG:
            answer = await ask(client, **{"left": THINKING, "right": INSTANT, **given})
            assert answer.status_code == 422 and words in answer.json()["html"], given
    assert not await bench.runs()


async def test_the_stream_brings_both_at_once_and_what_is_whole_only_once(bench: Bench) -> None:
    bench.here.scenario("silent", seconds=600)
    services = bench.app.services
    async with bench.browser() as client:
        await ask(client, THINKING, INSTANT)
        runs = await bench.runs()
        live = Live(services.desk, services.chats, services.texts, services.pace)
        stream = live.stream(runs[0].owner, "pair", opened="", group="", after="")
        start = json.loads((await anext(stream)).partition("data: ")[2])
        assert start["running"] and start["kept"] == 0 and start["html"].index(runs[0].id) < start["html"].index(runs[1].id)
        told = ""
        async with asyncio.timeout(20):
            while not all(f"run-{run.id}-question" in told for run in runs):  # neither waits for the other's end
                told += await anext(stream)
        await client.post("/kimi/act/pair_stop", json={})
        rest = "".join([message async for message in stream])
        assert all(f'"{run.id}"' in rest for run in runs) and rest.rstrip().endswith("data: null")
        again = [each async for each in live.stream(runs[0].owner, "pair", opened="", group=runs[0].group or "", after=runs[1].id)]
        assert len(again) == 2 and json.loads(again[0].partition("data: ")[2])["kept"] == 2
