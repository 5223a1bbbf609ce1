"""What the door lets through, what it refuses and in which words, and that it keeps nothing back."""

import asyncio
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.testclient import TestClient
from starlette.types import Message, Receive, Scope, Send

from kimi_demo.ui.access import Access
from kimi_demo.ui.guard import Guard
from kimi_demo.ui.hosts import Hosts

OWN = "http://127.0.0.1:7860"
EVIL = "https://evil.example"


async def page(request: Request) -> Response:
    return HTMLResponse(
        f"<p>{request.url.query}</p>", headers={"access-control-allow-origin": "*", "access-control-allow-credentials": "true"}
    )


async def echo(request: Request) -> Response:
    return JSONResponse({"size": len(await request.body()), "forwarded": request.headers.get("x-forwarded-host")})


async def owner(request: Request) -> Response:
    return PlainTextResponse(request.app.state.access.owner_of(request))


async def own_policy(request: Request) -> Response:
    return PlainTextResponse("", headers={"content-security-policy": "sandbox"})


def inner(access: Access) -> Starlette:
    everything = ["GET", "POST", "OPTIONS", "PUT"]
    routes = [
        Route("/", page),
        Route("/kimi/echo", echo, methods=everything),
        Route("/kimi/owner", owner),
        Route("/kimi/policy", own_policy),
        Route("/healthz", echo),
        Route("/{path:path}", echo, methods=everything),
    ]
    app = Starlette(routes=routes)
    app.state.access = access
    return app


def made(
    auth: str | None = None, bound: str = "127.0.0.1", allowed: tuple[str, ...] = (), max_body: int = 1000
) -> tuple[TestClient, Access]:
    access = Access(7860, Hosts(bound, allowed), auth)
    return TestClient(Guard(inner(access), access, max_body), base_url=OWN, follow_redirects=False), access


# Host


@pytest.mark.parametrize(
    "host", ["127.0.0.1:7860", "localhost:7860", "LOCALHOST", "demo.localhost", "[::1]:7860", "192.168.1.5", "10.0.0.1:80"]
)
def test_loopback_names_and_addresses_are_known(host: str) -> None:
    client, _ = made()
    assert client.get("/", headers={"host": host}).status_code == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:7860", "127.0.0.1.evil.example", "localhost.evil.example", "", "a b", "u@127.0.0.1"]
)
def test_a_rebound_name_is_refused_in_a_sentence(host: str) -> None:
    client, _ = made()
    answer = client.get("/", headers={"host": host})
    assert answer.status_code == 421
    assert "does not answer under the name" in answer.text and "--allowed-hosts" in answer.text


def test_two_host_headers_are_refused() -> None:
    client, _ = made()
    assert client.get("/", headers=[("host", "127.0.0.1:7860"), ("host", "evil.example")]).status_code == 421


def test_named_hosts_are_known_also_later() -> None:
    client, access = made(allowed=("demo.example.org",))
    assert client.get("/", headers={"host": "demo.example.org"}).status_code == 200
    assert client.get("/", headers={"host": "abc.gradio.live"}).status_code == 421
    access.hosts.allow("abc.gradio.live")
    assert client.get("/", headers={"host": "abc.gradio.live"}).status_code == 200


def test_the_bound_host_is_known() -> None:
    client, _ = made(bound="gpu-box")
    assert client.get("/", headers={"host": "gpu-box:7860"}).status_code == 200


# Origin


@pytest.mark.parametrize(
    "origin", [EVIL, "null", "", "http://127.0.0.1:8080", "http://localhost:7860", "file://", "http://127.0.0.1:7860.evil.example"]
)
@pytest.mark.parametrize(
    ("method", "path"),
    [("POST", "/gradio_api/queue/join"), ("GET", "/gradio_api/queue/data"), ("GET", "/kimi/echo"), ("OPTIONS", "/gradio_api/call/chat")],
)
def test_a_foreign_origin_is_refused(origin: str, method: str, path: str) -> None:
    client, _ = made()
    answer = client.request(method, path, headers={"origin": origin})
    assert answer.status_code == 403
    assert "Another web page" in answer.text
    assert not [name for name in answer.headers if name.startswith("access-control-")]


def test_our_own_origin_is_welcome() -> None:
    client, _ = made()
    assert client.post("/gradio_api/queue/join", headers={"origin": OWN}).status_code == 200
    assert client.post("/kimi/echo", headers={"origin": "http://localhost:7860", "host": "localhost:7860"}).status_code == 200


def test_a_second_origin_header_does_not_hide_behind_the_first() -> None:
    client, _ = made()
    assert client.post("/kimi/echo", headers=[("origin", OWN), ("origin", EVIL)]).status_code == 403


def test_behind_a_proxy_the_public_name_is_our_origin() -> None:
    client, _ = made(allowed=("demo.example.org",))
    for headers in (
        {"host": "demo.example.org"},
        {"host": "127.0.0.1:7860", "x-forwarded-host": "demo.example.org"},
        {"host": "127.0.0.1:7860"},
    ):
        assert client.post("/kimi/echo", headers=headers | {"origin": "https://demo.example.org"}).status_code == 200
        assert client.post("/kimi/echo", headers=headers | {"origin": "https://demo.example.org:8443"}).status_code == 403


def test_an_unknown_forwarded_host_neither_helps_nor_gets_through() -> None:
    client, _ = made()
    forged = {"x-forwarded-host": "evil.example", "x-gradio-server": "http://evil.example"}
    assert client.post("/kimi/echo", headers=forged | {"origin": "https://evil.example"}).status_code == 403
    assert client.post("/kimi/echo", headers=forged).json()["forwarded"] is None


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_an_embedded_request_of_another_page_is_refused_without_origin_too(site: str) -> None:
    client, _ = made()
    image = {"sec-fetch-site": site, "sec-fetch-mode": "no-cors", "sec-fetch-dest": "image"}
    assert client.get("/gradio_api/call/chat/1", headers=image).status_code == 403
    assert client.get("/", headers=image | {"sec-fetch-mode": "navigate", "sec-fetch-dest": "iframe"}).status_code == 403


def test_a_link_from_another_page_may_be_followed_to_the_page_but_not_into_the_api() -> None:
    client, _ = made()
    link = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}
    assert client.get("/", headers=link).status_code == 200
    assert client.get("/gradio_api/startup-events", headers=link).status_code == 403
    assert client.post("/kimi/echo", headers=link).status_code == 403


@pytest.mark.parametrize("site", ["same-origin", "none"])
def test_our_own_page_and_the_address_bar_are_welcome(site: str) -> None:
    client, _ = made()
    assert client.get("/gradio_api/startup-events", headers={"sec-fetch-site": site}).status_code == 200


def test_a_client_that_is_no_browser_is_welcome() -> None:
    client, _ = made()
    assert client.post("/gradio_api/call/chat", json={"data": []}).status_code == 200


# User and password


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/config",
        "/theme.css",
        "/gradio_api/info",
        "/gradio_api/heartbeat/x",
        "/gradio_api/startup-events",
        "/kimi/echo",
        "/login",
        "/nothing",
    ],
)
def test_without_the_password_every_route_is_closed(path: str) -> None:
    client, _ = made(auth="ann:hunter2")
    for answer in (client.get(path), client.post(path), client.get(path, auth=("ann", "wrong"))):
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"] == 'Basic realm="Kimi demo", charset="UTF-8"'
        assert "set-cookie" not in answer.headers


def test_with_the_password_they_are_open() -> None:
    client, _ = made(auth="ann:hunter2")
    assert client.get("/", auth=("ann", "hunter2")).status_code == 200


def test_health_needs_no_password_and_the_operator_s_token_is_none() -> None:
    client, access = made(auth="ann:hunter2")
    assert client.get("/healthz").status_code == 200
    assert client.get(f"/?operator={access.token}").status_code == 401


# Cookies


def test_the_first_page_greets_the_visitor_once() -> None:
    client, access = made()
    told = client.get("/").headers["set-cookie"].lower()
    assert told.startswith(f"{access.visitor_cookie}=") and "httponly" in told and "samesite=lax" in told and "path=/" in told
    assert "secure" not in told
    assert "set-cookie" not in client.get("/").headers
    assert client.get("/kimi/owner").text == client.get("/kimi/owner").text


def test_over_https_the_cookie_is_secure() -> None:
    client, access = made(allowed=("abc.gradio.live",))
    access.share_link = "https://abc.gradio.live"
    assert "secure" in client.get("/", headers={"host": "abc.gradio.live"}).headers["set-cookie"].lower()
    assert "secure" not in client.get("/", headers={"x-forwarded-proto": "https"}).headers["set-cookie"].lower()  # anybody can say so


def test_an_api_client_gets_no_cookie_and_shares_no_owner() -> None:
    client, _ = made()
    first = client.get("/kimi/owner")
    assert "set-cookie" not in first.headers
    assert first.text != client.get("/kimi/owner").text


def test_a_made_up_cookie_is_replaced() -> None:
    client, access = made()
    assert "set-cookie" in client.get("/", headers={"cookie": f"{access.visitor_cookie}=me"}).headers


def test_the_operator_s_link_becomes_a_cookie_and_a_clean_address() -> None:
    client, access = made()
    answer = client.get(f"/?a=1&operator={access.token}&b=%262")
    told = answer.headers["set-cookie"]
    assert answer.status_code == 303 and answer.headers["location"] == "/?a=1&b=%262"
    assert "httponly" in told.lower() and "samesite=lax" in told.lower() and access.token not in told
    assert client.cookies[access.operator_cookie] == access.operator_proof
    assert client.get(f"/?operator={access.token}").headers["location"] == "/"


def test_the_operator_s_link_leads_nowhere_else() -> None:
    client, access = made()
    answer = client.get(f"{OWN}//evil.example/?operator={access.token}")
    assert answer.headers["location"] == "/evil.example/"


def test_an_old_operator_s_link_says_so() -> None:
    client, access = made()
    answer = client.get("/?operator=old")
    assert answer.status_code == 403 and "not valid" in answer.text and "set-cookie" not in answer.headers


# Headers


def test_every_answer_carries_the_security_headers() -> None:
    client, _ = made()
    for answer in (
        client.get("/"),
        client.get("/", headers={"host": "evil.example"}),
        client.get("/login"),
        client.post("/kimi/echo", content="x" * 2000),
    ):
        policy = answer.headers["content-security-policy"]
        assert "default-src 'self'" in policy and "frame-ancestors 'none'" in policy and "http" not in policy and "*" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "same-origin"
        assert not [name for name in answer.headers if name.startswith("access-control-")]


def test_a_route_may_be_stricter_than_the_page() -> None:
    client, _ = made()
    assert client.get("/kimi/policy").headers["content-security-policy"] == "sandbox"


def test_refusals_come_in_chinese_where_that_is_asked_for() -> None:
    client, _ = made()
    answer = client.get("/login", headers={"accept-language": "zh-CN,zh;q=0.9,en;q=0.8"})
    assert answer.text == "这个地址下没有内容。 请返回演示页面。\n" and answer.headers["content-language"] == "zh"


# Gradio's routes


CLOSED = [
    "/gradio_api/upload",
    "/gradio_api/upload/",
    "/gradio_api/upload_progress",
    "/gradio_api/deep_link",
    "/gradio_api/proxy=https://a.hf.space/x",
    "/gradio_api/file=http://evil.example/x",
    "/gradio_api/file=https:/evil.example/x",
    "/gradio_api/runs",
    "/gradio_api/run-history/records",
    "/gradio_api/user",
    "/gradio_api/token",
    "/gradio_api/login_check",
    "/gradio_api/stream/1",
    "/gradio_api/process_recording",
    "/gradio_api/component_server",
    "/gradio_api/custom_component/a/client/b/c",
    "/gradio_api/vibe-edit",
    "/gradio_api/vibe-code",
    "/gradio_api/dev/reload",
    "/gradio_api/mcp",
    "/gradio_api/mcp/schema",
    "/gradio_api/profiling/traces",
    "/gradio_api/something-new",
    "/login",
    "/logout",
    "/monitoring",
    "/monitoring/summary",
    "/docs",
    "/openapi.json",
    "/?deep_link=x",
    "/config?deep_link=x",
]
OPEN = [
    "/",
    "/config",
    "/theme.css",
    "/assets/index.js",
    "/static/img/logo.svg",
    "/favicon.ico",
    "/manifest.json",
    "/gradio_api/info",
    "/gradio_api/startup-events",
    "/gradio_api/app_id",
    "/gradio_api/queue/join",
    "/gradio_api/queue/data",
    "/gradio_api/heartbeat/x",
    "/gradio_api/cancel",
    "/gradio_api/reset",
    "/gradio_api/call/chat",
    "/gradio_api/call/v2/chat/1",
    "/gradio_api/run/predict",
    "/gradio_api/file=/tmp/rows.csv",
    "/gradio_api/openapi.json",
]


@pytest.mark.parametrize("path", CLOSED)
def test_routes_that_nobody_needs_are_closed(path: str) -> None:
    client, _ = made()
    assert client.get(path).status_code == 404 and client.post(path).status_code in (404, 405)


@pytest.mark.parametrize("path", OPEN)
def test_routes_that_the_page_needs_are_open(path: str) -> None:
    client, _ = made()
    assert client.get(path).status_code == 200


# Bodies


def test_a_body_of_just_the_limit_passes() -> None:
    client, _ = made(max_body=1000)
    assert client.post("/kimi/echo", content="x" * 1000).json()["size"] == 1000


def test_an_announced_body_beyond_it_is_refused() -> None:
    client, _ = made(max_body=1000)
    answer = client.post("/kimi/echo", content="x" * 1001)
    assert answer.status_code == 413 and "larger than" in answer.text


async def test_an_announced_body_beyond_it_is_not_even_read() -> None:
    async def unused(scope: Scope, receive: Receive, send: Send) -> None:
        raise AssertionError("reached")

    headers = [(b"host", b"127.0.0.1:7860"), (b"content-length", b"1001")]
    drive = Drive(Guard(unused, made()[1], max_body=1000), method="POST", headers=headers)
    assert (await drive.sent.get())["status"] == 413
    await drive.task


def test_an_unannounced_body_is_counted() -> None:
    client, _ = made(max_body=1000)
    answer = client.post("/kimi/echo", content=iter([b"x" * 600, b"x" * 600]))
    assert "content-length" not in answer.request.headers
    assert answer.status_code == 413


# Nothing is buffered; nothing but HTTP


class Drive:
    """Runs one request against an application, with the messages of both sides in hand."""

    def __init__(self, app: Any, **scope: Any) -> None:
        self.sent: asyncio.Queue[Message] = asyncio.Queue()
        headers = [(b"host", b"127.0.0.1:7860")]
        self.scope: Scope = {
            "type": "http",
            "method": "GET",
            "path": "/",
            "raw_path": b"/",
            "query_string": b"",
            "headers": headers,
            "scheme": "http",
            "server": ("127.0.0.1", 7860),
            "client": ("127.0.0.1", 1),
            "http_version": "1.1",
            **scope,
        }
        self.gone = asyncio.Event()
        self.task = asyncio.create_task(app(self.scope, self.receive, self.sent.put))
        self._asked = False

    async def receive(self) -> Message:
        if not self._asked:
            self._asked = True
            return {"type": "http.request", "body": b"", "more_body": False}
        await self.gone.wait()
        return {"type": "http.disconnect"}


async def test_chunks_pass_at_once() -> None:
    go_on = asyncio.Event()

    async def chunks() -> Any:
        yield b"first"
        await go_on.wait()
        yield b"second"

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await StreamingResponse(chunks(), media_type="text/event-stream")(scope, receive, send)

    drive = Drive(Guard(app, made()[1]))
    assert (await drive.sent.get())["status"] == 200
    assert (await drive.sent.get())["body"] == b"first"  # while the application waits
    go_on.set()
    assert (await drive.sent.get())["body"] == b"second"
    await drive.task


async def test_a_reader_that_leaves_is_noticed_by_the_application() -> None:
    ended = asyncio.Event()

    async def chunks() -> Any:
        try:
            yield b"first"
            await asyncio.Event().wait()
        finally:
            ended.set()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await StreamingResponse(chunks())(scope, receive, send)

    drive = Drive(Guard(app, made()[1]))
    await drive.sent.get()
    await drive.sent.get()
    drive.gone.set()
    await asyncio.wait_for(ended.wait(), 5)
    await drive.task


async def test_what_the_application_raises_is_not_hidden() -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        await Drive(Guard(app, made()[1])).task


async def test_websockets_are_turned_away() -> None:
    sent: list[Message] = []

    async def keep(message: Message) -> None:
        sent.append(message)

    async def unused(scope: Scope, receive: Receive, send: Send) -> None:
        raise AssertionError("reached")

    await Guard(unused, made()[1])({"type": "websocket", "path": "/", "headers": []}, asyncio.Queue().get, keep)
    assert sent == [{"type": "websocket.close", "code": 1008}]
