"""Routes of the chat tab: the list of conversations, and text to copy."""

from typing import Literal

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, PlainTextResponse, Response

from kimi_demo.dialect.failure import Failure
from kimi_demo.dialect.reply import rounds
from kimi_demo.runs.run import Run
from kimi_demo.ui.acts import NO_STORE
from kimi_demo.ui.chat_list import PAGE, items
from kimi_demo.ui.services import Services

MOST_LISTED = 10_000


def add_chat_routes(app: FastAPI, services: Services) -> None:
    chats, owner_of = services.chats, services.access.owner_of

    @app.get("/kimi/chats")
    async def conversations(request: Request, opened: str = "", search: str = "", count: int = PAGE) -> Response:
        count = min(max(count, 1), MOST_LISTED)
        found = await items(chats, owner_of(request), services.texts, opened=opened, search=search[:1000], count=count)
        return JSONResponse(found, headers=NO_STORE)

    @app.get("/kimi/chats/copy/{run_id}")
    async def copy(request: Request, run_id: str, what: Literal["answer", "thought", "both"]) -> Response:
        try:
            run = await services.registry.get(run_id, owner_of(request))
        except Failure as failure:
            return PlainTextResponse(services.texts.sentence(failure), 404)
        return PlainTextResponse(_text(run, what).encode("utf-8", "replace"), headers=NO_STORE)


def _text(run: Run, what: str) -> str:
    """What the model wrote, as it wrote it."""
    replies = rounds(run.entries)
    parts = []
    for reply in replies:
        if what != "answer" and reply.thought:
            parts.append(f"<think>{reply.thought}</think>" if what == "both" else reply.thought)
        if what != "thought" and reply.answer:
            parts.append(reply.answer)
    return "\n\n".join(part.strip("\n") for part in parts)
