"""`GET /kimi/request/{run}/{round}`: what a round sent and received, for its owner; `/…/{form}` is one form of it in full, to be copied."""

import asyncio

from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse, PlainTextResponse, Response

from kimi_demo.dialect.failure import Failure
from kimi_demo.dialect.reply import Reply, rounds
from kimi_demo.ui.services import Services
from kimi_demo.ui.view.request import FORMS, request_html, request_text

NO_STORE = {"cache-control": "no-store"}
GONE = "data:,"
"""In place of an image that is not there any more."""


def add_requests(app: FastAPI, services: Services) -> None:
    async def found(request: Request, run_id: str, index: int) -> tuple[Reply, str]:
        """A round, and the address that its request went to."""
        run = await services.registry.get(run_id, services.access.owner_of(request))
        replies = rounds(run.entries)
        if not 0 <= index < len(replies):
            raise Failure("runs.unknown")
        elsewhere = run.asked.parameters.get("server") if run.asked is not None else None
        return replies[index], str(elsewhere) if elsewhere else _address(services)

    @app.get("/kimi/request/{run_id}/{index}")
    async def shown(request: Request, run_id: str, index: int) -> Response:
        owner = services.access.owner_of(request)

        def short(image: str) -> str:
            try:
                found = services.attachments.images.get(owner, image)
                return f"data:{found.media_type};base64,… ({found.path.stat().st_size:,} bytes)"
            except (Failure, OSError):
                return GONE

        try:
            reply, address = await found(request, run_id, index)
        except Failure as failure:
            return PlainTextResponse(services.texts.sentence(failure), 404, NO_STORE)
        where = f"kimi/request/{run_id}/{index}"
        return HTMLResponse(request_html(reply, address, where, short, services.texts), 200, NO_STORE)

    @app.get("/kimi/request/{run_id}/{index}/{form}")
    async def whole(request: Request, run_id: str, index: int, form: str) -> Response:
        owner = services.access.owner_of(request)

        def url(image: str) -> str:
            try:
                return services.attachments.images.data_url(owner, image)
            except Failure:
                return GONE

        known = next((each for each in FORMS if each == form), None)
        if known is None:
            return PlainTextResponse("No such form.", 404, NO_STORE)
        try:
            reply, address = await found(request, run_id, index)
        except Failure as failure:
            return PlainTextResponse(services.texts.sentence(failure), 404, NO_STORE)
        return PlainTextResponse(await asyncio.to_thread(request_text, known, reply, address, url), 200, NO_STORE)


def _address(services: Services) -> str:
    """Of the server that answers now; before there is one, where it would be by default."""
    endpoint = services.chat_engine.endpoint
    return endpoint.base_url if endpoint is not None else services.settings.base_url or "http://127.0.0.1:8000/v1"
