"""Routes of the chat tab: the list of conversations, text to copy, export and import."""

import asyncio
from collections.abc import Sequence
from typing import Literal

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, PlainTextResponse, Response

from kimi_demo.dialect.events import AnswerDelta, Event, Finished, RoundStarted, ThoughtDelta
from kimi_demo.dialect.failure import Failure
from kimi_demo.dialect.reply import rounds
from kimi_demo.dialect.transcript import Turn, as_json, as_markdown, read
from kimi_demo.runs.conversations import Conversation
from kimi_demo.runs.run import Run
from kimi_demo.ui.acts import NO_STORE
from kimi_demo.ui.chat_list import PAGE, items
from kimi_demo.ui.services import Services
from kimi_demo.ui.transcript import as_page, transcript

MOST_LISTED = 10_000
MOST_IMPORT_BYTES = 9 * 1024 * 1024
"""With room for images, and below what the guard takes at all."""
_MEDIA = {"json": "application/json", "md": "text/markdown; charset=utf-8", "html": "text/html; charset=utf-8"}


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

    @app.get("/kimi/chats/{conversation_id}/export.{form}")
    async def export(request: Request, conversation_id: str, form: Literal["json", "md", "html"]) -> Response:
        try:
            conversation = await chats.conversations.get(conversation_id, owner_of(request))
        except Failure as failure:
            return PlainTextResponse(services.texts.sentence(failure), 404)
        runs = (await chats.shown(conversation)).runs
        content = await asyncio.to_thread(_exported, services, conversation, runs, form)
        name = f"kimi-demo-chat-{conversation.created_at:%Y%m%d-%H%M%S}.{form}"
        headers = {**NO_STORE, "content-disposition": f'attachment; filename="{name}"'}
        return Response(content, media_type=_MEDIA[form], headers=headers)

    @app.post("/kimi/chats/import")
    async def take_in(request: Request) -> Response:
        """The body is the file itself. Answers {"chat": id}, or {"html": what is wrong}."""
        try:
            body = await request.body()
            if len(body) > MOST_IMPORT_BYTES:
                raise Failure("chat_import.too_large", limit_mb=MOST_IMPORT_BYTES // 1024 // 1024)
            found = await asyncio.to_thread(read, body)
            owner = owner_of(request)
            images = [await services.attachments.taken_in(owner, turn.images) for turn in found.turns]
            turns = [(turn.question, own, _events(turn)) for turn, own in zip(found.turns, images, strict=True)]
            chat = await chats.take_in(owner, found.title, found.system, turns)
        except Failure as failure:
            return JSONResponse({"html": services.notice(failure)}, 422, headers=NO_STORE)
        return JSONResponse({"chat": chat}, headers=NO_STORE)


def _exported(services: Services, conversation: Conversation, runs: Sequence[Run], form: str) -> bytes:
    texts = services.texts

    def image_url(image: str) -> str | None:
        try:
            return services.attachments.images.data_url(conversation.owner, image)
        except Failure:
            return None

    known = transcript(conversation, runs, services.chat_engine.settings, texts, image_url)
    if form == "json":
        return as_json(known)
    if form == "md":
        return as_markdown(known, **{name: texts.say(f"transcript.{name}") for name in ("you", "model", "thought", "system")})
    return as_page(known, runs, texts, image_url)


def _events(turn: Turn) -> list[Event]:
    """The reply of an imported turn, as if it had just come; [] for a question that nobody answered."""
    if not turn.replied:
        return []
    events: list[Event] = [RoundStarted(0)]
    events += [ThoughtDelta(turn.thought)] if turn.thought else []
    events += [AnswerDelta(turn.answer)] if turn.answer else []
    return [*events, Finished("stop")]


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
