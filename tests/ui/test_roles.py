"""Every route of ours and every handler of the page, with who may use it. One that is added without an entry here fails: deciding who
may do a thing belongs to making it possible."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Literal

import httpx
import pytest
from starlette.routing import Mount, Route

from kimi_demo.settings import Settings
from kimi_demo.ui.access import Access
from kimi_demo.ui.application import Application, build
from kimi_demo.ui.by_language import ByLanguage
from kimi_demo.ui.guard import Guard
from tests import scripted_server
from tests.scripted_server import Scripted

OWN = "http://127.0.0.1:7860"
Role = Literal["anyone", "visitor", "operator"]
"""anyone: the same for all; visitor: what belongs to the visitor who asks; operator: whoever holds the token of this start."""

OPERATOR_ACTS: dict[str, dict[str, Any]] = {
    "restart": {},
    "batch_unload": {},
    "server_plan": {"options": {}, "model": "rehearsal", "place": "8xh200"},
    "server_nodes": {"options": {}, "model": "rehearsal", "hosts": "a b", "gpus": "8", "way": "stages"},
    "server_weights": {"source": "modelscope", "model": "a/b"},
    "server_weights_stop": {},
    "server_start": {"options": {}, "model": "rehearsal"},
    "server_restart": {},
    "server_stop": {},
    "server_use": {"address": "http://127.0.0.1:9/v1"},
    "server_forget": {"address": "http://127.0.0.1:9/v1"},
    "server_preview": {"options": {}, "model": "rehearsal"},
    "server_arguments": {"options": {}, "model": "rehearsal"},
    "server_profile_save": {"name": "a", "options": {}},
    "server_profile_delete": {"name": "a"},
    "server_profile_load": {"name": "a"},
    "server_check": {},
    "server_check_stop": {},
    "server_ask": {},
    "server_key": {},
    "qa_start": {"suite": "smoke"},
    "qa_stop": {},
    "qa_again": {"run": "a"},
    "qa_delete": {"run": "a"},
    "qa_baseline": {"run": "a"},
    "qa_baseline_drop": {"run": "a"},
    "qa_judge": {"run": "a", "case": "b", "good": True},
}
"""With a body that is well made, so that nothing but the visitor is wrong with it."""

OPERATOR_PAGES = (
    *("/kimi/server/live", "/kimi/server/log"),
    *("/kimi/qa/live", "/kimi/qa/runs/{run}/case/{case_id}", "/kimi/qa/runs/{run}/report.{form}"),
)

VISITOR_ACTS = (
    *("chat_again", "chat_edit", "chat_version", "chat_take_back", "chat_bring_back", "chat_send_waiting", "chat_rename", "chat_delete"),
    *("chat_restore", "chat_system", "chat_give_more", "chat_keep_brief", "chat_continue", "chat_send", "chat_stop", "chat_unqueue"),
    *("tools_decide", "tools_again", "tools_go_on", "tools_edit", "tools_version", "tools_plain", "tools_repeat", "tools_answer"),
    *("tools_ask", "tools_stop", "tools_clear", "raw_run", "raw_stop", "raw_render"),
    *("bench_switch", "bench_choose", "bench_parallel", "bench_approve", "bench_delete"),
    # go_on takes the GPUs from the chat server only for the operator, who says so (`takeover`).
    *("batch_stop", "batch_pause", "batch_resume", "batch_delete", "batch_rename", "batch_go_on", "batch_again"),
    *("publish", "publish_withdraw", "publish_qr", "rate", "pair_run", "pair_stop"),  # the operator withdraws everybody's
)

ROLES: dict[str, Role] = {
    "/kimi/badge": "anyone",
    "/kimi/server/frame": "anyone",  # a sentence for everybody else
    "/kimi/qa/frame": "anyone",  # as well
    **{f"/kimi/act/{name}": "operator" for name in OPERATOR_ACTS},
    **{path: "operator" for path in OPERATOR_PAGES},
    **{f"/kimi/act/{name}": "visitor" for name in VISITOR_ACTS},
    "/kimi/batches/{batch}/charts": "visitor",
    "/kimi/batches/{batch}/compare": "visitor",
    "/kimi/batches/{batch}/download.{form}": "visitor",
    "/kimi/batches/{batch}/row/{index}": "visitor",
    "/kimi/batches/{batch}/rows": "visitor",
    "/kimi/batches/draft": "visitor",
    "/kimi/batches/draft/check": "visitor",
    "/kimi/batches/draft/{token}/piece": "visitor",
    "/kimi/batches/draft/{token}/remove": "visitor",
    "/kimi/batches/engine/{name}": "anyone",
    "/kimi/chats": "visitor",
    "/kimi/chats/beside/{run_id}": "visitor",
    "/kimi/chats/copy/{run_id}": "visitor",
    "/kimi/chats/import": "visitor",
    "/kimi/chats/{conversation_id}/export.{form}": "visitor",
    "/kimi/images": "visitor",
    "/kimi/images/sight": "anyone",
    "/kimi/images/{image}": "visitor",
    "/kimi/live/batch": "visitor",
    "/kimi/live/{kind}": "visitor",
    "/kimi/p/{token}": "anyone",  # who knows the address, signed in or not
    "/kimi/p/{token}/file": "anyone",
    "/kimi/pair/sides": "visitor",  # other servers for the operator alone
    "/kimi/published": "visitor",
    "/kimi/request/{run_id}/{index}": "visitor",
    "/kimi/request/{run_id}/{index}/{form}": "visitor",
    "/kimi/room": "visitor",
    "/kimi/thought/{run_id}/{index}": "visitor",
    "/kimi/tools": "visitor",
    "/kimi/tools/export.json": "visitor",
    "/kimi/tools/import": "visitor",
    "/kimi/tools/own": "visitor",
}

HANDLERS: dict[str, Role] = {
    "api.build.<locals>.batch": "visitor",
    "api.build.<locals>.chat": "visitor",
    "api.build.<locals>.tools": "visitor",
    "batch_tab.build.<locals>.on_preset": "anyone",
    "batch_tab.build.<locals>.on_restored": "anyone",
    "batch_tab.build.<locals>.on_run": "visitor",
    "batch_tab.build.<locals>.on_stop": "visitor",
    "parameter_panel.build.<locals>.on_input": "visitor",
    "parameter_panel.build.<locals>.on_load": "visitor",
}


@pytest.fixture
async def application(tmp_path: Path) -> AsyncIterator[tuple[Application, Access, Scripted]]:
    with scripted_server.running() as server:
        settings = Settings(_env_file=None, data=tmp_path, base_url=server.base_url)
        access = Access.of(settings, 7860)
        application = await build(settings, access)
        await application.services.chat_engine.ready(lambda event: None)
        yield application, access, server
        await application.aclose()


def visitor(application: Application, access: Access, *, operator: bool = False) -> httpx.AsyncClient:
    cookies = {access.operator_cookie: access.operator_proof} if operator else {}
    return httpx.AsyncClient(transport=httpx.ASGITransport(app=Guard(application.asgi, access)), base_url=OWN, cookies=cookies)


async def test_who_may_do_what(application: tuple[Application, Access, Scripted]) -> None:
    app, access, _ = application
    assert isinstance(app.asgi, ByLanguage)
    routes: Any = [route for page in app.asgi.pages.values() for route in page.routes]
    ours = {route.path for route in routes if isinstance(route, Route) and route.path.startswith("/kimi")}
    assert len(ours) > 40
    assert not ours - set(ROLES), "say here who may use it"
    page = next(route.app.blocks for route in routes if isinstance(route, Mount) and hasattr(route.app, "blocks"))
    handlers = {f"{each.fn.__module__.removeprefix('kimi_demo.ui.')}.{each.fn.__qualname__}" for each in page.fns.values() if each.fn}
    assert len(handlers) > 6
    assert not handlers - set(HANDLERS), "say here who may use it"

    sentence = app.services.texts.failure("access.operator_only", {})[0]
    async with visitor(app, access) as stranger, visitor(app, access, operator=True) as operator:
        for name, body in OPERATOR_ACTS.items():
            answer = await stranger.post(f"/kimi/act/{name}", json=body)
            assert answer.status_code == 422 and sentence in answer.json()["html"], name
        for path in OPERATOR_PAGES:
            refused = await stranger.get(path)
            assert refused.status_code == 403 and sentence in refused.text, path
        hidden = (await stranger.get("/kimi/server/frame")).text
        shown = (await operator.get("/kimi/server/frame")).text
        assert "srv-form" in shown and "srv-form" not in hidden and hidden.count("<p") == 1
        hidden, shown = (await stranger.get("/kimi/qa/frame")).text, (await operator.get("/kimi/qa/frame")).text
        assert "qa-form" in shown and "qa-form" not in hidden and hidden.count("<p") == 1
        # Nothing of it is in what Gradio tells every browser, either.
        assert "tensor" not in (await stranger.get("/config")).text
    assert app.services.chat_engine.state.name == "ready" and app.services.control.saved.profiles == {}
    assert not app.services.qa.books.cards


async def test_a_text_that_is_too_long_is_told_in_our_words(application: tuple[Application, Access, Scripted]) -> None:
    app, access, _ = application
    async with visitor(app, access) as somebody:
        body = {"run": "x", "round": 0, "call": 0, "what": "result", "text": "x" * 200_001}
        answer = await somebody.post("/kimi/act/tools_edit", json=body)
    assert answer.status_code == 422 and "200,001 characters" in answer.text and "String should" not in answer.text


async def test_what_the_operator_does(application: tuple[Application, Access, Scripted]) -> None:
    app, access, first = application
    control, engine = app.services.control, app.services.chat_engine

    def state() -> str:
        return engine.state.name

    with scripted_server.running(model_ids=["other-model"]) as second:
        async with visitor(app, access, operator=True) as operator:

            async def act(name: str, /, **body: Any) -> httpx.Response:
                return await operator.post(f"/kimi/act/{name}", json=body)

            wrong = (await act("server_preview", options={"max_model_len": "many"}, model="rehearsal")).json()
            assert wrong["field"] == "max_model_len" and "whole number" in wrong["problem"]
            ours = (await act("server_preview", options={"extra": "--port 1"}, model="rehearsal")).json()
            assert ours["field"] == "extra" and "--port" in ours["problem"]
            taken = (await act("server_preview", options={"server_port": first.root.rpartition(":")[2]}, model="rehearsal")).json()
            assert taken["field"] == "server_port" and "in use by another program" in taken["problem"] and taken["shell"]
            assert taken["warned"] == ""
            hosts: dict[str, Any] = {"options": {"pipeline_parallel_size": "4"}, "model": "rehearsal", "gpus": "8", "kimi": True}
            lines = (await act("server_nodes", hosts="10.0.0.1 <b>", way="stages", **hosts)).json()
            assert lines["field"] == "hosts" and "“<b>” is no host" in lines["problem"]
            lines = (await act("server_nodes", hosts="a, b", way="stages", **hosts | {"gpus": "many"})).json()
            assert lines["field"] == "gpus"
            assert (await act("server_nodes", hosts="a, b", way="sideways", **hosts)).status_code == 422
            html = (await act("server_nodes", hosts="a, b", way="stages", **hosts)).json()["html"]
            assert html.count("vllm serve moonshotai/Kimi-K2.5") == 2 and "--nnodes 2" in html and "-size 4" not in html
            assert "--gpu-memory-utilization 0.3" not in html  # the stand-in's share of a GPU
            html = (await act("server_nodes", hosts="a, b", way="router", **hosts)).json()["html"]
            assert "--worker-urls http://a:8000 http://b:8000" in html
            told = await act("server_start", options={"gpu_memory_utilization": "3"}, model="rehearsal")
            assert told.status_code == 422 and "at most 1" in told.json()["html"]
            assert (await act("server_start", options={}, model="/etc")).status_code == 422  # no paths from a browser
            assert state() == "ready"  # and nothing was stopped for it

            assert (await act("server_profile_save", name="Long", options={"max_model_len": "4096"})).json() == {"name": "Long"}
            assert (await act("server_profile_load", name="Long")).json()["options"]["max_model_len"] == 4096
            assert (await act("server_profile_delete", name="Long")).status_code == 200
            assert (await act("server_profile_load", name="Long")).status_code == 422

            first.api_key, second.api_key = None, "second-key"
            assert (await act("server_use", address=second.base_url, key="second-key")).status_code == 200
            assert (await engine.ready(lambda event: None)).info.id == "other-model"
            assert (await act("server_use", address=first.base_url, key="")).status_code == 200
            await engine.ready(lambda event: None)
            asked = [request for request in first.requests if request.path == "/v1/models"][-1]
            assert "authorization" not in asked.headers  # a key goes to its own address only
            assert "second-key" not in (app.services.settings.data / "servers.json").read_text()
            assert (await act("server_use", address=second.base_url, key="")).status_code == 200
            assert (await engine.ready(lambda event: None)).info.id == "other-model"  # its own key is remembered
            assert (await act("server_use", address="nonsense", key="")).status_code == 422
            assert state() == "ready"

            assert (await act("server_stop")).status_code == 200 and state() == "off"
            assert (await act("server_check")).status_code == 422 and (await act("server_key")).status_code == 422
            assert (await act("server_restart")).status_code == 200
            await engine.ready(lambda event: None)
            assert (await operator.get("/kimi/server/log")).status_code == 404  # there is none of somebody else's
    assert control.addresses()[:2] == [first.base_url, second.base_url]
