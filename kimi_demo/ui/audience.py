"""Who gets what of the page: one table of all routes, and the two applications that a public page is made of.

In public mode viewers and the operator are served by two applications over the same runs and engines. What a viewer may not use is not
in theirs: neither the route, nor the tab, nor the handler, nor a word of it in Gradio's configuration. The sides are told apart at every
request, by the operator's cookie.
"""

import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Literal

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, PlainTextResponse, Response
from starlette.applications import Starlette
from starlette.requests import Request as AnyRequest
from starlette.routing import Mount, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from kimi_demo.dialect.failure import Failure
from kimi_demo.limits.presence import Presence
from kimi_demo.owners import is_viewer
from kimi_demo.settings import Settings
from kimi_demo.ui.access import Access
from kimi_demo.ui.by_language import ByLanguage
from kimi_demo.ui.plain import refusal
from kimi_demo.ui.services import Services

Feature = Literal["page", "chat", "tools", "batch", "raw", "own", "operator"]
"""page: what every tab needs; own: what visitors bring along (tools, MCP, files of conversations) and look behind (requests as sent)."""

MOST_OPEN_EACH = 60
"""Requests of one viewer that are answered at the same time, streams among them: ten tabs have room."""
MOST_OPEN = 2000

ALL: frozenset[Feature] = frozenset(("page", "chat", "tools", "batch", "raw", "own", "operator"))

_ACTS: dict[Feature, str] = {
    "page": "forget_me",
    "chat": "chat_again chat_edit chat_version chat_take_back chat_bring_back chat_send_waiting chat_rename chat_delete chat_restore "
    "chat_system chat_give_more chat_keep_brief chat_continue chat_send chat_stop chat_unqueue",
    "tools": "tools_decide tools_again tools_go_on tools_edit tools_version tools_plain tools_repeat tools_answer tools_ask tools_stop "
    "tools_clear bench_switch bench_choose bench_parallel bench_approve",
    "batch": "batch_stop batch_pause batch_resume batch_delete batch_rename batch_go_on batch_again",
    "raw": "raw_run raw_stop raw_render",
    "own": "bench_delete",
    "operator": "restart batch_unload server_plan server_nodes server_weights server_weights_stop server_start server_restart server_stop "
    "server_use server_forget server_preview server_arguments server_profile_save server_profile_delete server_profile_load server_check "
    "server_check_stop server_ask server_key qa_start qa_stop qa_again qa_delete qa_baseline qa_baseline_drop qa_judge "
    "publish publish_withdraw publish_qr rate pair_run pair_stop",
}
_ROUTES: dict[Feature, str] = {
    "page": "/kimi/badge /kimi/limits /kimi/live/{kind} /kimi/thought/{run_id}/{index} /kimi/p/{token} /kimi/p/{token}/file /kimi/static",
    "chat": "/kimi/chats /kimi/chats/beside/{run_id} /kimi/chats/copy/{run_id} /kimi/chats/{conversation_id}/export.{form} /kimi/images "
    "/kimi/images/sight /kimi/images/{image} /kimi/room",
    "tools": "/kimi/tools",
    "batch": "/kimi/batches/{batch}/charts /kimi/batches/{batch}/compare /kimi/batches/{batch}/download.{form} "
    "/kimi/batches/{batch}/row/{index} /kimi/batches/{batch}/rows /kimi/batches/draft /kimi/batches/draft/check "
    "/kimi/batches/draft/{token}/piece /kimi/batches/draft/{token}/remove /kimi/batches/engine/{name} /kimi/live/batch",
    "own": "/kimi/chats/import /kimi/request/{run_id}/{index} /kimi/request/{run_id}/{index}/{form} /kimi/tools/export.json "
    "/kimi/tools/import /kimi/tools/own",
    "operator": "/kimi/pair/sides /kimi/server/frame /kimi/server/live /kimi/server/log /kimi/published /kimi/qa/frame /kimi/qa/live "
    "/kimi/qa/runs/{run}/case/{case_id} /kimi/qa/runs/{run}/report.{form}",
}
RIGHTS: Mapping[str, Feature] = {
    **{f"/kimi/act/{name}": feature for feature, names in _ACTS.items() for name in names.split()},
    **{path: feature for feature, paths in _ROUTES.items() for path in paths.split()},
}
"""Every route of ours. One that is not here is nobody's but the operator's."""


def viewers_features(settings: Settings) -> frozenset[Feature]:
    """What a viewer of a public page gets."""
    found: set[Feature] = {"page", "chat", "tools"}
    if settings.public_batch:
        found.add("batch")
    if settings.public_raw:
        found.add("raw")
    return frozenset(found)


def keep_only(app: FastAPI, services: Services, features: frozenset[Feature]) -> None:
    """Takes every route of ours out of `app` that is not in these features, and lets the rest of /kimi say that there is nothing.

    To be called before Gradio is mounted, which takes every path that is left.
    """
    app.router.routes[:] = [
        route for route in app.router.routes if not isinstance(route, Route | Mount) or RIGHTS.get(route.path, "operator") in features
    ]

    @app.api_route("/kimi/{rest:path}", methods=["GET", "HEAD", "POST", "PUT", "DELETE", "PATCH"], include_in_schema=False)
    async def nothing(request: Request, rest: str) -> Response:
        failure = Failure("access.closed_route")
        if rest.startswith("act/"):
            return JSONResponse({"html": services.notice(failure)}, 404)
        return PlainTextResponse(services.texts.sentence(failure), 404)


class TwoAudiences:
    """The operator's application and the viewers' behind one address."""

    def __init__(self, operator: ByLanguage, viewers: ByLanguage, access: Access, presence: Presence) -> None:
        """presence: is told who is there."""
        self.operator = operator
        self.viewers = viewers
        self._access = access
        self._presence = presence

        @asynccontextmanager
        async def both(_: Starlette) -> AsyncIterator[None]:
            async with operator.alive(), viewers.alive():
                yield

        self._life = Starlette(lifespan=both)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._life(scope, receive, send)
            return
        request = AnyRequest(scope)
        side: ASGIApp = self.operator if self._access.is_operator(request) else self.viewers
        owner = self._access.owner_of(request)
        if is_viewer(owner) and (self._presence.open_of(owner) >= MOST_OPEN_EACH or self._presence.open >= MOST_OPEN):
            await refusal(503, Failure("limits.connections"), request)(scope, receive, send)
            return
        self._presence.enter(owner, time.monotonic())
        try:
            await side(scope, receive, send)
        finally:
            self._presence.leave(owner, time.monotonic())
