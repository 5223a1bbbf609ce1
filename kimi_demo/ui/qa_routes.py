"""What the QA tab fetches, all of it for the operator only: its frame, its event stream, a case in full, reports as files."""

import asyncio
import secrets

from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse, PlainTextResponse, Response, StreamingResponse

from kimi_demo.dialect.failure import Failure
from kimi_demo.qa.comparing import compare
from kimi_demo.qa.report import Report
from kimi_demo.qa.report_html import as_html
from kimi_demo.qa.report_junit import as_junit
from kimi_demo.qa.report_markdown import as_markdown
from kimi_demo.ui.acts import NO_STORE
from kimi_demo.ui.operators import refused
from kimi_demo.ui.qa_stream import QaStream
from kimi_demo.ui.services import Services
from kimi_demo.ui.texts import Texts
from kimi_demo.ui.view.notice import failure_html
from kimi_demo.ui.view.qa_case import whole_html
from kimi_demo.ui.view.qa_page import frame_html, stranger_html
from kimi_demo.ui.view.qa_run import FORMS

_MEDIA = {
    "html": "text/html; charset=utf-8",
    "md": "text/markdown; charset=utf-8",
    "xml": "application/xml",
    "json": "application/json",
}


def add_qa_routes(app: FastAPI, services: Services) -> None:
    runs, texts = services.qa, services.texts
    stream = QaStream(runs, texts, services.control.addresses)
    boot = secrets.token_hex(4)

    @app.get("/kimi/qa/frame")
    async def frame(request: Request) -> Response:
        if refused(services, request) is not None:
            return HTMLResponse(stranger_html(texts), 200, NO_STORE)
        return HTMLResponse(frame_html(boot, texts), 200, NO_STORE)

    @app.get("/kimi/qa/live")
    async def live(request: Request, opened: str = "", against: str = "") -> Response:
        """opened, against: as `QaStream.follow` has them."""
        no = refused(services, request)
        if no is not None:
            return no
        headers = {**NO_STORE, "x-accel-buffering": "no"}
        return StreamingResponse(stream.follow(opened, against), media_type="text/event-stream", headers=headers)

    @app.get("/kimi/qa/runs/{run}/case/{case_id}")
    async def case(request: Request, run: str, case_id: str) -> Response:
        no = refused(services, request)
        if no is not None:
            return no
        try:
            report = await runs.report(run)
        except Failure as failure:
            return HTMLResponse(failure_html(failure, texts), 404, NO_STORE)
        found = next((one for one in report.cases if one.id == case_id), None) if report is not None else None
        if report is None or found is None:
            return HTMLResponse(failure_html(Failure("qa_page.no_report"), texts), 404, NO_STORE)
        html = await asyncio.to_thread(whole_html, report, found, run, texts)
        return HTMLResponse(html.encode("utf-8", "replace"), headers=NO_STORE)

    @app.get("/kimi/qa/runs/{run}/report.{form}")
    async def report_file(request: Request, run: str, form: str, against: str = "") -> Response:
        """As a file, never as a page of ours: a model may have written anything in it."""
        no = refused(services, request)
        if no is not None:
            return no
        known = next((one for one in FORMS if one == form), None)
        if known is None:
            return PlainTextResponse("No such form.", 404, NO_STORE)
        try:
            report = await runs.report(run)
            if report is None:
                raise Failure("qa_page.no_report")
            card = runs.card(run)
            first = await runs.held_against(card.key, against)
        except Failure as failure:
            return PlainTextResponse(texts.sentence(failure), 404, NO_STORE)
        made = await asyncio.to_thread(_made, known, report, first, texts)
        name = f"kimi-demo-qa-{report.suite}-{card.created_at:%Y%m%d-%H%M%S}.{known}"
        headers = {**NO_STORE, "content-disposition": f'attachment; filename="{name}"'}
        return Response(made, media_type=_MEDIA[known], headers=headers)


def _made(form: str, report: Report, first: Report | None, texts: Texts) -> bytes:
    comparison = compare(first, report) if first is not None else None
    if form == "html":
        text = as_html(report, texts, comparison)
    elif form == "md":
        text = as_markdown(report, texts, comparison)
    else:
        text = as_junit(report, texts) if form == "xml" else report.to_json()
    return text.encode("utf-8", "backslashreplace")
