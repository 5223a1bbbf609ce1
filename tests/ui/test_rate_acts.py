"""A thumb over HTTP: whose reply becomes a case, who may, and that the case can be run and judged."""

from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
from starlette.requests import Request

from kimi_demo.dialect.events import AnswerDelta, Asked, Event, Finished, RoundStarted
from kimi_demo.qa.reading import find_suite
from kimi_demo.settings import Settings
from kimi_demo.ui.access import Access
from kimi_demo.ui.application import Application, build
from kimi_demo.ui.guard import Guard
from tests import scripted_server

OWN = "http://127.0.0.1:7860"
EVIL = "<script>alert(1)</script> {x}"
SENT = {"model": "/m/Kimi", "messages": [{"role": "user", "content": EVIL}], "temperature": 0.6, "max_tokens": 64}


@pytest.fixture
async def application(tmp_path: Path) -> AsyncIterator[tuple[Application, Access]]:
    with scripted_server.running() as server:
        settings = Settings(_env_file=None, data=tmp_path, base_url=server.base_url)
        access = Access.of(settings, 7860)
        app = await build(settings, access)
        yield app, access
        await app.aclose()


def visitor(app: Application, access: Access, name: str, *, operator: bool = False) -> httpx.AsyncClient:
    cookies = {access.visitor_cookie: name * 43} | ({access.operator_cookie: access.operator_proof} if operator else {})
    return httpx.AsyncClient(transport=httpx.ASGITransport(app=Guard(app.asgi, access)), base_url=OWN, cookies=cookies)


async def a_reply(app: Application, access: Access, client: httpx.AsyncClient, *events: Event) -> str:
    """Id of a finished chat run of this visitor's."""
    cookies = "; ".join(f"{name}={value}" for name, value in client.cookies.items())
    owner = access.owner_of(Request({"type": "http", "headers": [(b"cookie", cookies.encode())]}))
    chat = await app.services.chats.take_in(owner, "t", "", [(EVIL, (), events)])
    (run,) = await app.services.registry.group(chat, owner)
    return run.id


REPLY = (RoundStarted(0, SENT), AnswerDelta(f"Forty-two {EVIL}"), Finished("stop"))


async def test_a_judged_reply_becomes_a_case_that_can_be_asked_again(application: tuple[Application, Access], tmp_path: Path) -> None:
    app, access = application
    async with visitor(app, access, "a") as me, visitor(app, access, "b") as other, visitor(app, access, "c", operator=True) as operator:
        run = await a_reply(app, access, me, *REPLY)
        first = await me.post("/kimi/act/rate", json={"run": run, "good": True})
        assert first.status_code == 200 and "Captured replies" in first.json()["html"]
        noted = await me.post("/kimi/act/rate", json={"run": run, "good": False, "note": f"Too\nlong {EVIL}"})
        assert "with your note" in noted.json()["html"] and "<script" not in noted.json()["html"]
        (case,) = find_suite("captured", tmp_path / "suites").cases
        assert case.question == EVIL and isinstance(case.manual, dict) and "judged bad: Too long <script>" in case.manual["en"]
        assert isinstance(case.about, dict) and "Forty-two" in case.about["zh"] and case.parameters.max_tokens == 64
        for refused in (other, operator):  # another's run is not there for them
            assert (await refused.post("/kimi/act/rate", json={"run": run, "good": True})).status_code == 422
        offered = await app.services.qa.offered(0)
        assert [each.key for each in offered if each.own] == ["captured"] and offered[-1].suite is not None


async def test_where_strangers_are_let_in_only_the_operator_keeps_cases(application: tuple[Application, Access], tmp_path: Path) -> None:
    app, access = application
    access.public = True
    async with visitor(app, access, "a") as me, visitor(app, access, "c", operator=True) as operator:
        refused = await me.post("/kimi/act/rate", json={"run": await a_reply(app, access, me, *REPLY), "good": True})
        assert refused.status_code == 422 and not (tmp_path / "suites" / "captured.yaml").exists()
        given = {"run": await a_reply(app, access, operator, *REPLY), "good": True}
        assert (await operator.post("/kimi/act/rate", json=given)).status_code == 200


async def test_what_was_never_sent_cannot_be_kept(application: tuple[Application, Access]) -> None:
    app, access = application
    async with visitor(app, access, "a") as me:
        run = await a_reply(app, access, me, Asked("x"), AnswerDelta("y"))
        answer = await me.post("/kimi/act/rate", json={"run": run, "good": True})
        assert answer.status_code == 422 and "nothing was sent" in answer.json()["html"]
