"""What the Server tab fetches, all of it for the operator only: its frame, its event stream, the log as a file."""

import asyncio
import re
import secrets
from collections.abc import Iterator

from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse, PlainTextResponse, Response, StreamingResponse

from kimi_demo.engines.plan.known import K25
from kimi_demo.engines.server_log import whole_log
from kimi_demo.ui.acts import NO_STORE
from kimi_demo.ui.operators import refused
from kimi_demo.ui.server_stream import ServerStream, on_cpu, view_of
from kimi_demo.ui.services import Services
from kimi_demo.ui.view.server_charts import WINDOWS
from kimi_demo.ui.view.server_page import frame_html, stranger_html


def add_server_routes(app: FastAPI, services: Services) -> None:
    control, texts = services.control, services.texts
    stream = ServerStream(control, services.registry, services.published, services.access, texts)
    boot = secrets.token_hex(4)

    @app.get("/kimi/server/frame")
    async def frame(request: Request) -> Response:
        if refused(services, request) is not None:
            return HTMLResponse(stranger_html(texts), 200, NO_STORE)
        await control.weights.look()
        html = frame_html(
            boot,
            control.options,
            control.model,
            control.models(),
            texts,
            on_cpu=on_cpu(),
            hub_model=K25,
            source=services.settings.model_source,
        )
        return HTMLResponse(html, 200, NO_STORE)

    @app.get("/kimi/server/live")
    async def live(request: Request, view: str = "overview", window: str = "300", after: str = "") -> Response:
        """after: "PID:LINE", as far as the browser has the log."""
        no = refused(services, request)
        if no is not None:
            return no
        window_s = next((known for known in WINDOWS if str(known) == window), WINDOWS[0])
        found = re.fullmatch(r"(\d{1,10}):(\d{1,12})", after)
        at = (int(found[1]), int(found[2])) if found else (0, 0)
        messages = stream.follow(view_of(view), window_s, at, services.access.owner_of(request))
        return StreamingResponse(messages, media_type="text/event-stream", headers={**NO_STORE, "x-accel-buffering": "no"})

    @app.get("/kimi/server/log")
    async def log(request: Request) -> Response:
        """The whole log on disk, the last start and the one before. Its secrets were made unreadable when it was written."""
        no = refused(services, request)
        if no is not None:
            return no
        files = await asyncio.to_thread(whole_log, control.log_files())
        if not files:
            return PlainTextResponse(texts.say("server_page.log.none"), 404, NO_STORE)

        def content() -> Iterator[bytes]:
            for file in files:
                with file.open("rb") as opened:
                    while data := opened.read(65536):
                        yield data

        headers = {**NO_STORE, "content-disposition": 'attachment; filename="vllm-server.log"'}
        return StreamingResponse(content(), media_type="text/plain; charset=utf-8", headers=headers)
