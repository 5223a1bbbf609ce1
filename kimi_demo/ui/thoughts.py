"""Finished thoughts, sent when somebody opens them: `GET /kimi/thought/{run_id}/{round}`, a piece of HTML."""

import asyncio
from html import escape

from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse, Response

from kimi_demo.dialect.failure import Failure
from kimi_demo.dialect.reply import rounds
from kimi_demo.ui.markup import markdown
from kimi_demo.ui.services import Services
from kimi_demo.ui.texts import Texts

MARKDOWN_LIMIT = 20_000
"""Characters up to which a thought is rendered as Markdown unasked; rendering 200,000 takes seconds."""
_SEGMENT = 4_096


def add_thoughts(app: FastAPI, services: Services) -> None:
    @app.get("/kimi/thought/{run_id}/{index}")
    async def thought(request: Request, run_id: str, index: int, render: bool = False) -> Response:
        try:
            run = await services.registry.get(run_id, services.access.owner_of(request))
        except Failure as failure:
            return HTMLResponse(services.notice(failure), 404)
        replies = rounds(run.entries)
        if not 0 <= index < len(replies):
            return HTMLResponse(services.notice(Failure("runs.unknown")), 404)
        html = await asyncio.to_thread(
            thought_html, replies[index].thought, f"kimi/thought/{run_id}/{index}", services.texts, render=render
        )
        return HTMLResponse(html, headers={"cache-control": "no-store"})


def thought_html(text: str, source: str, texts: Texts, *, render: bool) -> str:
    """The whole thought: as Markdown, or above MARKDOWN_LIMIT as plain text with a button that asks for `source` rendered."""
    if render or len(text) <= MARKDOWN_LIMIT:
        return f'<div class="prose">{markdown(text)}</div>'
    words = texts.say("thought.render", count=f"{len(text):,}")
    button = f'<div class="render"><button type="button" class="act" data-render="{escape(source)}?render=1">{escape(words)}</button></div>'
    return button + "".join(f'<div class="segment">{escape(part)}</div>' for part in segments(text))


def segments(text: str) -> list[str]:
    """`text` in pieces of a few KB for elements of their own; the line break between two of them is their border."""
    found, start = [], 0
    while len(text) - start > _SEGMENT:
        cut = text.find("\n", start + _SEGMENT)
        if cut < 0:
            break
        found.append(text[start:cut])
        start = cut + 1
    return [*found, text[start:]]
