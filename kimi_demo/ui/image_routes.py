"""/kimi/images: images for the next message come in, are shown and go again; those of sent messages are shown to their owner."""

import asyncio

from fastapi import FastAPI, Request
from fastapi.responses import FileResponse, JSONResponse, PlainTextResponse, Response

from kimi_demo.dialect.failure import Failure
from kimi_demo.ui.attachments import strip_html
from kimi_demo.ui.badge import model_name
from kimi_demo.ui.services import Services

NO_STORE = {"cache-control": "no-store"}


def add_images(app: FastAPI, services: Services) -> None:
    attachments, owner_of, texts = services.attachments, services.access.owner_of, services.texts

    def told(failure: Failure, status: int = 422) -> JSONResponse:
        return JSONResponse({"html": services.notice(failure)}, status, NO_STORE)

    def chosen(owner: str) -> JSONResponse:
        return JSONResponse({"html": strip_html(attachments.chosen(owner), texts)}, headers=NO_STORE)

    async def require_sight() -> None:
        """Raises Failure: images.blind, images.unknown."""
        settings, endpoint = services.chat_engine.settings, services.chat_engine.endpoint
        if settings.base_url is None and settings.rehearsal:
            raise Failure("images.blind", model=texts.say("badge.rehearsal"))
        if endpoint is None:
            raise Failure("images.unknown")
        if not await attachments.vision.sees(endpoint):
            raise Failure("images.blind", model=model_name(settings, services.chat_engine, texts))

    @app.get("/kimi/images")
    async def now(request: Request) -> Response:
        return chosen(owner_of(request))

    @app.post("/kimi/images")
    async def add(request: Request) -> Response:
        owner = owner_of(request)
        try:
            if request.headers.get("content-type", "").startswith("video/"):
                raise Failure("images.video")
            await require_sight()
            await attachments.add(owner, await request.body())
        except Failure as failure:
            return told(failure)
        return chosen(owner)

    @app.get("/kimi/images/sight")
    async def sight(request: Request) -> Response:
        try:
            await require_sight()
        except Failure as failure:
            return told(failure)
        return JSONResponse({}, headers=NO_STORE)

    @app.delete("/kimi/images/{image}")
    async def remove(request: Request, image: str) -> Response:
        owner = owner_of(request)
        await attachments.remove(owner, image)
        return chosen(owner)

    @app.get("/kimi/images/{image}")
    async def one(request: Request, image: str) -> Response:
        try:
            found = await asyncio.to_thread(attachments.images.get, owner_of(request), image)
        except Failure as failure:
            return PlainTextResponse(texts.sentence(failure), 404, NO_STORE)
        headers = {
            "cache-control": "private, max-age=31536000, immutable",
            "content-security-policy": "default-src 'none'",
            "x-content-type-options": "nosniff",
        }
        return FileResponse(found.path, media_type=found.media_type, headers=headers)
