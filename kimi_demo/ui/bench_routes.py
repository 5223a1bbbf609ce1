"""Routes and acts of the tool picker and the editor of own tools. Everything is the visitor's own: each look-up takes their owner."""

from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, PlainTextResponse, Response
from pydantic import Field, ValidationError

from kimi_demo.dialect.failure import Failure
from kimi_demo.tools.own import Answering, OwnTool, field_of
from kimi_demo.tools.own_exchange import MOST_BYTES, exported
from kimi_demo.tools.workbench import EntryFailure
from kimi_demo.ui.acts import NO_STORE, Given, add_act
from kimi_demo.ui.parameter_panel import server_kind
from kimi_demo.ui.services import Services
from kimi_demo.ui.view.notice import notice_html
from kimi_demo.ui.view.tool_picker import ServerShown, picker_html, summary_html


class Switched(Given):
    name: str = Field(max_length=200)
    on: bool


class Choice(Given):
    choice: str = Field(max_length=200)


class Switch(Given):
    on: bool


class Named(Given):
    name: str = Field(max_length=200)


class Draft(Given):
    """was: the name of the tool that is changed; None for a new one."""

    was: str | None = None
    name: str
    description: str
    parameters: str
    answering: Answering
    text: str


def add_bench(app: FastAPI, services: Services) -> None:
    workbench, texts, owner_of = services.workbench, services.texts, services.access.owner_of

    @app.get("/kimi/tools")
    async def picker(request: Request) -> Response:
        """{"summary", "html", "approve", "settled"}: approve is None where it is not known;
        settled is false while an MCP server is being connected."""
        owner = owner_of(request)
        workbench.start()
        servers = [ServerShown(server.name, server.state, server.why) for server in workbench.servers]
        settled = all(server.state != "connecting" for server in servers)
        try:
            rows, bench = workbench.listed(owner), workbench.bench(owner)
        except Failure as failure:
            return JSONResponse({"summary": "", "html": services.notice(failure), "approve": None, "settled": True}, headers=NO_STORE)
        html = picker_html(rows, bench, servers, texts, parallel_known=server_kind(services) != "moonshot")
        told = {"summary": summary_html(rows, bench, texts), "html": html, "approve": bench.approve, "settled": settled}
        return JSONResponse(told, headers=NO_STORE)

    @app.get("/kimi/tools/own")
    async def own(request: Request, name: str) -> Response:
        """An own tool, for the editor."""
        try:
            tool = workbench.bench(owner_of(request)).named(name)
            if tool is None:
                raise Failure("own_tools.unknown", name=name[:80])
        except Failure as failure:
            return _told(failure, 404)
        return JSONResponse(tool.model_dump(), headers=NO_STORE)

    @app.post("/kimi/tools/own")
    async def save(request: Request) -> Response:
        """The body is a `Draft`. Answers {"name"}, or {"html", "field", "line"}: what is wrong, and where."""
        try:
            draft = Draft.model_validate_json(await request.body())
        except ValidationError as error:
            return _told(Failure("acts.malformed", problem=error.errors()[0]["msg"]), 400)
        tool = OwnTool(**draft.model_dump(exclude={"was"}))
        try:
            saved = await workbench.save(owner_of(request), tool, draft.was)
        except Failure as failure:
            return _told(failure, 422, field=field_of(failure) if _is_of_a_field(failure) else "", line=failure.params.get("line", ""))
        return JSONResponse({"name": saved.name}, headers=NO_STORE)

    @app.get("/kimi/tools/export.json")
    async def export(request: Request) -> Response:
        try:
            content = exported(workbench.bench(owner_of(request)).own)
        except Failure as failure:
            return PlainTextResponse(texts.sentence(failure), 404, NO_STORE)
        headers = {**NO_STORE, "content-disposition": 'attachment; filename="kimi-demo-tools.json"'}
        return Response(content, media_type="application/json", headers=headers)

    @app.post("/kimi/tools/import")
    async def take_in(request: Request) -> Response:
        """The body is the file itself. Answers {"html"}: what came of it."""
        try:
            if int(request.headers.get("content-length") or 0) > MOST_BYTES:
                raise Failure("own_tools.import_too_large", limit_mb=MOST_BYTES // 1024 // 1024)
            taken = await workbench.take_in(owner_of(request), await request.body())
        except EntryFailure as failure:
            cause = texts.sentence(failure.cause)
            return _told(Failure(failure.code, **{**failure.params, "problem": cause}), 422)
        except Failure as failure:
            return _told(failure, 422)
        words = texts.say("bench.imported", count=len(taken.added), names=", ".join(taken.added) or "–", same=taken.same)
        return JSONResponse({"words": words}, headers=NO_STORE)

    async def switch(request: Request, given: Switched) -> None:
        await workbench.switch(owner_of(request), given.name, given.on)

    async def choose(request: Request, given: Choice) -> None:
        await workbench.choose(owner_of(request), given.choice)

    async def parallel(request: Request, given: Switch) -> None:
        await workbench.allow_parallel(owner_of(request), given.on)

    async def approve(request: Request, given: Switch) -> None:
        await workbench.require_leave(owner_of(request), given.on)

    async def delete(request: Request, given: Named) -> dict[str, Any]:
        """Gives the tool back, so that the browser can offer to undo it."""
        owner = owner_of(request)
        tool = workbench.bench(owner).named(given.name)
        await workbench.delete(owner, given.name)
        return {"tool": tool.model_dump() if tool is not None else None}

    add_act(app, services, "bench_switch", Switched, switch)
    add_act(app, services, "bench_choose", Choice, choose)
    add_act(app, services, "bench_parallel", Switch, parallel)
    add_act(app, services, "bench_approve", Switch, approve)
    add_act(app, services, "bench_delete", Named, delete)

    def _told(failure: Failure, status: int, **more: str) -> JSONResponse:
        # The hints of `schema.` speak of a field of the chat that may be left empty.
        what, _ = texts.failure(failure.code, failure.params)
        html = notice_html("error", what) if failure.code.startswith("schema.") else services.notice(failure)
        return JSONResponse({"html": html, **more}, status, headers=NO_STORE)


def _is_of_a_field(failure: Failure) -> bool:
    """Whether a field of the editor is to blame, and not the disk or another tab."""
    return failure.code.startswith(("schema.", "tool_schema.", "own_tools.")) and not failure.code.startswith(
        ("own_tools.un", "own_tools.too_many", "tool_schema.no_worker")
    )
