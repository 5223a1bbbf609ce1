"""Another version of a turn, to be read beside the shown one: `GET /kimi/chats/beside/{run_id}?of={shown}`, a piece of HTML."""

import asyncio
from html import escape

from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse, Response

from kimi_demo.dialect.failure import Failure
from kimi_demo.dialect.reply import rounds
from kimi_demo.runs.run import Run
from kimi_demo.ui.services import Services
from kimi_demo.ui.texts import Texts
from kimi_demo.ui.thoughts import thought_html
from kimi_demo.ui.view.document import Document
from kimi_demo.ui.view.run_view import RunView


def add_beside(app: FastAPI, services: Services) -> None:
    owner_of, registry = services.access.owner_of, services.registry

    @app.get("/kimi/chats/beside/{run_id}")
    async def beside(request: Request, run_id: str, of: str) -> Response:
        owner = owner_of(request)
        try:
            run, shown = await registry.get(run_id, owner), await registry.get(of, owner)
            versions = (await registry.tree(shown.group or "", owner)).versions(shown.id)
            if run.id not in versions:
                raise Failure("runs.unknown")
        except Failure as failure:
            return HTMLResponse(services.notice(failure), 404)
        same = run.asked is not None and shown.asked is not None and run.asked.text == shown.asked.text
        html = await asyncio.to_thread(beside_html, run, services.texts, number=versions.index(run.id) + 1, same=same)
        return HTMLResponse(html, headers={"cache-control": "no-store"})


def beside_html(run: Run, texts: Texts, *, number: int, same: bool) -> str:
    """The run as it is now, without anything to press. number: of this version; same: the question is the shown one's, and left out."""
    view, replies = RunView(run.id, texts), rounds(run.entries)

    def load(source: str) -> str:
        return thought_html(replies[int(source.rpartition("/")[2])].thought, source, texts, render=False)

    document = Document(view.skeleton(), load).apply(view.take(run.entries))
    for element in document.walk():
        element.attributes.pop("id", None)  # the same version may be opened beside two others
    title = escape(texts.say("turn.version", number=number))
    return f'<div class="fine">{title}</div><div{" data-same" if same else ""}>{document.html()}</div>'
