"""/kimi/batches/draft: a file comes in piece by piece, is looked through, and goes again; typed prompts are looked through as well.

The browser's name of a file is only shown; where it lies is decided here.
"""

import asyncio
from collections.abc import Awaitable, Callable

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from kimi_demo.batch_drafts import PIECE, Draft, columns_of
from kimi_demo.batches.reading import Format, Options
from kimi_demo.batches.shelf import EngineName
from kimi_demo.dialect.failure import Failure
from kimi_demo.ui.acts import NO_STORE
from kimi_demo.ui.services import Services
from kimi_demo.ui.view.batch_draft import draft_html, refused_html


class Look(BaseModel):
    """What is to be looked through: the file `token`, or with "" the typed `text`; and how. "" in a choice: found in the file."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    token: str = ""
    text: str = ""
    engine: EngineName
    thinking: bool
    format: Format | None = None
    encoding: str = Field("", max_length=40)
    column: str = Field("", max_length=1000)
    header: bool = True
    keep_blank: bool = False
    keep_duplicates: bool = True

    @property
    def options(self) -> Options:
        return Options(self.format, self.encoding or None, self.column or None, self.header, self.keep_blank, self.keep_duplicates)


def add_batch_drafts(app: FastAPI, services: Services) -> None:
    drafts, texts, owner_of = services.batches.drafts, services.texts, services.access.owner_of

    def told(failure: Failure) -> JSONResponse:
        return JSONResponse({"html": services.notice(failure), "code": failure.code}, 422, NO_STORE)

    async def answered(work: Callable[[], Awaitable[dict[str, object]]]) -> Response:
        try:
            return JSONResponse(await work(), headers=NO_STORE)
        except Failure as failure:
            return told(failure)

    @app.post("/kimi/batches/draft")
    async def begin(request: Request, name: str = "", size: int = 0) -> Response:
        async def work() -> dict[str, object]:
            if not services.access.has_visitor_id(request):
                raise Failure("batch_page.no_draft")  # a file whose owner nobody would know again
            draft = await drafts.begin(owner_of(request), name, size)
            return {"token": draft.token, "piece": PIECE}

        return await answered(work)

    @app.post("/kimi/batches/draft/{token}/piece")
    async def piece(request: Request, token: str, at: int) -> Response:
        async def work() -> dict[str, object]:
            return {"received": (await drafts.add(owner_of(request), token, at, await request.body())).received}

        return await answered(work)

    @app.get("/kimi/batches/draft")
    async def now(request: Request) -> Response:
        draft = drafts.of(owner_of(request))
        return JSONResponse({"token": draft.token if draft is not None and draft.is_whole else ""}, headers=NO_STORE)

    @app.post("/kimi/batches/draft/{token}/remove")
    async def remove(request: Request, token: str) -> Response:
        async def work() -> dict[str, object]:
            drafts.get(owner_of(request), token)
            await drafts.remove(owner_of(request))
            return {}

        return await answered(work)

    @app.post("/kimi/batches/draft/check")
    async def check(request: Request) -> Response:
        async def work() -> dict[str, object]:
            try:
                look = Look.model_validate_json(await request.body())
            except ValidationError as error:
                raise Failure("acts.malformed", problem=error.errors()[0]["msg"]) from error
            owner = owner_of(request)
            if look.token:
                return await card(drafts.get(owner, look.token), look, look.options)
            draft = await drafts.typed(owner, look.text)
            try:
                return await card(draft, look, draft.options)
            finally:
                await asyncio.to_thread(drafts.discard, draft)

        return await answered(work)

    async def card(draft: Draft, look: Look, options: Options) -> dict[str, object]:
        try:
            checked = await drafts.check(draft, options, engine=look.engine, thinking=look.thinking)
        except Failure as failure:
            columns = await asyncio.to_thread(columns_of, draft, options)
            return {"html": refused_html(draft, options, failure, columns, texts), "cannot_run": -1}
        html = draft_html(draft, checked, options, texts)
        return {"html": html.encode("utf-8", "replace").decode(), "cannot_run": checked.cannot_run}
