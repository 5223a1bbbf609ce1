"""Real Gradio behind the door: what a page needs works, and each route it has is open or closed on purpose."""

import json
import re
from collections.abc import Iterator
from typing import Any

import gradio as gr
import pytest
from fastapi import FastAPI
from starlette.routing import Mount, Route
from starlette.testclient import TestClient

from kimi_demo.ui.access import Access
from kimi_demo.ui.gradio_routes import is_open
from kimi_demo.ui.guard import Guard
from kimi_demo.ui.hosts import Hosts

OWN = "http://127.0.0.1:7860"

# What 6.31.0 leaves open behind us. A new entry here is a decision.
EXPECTED = {
    "/",
    "/assets/{path:path}",
    "/config",
    "/favicon.ico",
    "/manifest.json",
    "/pwa_icon",
    "/pwa_icon/{size}",
    "/robots.txt",
    "/static/{path:path}",
    "/svelte/{path:path}",
    "/theme.css",
    "/gradio_api/app_id",
    "/gradio_api/call/v2/{api_name}",
    "/gradio_api/call/v2/{api_name}/{event_id}",
    "/gradio_api/call/{api_name}",
    "/gradio_api/call/{api_name}/{event_id}",
    "/gradio_api/cancel",
    "/gradio_api/file={path_or_url:path}",
    "/gradio_api/heartbeat/{session_hash}",
    "/gradio_api/info",
    "/gradio_api/openapi.json",
    "/gradio_api/queue/data",
    "/gradio_api/queue/join",
    "/gradio_api/queue/status",
    "/gradio_api/reset",
    "/gradio_api/run/{api_name}",
    "/gradio_api/startup-events",
    "/gradio_api/theme.css",
}


@pytest.fixture(scope="module")
def access() -> Access:
    return Access(7860, Hosts("127.0.0.1"))


@pytest.fixture(scope="module")
def mounted(access: Access) -> FastAPI:
    def whose(text: str, request: gr.Request) -> str:
        return f"{text} {access.owner_of(request)} {access.is_operator(request)}"

    with gr.Blocks(analytics_enabled=False) as blocks:
        text, out = gr.Textbox(), gr.Textbox()
        text.submit(whose, text, out, api_name="whose")
    blocks.queue()
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)
    gr.mount_gradio_app(app, blocks, path="/", ssr_mode=False, run_history=False)
    return app


@pytest.fixture
def client(mounted: FastAPI, access: Access) -> Iterator[TestClient]:
    with TestClient(Guard(mounted, access), base_url=OWN) as client:
        yield client


def routes(app: Any) -> set[str]:
    found: set[str] = set()
    for route in app.routes:
        if isinstance(route, Mount):
            found |= routes(route.app)
        elif isinstance(route, Route):
            found.add(route.path.rstrip("/") or "/")
    return found


def test_exactly_these_routes_of_gradio_are_open(mounted: FastAPI) -> None:
    everything = routes(mounted)
    assert "/gradio_api/upload" in everything  # the list is not empty by accident
    assert {path for path in everything if is_open(re.sub(r"\{.*?\}", "x", path), {})} == EXPECTED


def call(client: TestClient, headers: dict[str, str] | None = None) -> str:
    joined = client.post("/gradio_api/call/whose", json={"data": ["hello"]}, headers=headers)
    assert joined.status_code == 200, joined.text
    answer = client.get(f"/gradio_api/call/whose/{joined.json()['event_id']}")
    assert "event: complete" in answer.text
    return str(json.loads(answer.text.split("data: ")[1])[0])


def test_an_event_knows_its_visitor_and_the_operator(client: TestClient, access: Access) -> None:
    assert client.get("/").status_code == 200  # sets the cookie
    first = call(client)
    assert first == call(client, {"origin": OWN}) and first.endswith("False")
    client.get(f"/?operator={access.token}")
    assert call(client) == first.replace("False", "True")


def test_api_clients_do_not_share_an_owner(mounted: FastAPI, access: Access) -> None:
    with TestClient(Guard(mounted, access), base_url=OWN) as client:
        assert call(client) != call(client)


def test_the_page_names_no_foreign_root_whatever_the_headers_say(client: TestClient) -> None:
    forged = {"x-forwarded-host": "evil.example", "x-gradio-server": "http://evil.example"}
    assert client.get("/config", headers=forged).json()["root"] == OWN
    assert "evil.example" not in client.get("/", headers=forged).text


def test_gradio_s_generous_cors_does_not_come_out(client: TestClient) -> None:
    own = client.post("/gradio_api/call/whose", json={"data": ["a"]}, headers={"origin": OWN})
    assert own.status_code == 200 and not [name for name in own.headers if name.startswith("access-control-")]
    preflight = {"origin": "https://evil.example", "access-control-request-method": "POST"}
    assert client.options("/gradio_api/call/whose", headers=preflight).status_code == 403
