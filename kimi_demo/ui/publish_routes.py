"""Publishing a run: what the dialog shows (`GET /kimi/published`), the acts behind its buttons, and the pages themselves at /kimi/p/…

A published page is for people without an account: it is read without signing in (guard.py lets exactly these addresses through),
sets no cookie, and is the same for everybody. Whoever has no token learns nothing, not even whether there is one.
"""

from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse, Response
from pydantic import Field

from kimi_demo.dialect.failure import Failure
from kimi_demo.runs.published import Kind
from kimi_demo.ui.acts import NO_STORE, Given, add_act
from kimi_demo.ui.plain import refusal
from kimi_demo.ui.publishing import Publishing
from kimi_demo.ui.services import Services
from kimi_demo.ui.static_page import with_bar
from kimi_demo.ui.view.publish_view import bar_html, dialog_html
from kimi_demo.ui.view.qr import qr_html

# What the page's own policy says again, and that nobody frames it. The sandbox gives it an origin of its own: even if something ran,
# it could not act as the visitor who reads it.
POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "sandbox allow-downloads allow-popups allow-popups-to-escape-sandbox"
)
HEADERS = {**NO_STORE, "content-security-policy": POLICY, "referrer-policy": "no-referrer", "x-robots-tag": "noindex, nofollow"}


class Publish(Given):
    """kind, subject: as in `Publishing.subject`."""

    kind: Kind
    subject: str
    title: str = ""


class Withdraw(Given):
    token: str


class Code(Given):
    """address: of a published page, as the browser reached it: the server does not know by which name it is known outside."""

    address: str = Field(max_length=500)


def add_publish(app: FastAPI, services: Services) -> None:
    publishing, published, texts = Publishing(services), services.published, services.texts
    owner_of = services.access.owner_of

    def allow(request: Request, kind: Kind) -> None:
        services.access.require_publisher(request)
        if kind == "qa":
            services.access.require_operator(request)

    async def dialog(request: Request, kind: Kind, named: str, made: str = "") -> str:
        owner = owner_of(request)
        try:
            allow(request, kind)
            subject = await publishing.subject(owner, kind, named)
        except Failure as failure:
            return dialog_html(kind, named, failure, [], await publishing.own(owner), texts, services.access.share_link)
        links, everything = await publishing.own(owner, subject), await publishing.own(owner)
        title = subject.title or texts.say("chats.untitled")
        return dialog_html(kind, named, title, links, everything, texts, services.access.share_link, made=made)

    @app.get("/kimi/published")
    async def shown(request: Request, kind: Kind, subject: str) -> Response:
        return HTMLResponse(await dialog(request, kind, subject), headers=NO_STORE)

    async def publish(request: Request, given: Publish) -> dict[str, str]:
        allow(request, given.kind)
        owner = owner_of(request)
        made = await publishing.publish(owner, given.kind, given.subject, given.title[:10_000])
        return {"html": await dialog(request, given.kind, given.subject, made.token), "token": made.token}

    async def withdraw(request: Request, given: Withdraw) -> None:
        await published.withdraw(given.token, None if services.access.is_operator(request) else owner_of(request))

    async def code(request: Request, given: Code) -> dict[str, str]:
        try:
            return {"html": qr_html(given.address, texts)}
        except ValueError as error:
            raise Failure("acts.malformed", problem=error) from error

    add_act(app, services, "publish", Publish, publish)
    add_act(app, services, "publish_qr", Code, code)
    add_act(app, services, "publish_withdraw", Withdraw, withdraw)

    async def page(request: Request, token: str) -> bytes | Response:
        found = await published.page(token)
        if found is None:
            return refusal(404, Failure("publish.gone"), request)
        return found

    @app.get("/kimi/p/{token}")
    async def read(request: Request, token: str) -> Response:
        found = await page(request, token)
        return found if isinstance(found, Response) else HTMLResponse(with_bar(found, bar_html(token, texts)), headers=HEADERS)

    @app.get("/kimi/p/{token}/file")
    async def file(request: Request, token: str) -> Response:
        found = await page(request, token)
        if isinstance(found, Response):
            return found
        headers = {**HEADERS, "content-disposition": 'attachment; filename="kimi-demo-run.html"'}
        return HTMLResponse(with_bar(found, ""), headers=headers)
