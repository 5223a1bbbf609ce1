"""Our own routes beside Gradio's, under /kimi: live streams, the badge, exports, static files."""

from pathlib import Path

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from fastapi.staticfiles import StaticFiles

from kimi_demo.ui.acts import Given, add_act
from kimi_demo.ui.badge import badge
from kimi_demo.ui.batch_acts import add_batch_acts
from kimi_demo.ui.batch_draft_routes import add_batch_drafts
from kimi_demo.ui.batch_routes import add_batch_routes
from kimi_demo.ui.bench_routes import add_bench
from kimi_demo.ui.beside import add_beside
from kimi_demo.ui.chat_acts import add_chat_acts
from kimi_demo.ui.chat_again import add_chat_again
from kimi_demo.ui.chat_routes import add_chat_routes
from kimi_demo.ui.chat_send import add_chat_send
from kimi_demo.ui.image_routes import add_images
from kimi_demo.ui.live import KINDS, Live
from kimi_demo.ui.pair_acts import add_pair
from kimi_demo.ui.publish_routes import add_publish
from kimi_demo.ui.qa_acts import add_qa_acts
from kimi_demo.ui.qa_routes import add_qa_routes
from kimi_demo.ui.rate_acts import add_rate_acts
from kimi_demo.ui.raw_send import add_raw_send
from kimi_demo.ui.request_routes import add_requests
from kimi_demo.ui.room import add_room
from kimi_demo.ui.server_acts import add_server_acts
from kimi_demo.ui.server_plan_acts import add_server_plan_acts
from kimi_demo.ui.server_routes import add_server_routes
from kimi_demo.ui.services import Services
from kimi_demo.ui.thoughts import add_thoughts
from kimi_demo.ui.tools_acts import add_tools_acts
from kimi_demo.ui.tools_send import add_tools_send

ASSETS = Path(__file__).parent / "assets"


def add_routes(app: FastAPI, services: Services) -> None:
    live = Live(services.desk, services.chats, services.texts, services.pace)
    add_chat_acts(app, services)
    add_chat_again(app, services)
    add_chat_send(app, services)
    add_beside(app, services)
    add_chat_routes(app, services)
    add_requests(app, services)
    add_room(app, services)
    add_publish(app, services)
    add_rate_acts(app, services)
    add_images(app, services)
    add_tools_acts(app, services)
    add_tools_send(app, services)
    add_raw_send(app, services)
    add_pair(app, services)
    add_bench(app, services)
    add_server_routes(app, services)
    add_server_acts(app, services)
    add_server_plan_acts(app, services)
    add_qa_routes(app, services)
    add_qa_acts(app, services)

    add_batch_drafts(app, services)
    add_batch_routes(app, services)  # its stream before those of all other kinds
    add_batch_acts(app, services)

    @app.get("/kimi/live/{kind}")
    async def follow(request: Request, kind: str, opened: str = "", group: str = "", after: str = "") -> Response:
        found = next((known for known in KINDS if known == kind), None)
        if found is None:
            return PlainTextResponse("No such view.", 404)
        stream = live.stream(services.access.owner_of(request), found, opened=opened, group=group, after=after)
        return StreamingResponse(stream, media_type="text/event-stream", headers={"cache-control": "no-store", "x-accel-buffering": "no"})

    @app.get("/kimi/badge")
    async def model_badge(request: Request) -> Response:
        operator, engine = services.access.is_operator(request), services.chat_engine
        condition = services.control.monitor.health.name
        now = badge(engine.settings, engine, services.texts, operator=operator, condition=condition, title=services.settings.model_title)
        return JSONResponse({"html": now.html, "settled": now.settled}, headers={"cache-control": "no-store"})

    async def restart(request: Request, given: Given) -> None:
        services.access.require_operator(request)
        await services.control.restart()

    add_act(app, services, "restart", Given, restart)
    add_thoughts(app, services)
    app.mount("/kimi/static", StaticFiles(directory=ASSETS))
