"""What the fields of tools and raw prompt send to: one run at a time, leave for calls, and sentences for what cannot be done."""

import asyncio
import json
import secrets
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.requests import Request

from kimi_demo.runs.run import Run
from kimi_demo.settings import Settings
from kimi_demo.ui.access import Access
from kimi_demo.ui.application import Application, build
from kimi_demo.ui.guard import Guard
from tests import scripted_server
from tests.scripted_server import Scripted


class Page:
    """One visitor's browser."""

    def __init__(self, application: Application, server: Scripted, client: httpx.AsyncClient) -> None:
        self.services = application.services
        self.server = server
        self.client = client
        cookie = "; ".join(f"{name}={value}" for name, value in client.cookies.items())
        self.owner = application.services.access.owner_of(Request({"type": "http", "headers": [(b"cookie", cookie.encode())]}))

    async def act(self, name: str, /, **given: Any) -> httpx.Response:
        return await self.client.post(f"/kimi/act/{name}", json=given)

    async def refused(self, code: str, name: str, /, **given: Any) -> None:
        answer = await self.act(name, **given)
        assert answer.status_code == 422 and self.services.texts.failure(code, {})[0][:40] in answer.json()["html"], answer.text

    async def ended(self) -> Run:
        """The run that has begun, when it is over."""
        [run] = self.services.registry.active(self.owner)
        await run.wait()
        return run


@pytest.fixture
async def page(tmp_path: Path) -> AsyncIterator[Page]:
    with scripted_server.running() as server:
        settings = Settings(_env_file=None, data=tmp_path, base_url=server.base_url)
        access = Access.of(settings, 7860)
        application = await build(settings, access)
        await application.services.chat_engine.ready(lambda event: None)
        transport = httpx.ASGITransport(app=Guard(application.asgi, access))
        cookies = {access.visitor_cookie: secrets.token_urlsafe(32)}
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:7860", cookies=cookies) as client:
            yield Page(application, server, client)
        await application.aclose()


async def test_a_question_is_asked_stopped_and_the_tab_cleared(page: Page) -> None:
    assert (await page.act("tools_ask", text="[[one_call]] what is 1 + 2?", approve=False)).status_code == 200
    run = await page.ended()
    assert run.asked is not None and run.asked.text == "[[one_call]] what is 1 + 2?" and run.state == "done"
    assert run.group == await page.services.desk.group(page.owner, "tools")
    assert (await page.act("tools_ask", text="[[long_thought tokens=5000 rate=20]] slowly", approve=False)).status_code == 200
    await page.refused("runs.busy", "tools_ask", text="another", approve=False)
    assert (await page.act("tools_stop")).status_code == 200
    assert (await page.ended()).state == "stopped"
    assert (await page.act("tools_clear")).status_code == 200
    assert await page.services.desk.runs(page.owner, "tools") == []
    await page.refused("prompt.empty", "tools_ask", text="  ", approve=False)


async def test_two_questions_at_once_begin_one(page: Page) -> None:
    text = "[[long_thought tokens=5000 rate=20]] slowly"
    answers = await asyncio.gather(*(page.act("tools_ask", text=text, approve=False) for _ in range(5)))
    assert sorted(answer.status_code for answer in answers) == [200, 422, 422, 422, 422]
    await page.act("tools_stop")
    await page.ended()


async def test_a_raw_prompt_is_run_with_what_its_fields_say(page: Page) -> None:
    assert (await page.act("raw_run", text="Once", temperature=0.5, max_tokens=7)).status_code == 200
    await page.ended()
    body = page.server.chats[-1].body
    assert (body["prompt"], body["temperature"], body["max_tokens"]) == ("Once", 0.5, 7)
    for field, given in (("temperature", {"temperature": None, "max_tokens": 7}), ("max_tokens", {"temperature": 0, "max_tokens": "many"})):
        answer = await page.act("raw_run", text="Once", **given)
        assert answer.status_code == 422 and field in answer.json()["html"], answer.text
    await page.refused("prompt.empty", "raw_run", text="", temperature=0, max_tokens=7)
    rendered = (await page.act("raw_render", chat="", text="Hello")).json()
    assert rendered["html"] == "" and "Hello<|im_end|>" in rendered["prompt"]


async def test_with_leave_required_every_version_of_a_question_asks_and_none_is_repeated(page: Page) -> None:
    await page.act("tools_ask", text="[[one_call]] what is 1 + 2?", approve=False)
    run = await page.ended()
    await page.act("bench_approve", on=True)
    await page.refused("tools.repeat_leave", "tools_repeat", run=run.id, times=2)
    edit = {"round": 0, "call": 0, "what": "arguments", "text": json.dumps({"a": 3, "b": 4})}
    for name, given in (("tools_again", {}), ("tools_again", {"round": 1}), ("tools_edit", edit)):
        answer = await page.act(name, run=run.id, **given)
        assert answer.status_code == 200, (name, answer.text)
        [version] = page.services.registry.active(page.owner)
        assert version.asked is not None and version.asked.parameters.get("approve") is True, name
        version.cancel()
        await version.wait()
    await page.act("bench_approve", on=False)
    assert (await page.act("tools_repeat", run=run.id, times=2)).status_code == 200
    await page.ended()


async def test_half_of_a_character_is_refused_in_a_sentence(page: Page) -> None:
    for name, more in (("tools_ask", b'"approve": false'), ("raw_run", b'"temperature": 0, "max_tokens": 5')):
        answer = await page.client.post(f"/kimi/act/{name}", content=b'{"text": "a \\ud800", ' + more + b"}")
        assert answer.status_code == 400 and "notice" in answer.json()["html"], answer.text


async def test_what_nobody_expected_is_a_sentence_too(page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(owner: str) -> None:
        raise RuntimeError("<b>the disk is on fire</b>")

    monkeypatch.setattr(page.services.workbench, "chosen", broken)
    answer = await page.act("tools_ask", text="hello", approve=False)
    assert answer.status_code == 500 and "&lt;b&gt;the disk is on fire" in answer.json()["html"]
