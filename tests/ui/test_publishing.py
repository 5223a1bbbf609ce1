"""Publishing through the routes: who may, what strangers get, and what takes a link away."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.requests import Request

from kimi_demo.dialect.events import AnswerDelta, Asked, Finished, RoundStarted, ThoughtDelta
from kimi_demo.runs.run import Run
from kimi_demo.settings import Settings
from kimi_demo.ui.access import Access
from kimi_demo.ui.application import Application, build
from kimi_demo.ui.guard import Guard, is_published
from tests import scripted_server
from tests.batch_bench import ASKED

OWN = "http://127.0.0.1:7860"
AUTH = ("ann", "hunter2")
PAGE = f"/kimi/p/{'A' * 32}"
REPLY = (RoundStarted(0, {"model": "/m/Kimi"}), ThoughtDelta("I wonder"), AnswerDelta("Forty-two"), Finished("stop"))


@pytest.fixture
async def application(tmp_path: Path) -> AsyncIterator[tuple[Application, Access]]:
    with scripted_server.running() as server:
        settings = Settings(_env_file=None, data=tmp_path, base_url=server.base_url, auth="ann:hunter2", max_published=3)
        access = Access.of(settings, 7860)
        application = await build(settings, access)
        yield application, access
        await application.aclose()


def visitor(application: Application, access: Access, name: str = "", *, operator: bool = False, auth: Any = AUTH) -> httpx.AsyncClient:
    cookies = {access.operator_cookie: access.operator_proof} if operator else {}
    cookies |= {access.visitor_cookie: name * 43} if name else {}
    transport = httpx.ASGITransport(app=Guard(application.asgi, access))
    return httpx.AsyncClient(transport=transport, base_url=OWN, cookies=cookies, auth=auth)


async def a_chat(application: Application, access: Access, client: httpx.AsyncClient) -> tuple[str, Run]:
    """A conversation of this visitor's with one turn."""
    services = application.services
    owner = access.owner_of(request_of(client))
    chat = await services.chats.take_in(owner, "A title", "", [("What is it?", (), REPLY)])
    (run,) = await services.registry.group(chat, owner)
    return chat, run


def request_of(client: httpx.AsyncClient) -> Request:
    """A request with the client's cookies."""
    cookies = "; ".join(f"{name}={value}" for name, value in client.cookies.items())
    return Request({"type": "http", "headers": [(b"cookie", cookies.encode())]})


async def publish(client: httpx.AsyncClient, kind: str, subject: str, title: str = "") -> httpx.Response:
    return await client.post("/kimi/act/publish", json={"kind": kind, "subject": subject, "title": title})


async def test_strangers_read_it_without_signing_in_and_nothing_else(application: tuple[Application, Access]) -> None:
    app, access = application
    async with visitor(app, access, "a") as me, visitor(app, access, auth=None) as stranger:
        chat, _ = await a_chat(app, access, me)
        dialog = (await me.get("/kimi/published", params={"kind": "chat", "subject": chat})).text
        assert 'value="A title"' in dialog and "data-token" not in dialog
        made = await publish(me, "chat", chat, '"><script>alert(1)</script>')
        token = made.json()["token"]
        assert f"kimi/p/{token}" in made.json()["html"] and "<script" not in made.json()["html"]
        read = await stranger.get(f"/kimi/p/{token}")
        assert read.status_code == 200 and "Forty-two" in read.text and "I wonder" in read.text and "<script" not in read.text
        assert not read.cookies and read.headers["cache-control"] == "no-store" and read.headers["referrer-policy"] == "no-referrer"
        policy = read.headers["content-security-policy"]
        assert policy.startswith("default-src 'none'") and "script-src" not in policy and "frame-ancestors 'none'" in policy
        file = await stranger.get(f"/kimi/p/{token}/file")
        assert file.headers["content-disposition"].startswith("attachment") and "Forty-two" in file.text
        assert f"{token}/file" in read.text and token not in file.text
        # A link that somebody follows from another site is followed; a script of theirs reads nothing.
        assert (await stranger.get(f"/kimi/p/{token}", headers={"origin": "https://evil.example"})).status_code == 403
        followed = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}
        assert (await stranger.get(f"/kimi/p/{token}", headers=followed)).status_code == 200
        for closed in ("/", "/kimi/chats", f"/kimi/p/{token}/", f"/kimi/p/{token}/file/", f"/kimi/p/{token}/../../chats", "/kimi/p/short"):
            assert (await stranger.get(closed)).status_code == 401, closed
        assert (await stranger.post(f"/kimi/p/{token}")).status_code == 401
        guessed = [await stranger.get(f"/kimi/p/{name}") for name in ("A" * 32, token.swapcase())]
        assert [each.status_code for each in guessed] == [404, 404] and not any(each.cookies for each in guessed)
        # The token of the operator is not asked for here, where nobody signs in.
        assert (await stranger.get(f"/kimi/p/{'A' * 32}", params={"operator": access.token})).status_code == 404


@pytest.mark.parametrize("path", [f"{PAGE}\n", f"/{PAGE}", PAGE[:-1], f"{PAGE[:-1]}é", "/kimi/p/", f"{PAGE}/file/more", f"{PAGE}A"])
def test_only_these_addresses_need_no_sign_in(path: str) -> None:
    assert is_published(PAGE) and is_published(f"{PAGE}/file") and not is_published(path)


async def test_one_publishes_and_withdraws_ones_own_and_the_operator_withdraws_all(application: tuple[Application, Access]) -> None:
    app, access = application
    async with visitor(app, access, "a") as me, visitor(app, access, "b") as other, visitor(app, access, "c", operator=True) as operator:
        chat, run = await a_chat(app, access, me)
        for kind, subject in (("chat", chat), ("turn", run.id), ("tools", run.id), ("batch", run.id)):
            assert (await publish(other, kind, subject)).status_code == 422, kind
            assert (await publish(operator, kind, subject)).status_code == 422, kind
        assert (await publish(me, "tools", run.id)).status_code == 422 and (await publish(me, "everything", chat)).status_code == 400
        one, two = [(await publish(me, kind, subject)).json()["token"] for kind, subject in (("chat", chat), ("turn", run.id))]
        assert (await other.post("/kimi/act/publish_withdraw", json={"token": one})).status_code == 422
        assert one not in (await other.get("/kimi/published", params={"kind": "chat", "subject": chat})).text
        assert (await other.get(f"/kimi/p/{one}")).status_code == 200
        assert (await me.post("/kimi/act/publish_withdraw", json={"token": one})).status_code == 200
        assert (await operator.post("/kimi/act/publish_withdraw", json={"token": two})).status_code == 200
        assert [(await other.get(f"/kimi/p/{token}")).status_code for token in (one, two)] == [404, 404]
        again = await me.post("/kimi/act/publish_withdraw", json={"token": one})
        assert again.status_code == 422 and "not there any more" in again.json()["html"]


async def test_where_strangers_are_let_in_only_the_operator_publishes(application: tuple[Application, Access]) -> None:
    app, access = application
    access.public = True
    async with visitor(app, access, "a") as me, visitor(app, access, "c", operator=True) as operator:
        mine, _ = await a_chat(app, access, me)
        refused = await publish(me, "chat", mine)
        assert refused.status_code == 422 and "only the operator" in refused.json()["html"]
        shown = (await me.get("/kimi/published", params={"kind": "chat", "subject": mine})).text
        assert "only the operator" in shown and "data-publish-form" not in shown
        assert await app.services.published.list() == []
        theirs, _ = await a_chat(app, access, operator)
        assert (await publish(operator, "chat", theirs)).status_code == 200


async def test_deleting_withdraws_and_more_links_than_allowed_are_refused(application: tuple[Application, Access]) -> None:
    app, access = application
    async with visitor(app, access, "a") as me:
        chat, run = await a_chat(app, access, me)
        tokens = [(await publish(me, "chat", chat)).json()["token"] for _ in range(3)]
        refused = await publish(me, "chat", chat)
        assert refused.status_code == 422 and "3 links" in refused.json()["html"]
        await me.post("/kimi/act/chat_delete", json={"chat": chat})
        assert {(await me.get(f"/kimi/p/{token}")).status_code for token in tokens} == {404}
        assert "Ask something first" in (await publish(me, "chat", chat)).json()["html"]
        await me.post("/kimi/act/chat_restore", json={"chat": chat})
        assert {(await me.get(f"/kimi/p/{token}")).status_code for token in tokens} == {200}
        await app.services.registry.delete(run.id, run.owner)
        assert {(await me.get(f"/kimi/p/{token}")).status_code for token in tokens} == {404}


async def test_what_is_still_being_written_is_not_published(application: tuple[Application, Access]) -> None:
    app, access = application
    async with visitor(app, access, "a") as me:
        services, owner = app.services, access.owner_of(request_of(me))

        async def forever(run: Run) -> None:
            await asyncio.Event().wait()

        run = services.registry.start(owner, "tools", forever, title="t", asked=Asked("q"), group="g")
        refused = await publish(me, "tools", run.id)
        assert refused.status_code == 422 and "still being written" in refused.json()["html"]
        run.cancel()
        assert await run.wait() == "stopped"
        token = (await publish(me, "tools", run.id)).json()["token"]
        assert "Stopped" in (await me.get(f"/kimi/p/{token}")).text


async def started(application: Application, owner: str, text: str) -> str:
    """The id of a batch of the typed prompts, once it is over."""
    batches = application.services.batches
    draft = await batches.drafts.typed(owner, text)
    entry = await batches.start(owner, draft, ASKED)
    async with asyncio.timeout(60):
        while True:
            if not (await batches.get(owner, entry.id)).going:
                return entry.id
            await asyncio.sleep(0.01)


async def test_a_batch_is_published_and_withdrawn_when_it_is_deleted(application: tuple[Application, Access]) -> None:
    app, access = application
    async with visitor(app, access, "a") as me:
        owner = access.owner_of(request_of(me))
        entry = await started(app, owner, "first prompt\nsecond prompt")
        token = (await publish(me, "batch", entry)).json()["token"]
        read = (await me.get(f"/kimi/p/{token}")).text
        assert "first prompt" in read and "second prompt" in read and "2 of 2 rows" in read
        assert (await me.post("/kimi/act/batch_delete", json={"batch": entry})).status_code == 200
        assert (await me.get(f"/kimi/p/{token}")).status_code == 404
