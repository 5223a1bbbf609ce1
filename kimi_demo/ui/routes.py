"""Our own routes beside Gradio's, under /kimi: live streams, the badge, exports, static files."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from fastapi.staticfiles import StaticFiles

from kimi_demo.dialect.events import Asked, RowFinished
from kimi_demo.dialect.failure import Failure
from kimi_demo.runs.run import Run
from kimi_demo.ui.acts import Given, add_act
from kimi_demo.ui.badge import badge
from kimi_demo.ui.chat_acts import add_chat_acts
from kimi_demo.ui.chat_again import add_chat_again
from kimi_demo.ui.chat_routes import add_chat_routes
from kimi_demo.ui.chat_send import add_chat_send
from kimi_demo.ui.image_routes import add_images
from kimi_demo.ui.live import KINDS, Live
from kimi_demo.ui.request_routes import add_requests
from kimi_demo.ui.room import add_room
from kimi_demo.ui.services import Services
from kimi_demo.ui.thoughts import add_thoughts
from kimi_demo.ui.tools_acts import add_tools_acts

ASSETS = Path(__file__).parent / "assets"


def add_routes(app: FastAPI, services: Services) -> None:
    live = Live(services.desk, services.chats, services.texts)
    add_chat_acts(app, services)
    add_chat_again(app, services)
    add_chat_send(app, services)
    add_chat_routes(app, services)
    add_requests(app, services)
    add_room(app, services)
    add_images(app, services)
    add_tools_acts(app, services)

    @app.get("/kimi/live/{kind}")
    async def follow(request: Request, kind: str, opened: str = "", group: str = "", after: str = "") -> Response:
        found = next((known for known in KINDS if known == kind), None)
        if found is None:
            return PlainTextResponse("No such view.", 404)
        stream = live.stream(services.access.owner_of(request), found, opened=opened, group=group, after=after)
        return StreamingResponse(stream, media_type="text/event-stream", headers={"cache-control": "no-store", "x-accel-buffering": "no"})

    @app.get("/kimi/badge")
    async def model_badge(request: Request) -> Response:
        operator = services.access.is_operator(request)
        now = badge(services.settings, services.chat_engine, services.texts, operator=operator)
        return JSONResponse({"html": now.html, "settled": now.settled}, headers={"cache-control": "no-store"})

    @app.get("/kimi/export/{run_id}.jsonl")
    async def export(request: Request, run_id: str) -> Response:
        try:
            run = await services.registry.get(run_id, services.access.owner_of(request))
        except Failure as failure:
            return PlainTextResponse(services.texts.sentence(failure), 404)
        name = f"kimi-demo-batch-{run.created_at:%Y%m%d-%H%M%S}.jsonl"
        headers = {"content-disposition": f'attachment; filename="{name}"', "cache-control": "no-store"}
        return StreamingResponse(_rows(run), media_type="application/jsonl", headers=headers)

    async def restart(request: Request, given: Given) -> None:
        services.access.require_operator(request)
        await services.chat_engine.restart()

    add_act(app, services, "restart", Given, restart)
    add_thoughts(app, services)
    app.mount("/kimi/static", StaticFiles(directory=ASSETS))


def _rows(run: Run) -> Iterator[bytes]:
    """The finished rows of a batch, a JSON object a line, in the order they were given."""
    asked = next((item.event.parameters for item in run.entries if isinstance(item.event, Asked)), {})
    rows = sorted((item.event for item in run.entries if isinstance(item.event, RowFinished)), key=lambda row: row.index)
    for row in rows:
        line: dict[str, Any] = {
            "index": row.index,
            "prompt": row.prompt,
            "reasoning": row.reasoning,
            "answer": row.answer,
            "finish_reason": row.finish_reason,
            "prompt_tokens": row.prompt_tokens,
            "completion_tokens": row.completion_tokens,
            "seconds": row.seconds,
            "error": row.error,
            "parameters": asked,
        }
        yield (json.dumps(line, ensure_ascii=False) + "\n").encode("utf-8", "backslashreplace")  # half a surrogate pair stays as its escape
