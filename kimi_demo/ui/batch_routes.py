"""/kimi/batches: the table of a batch a window at a time, one row in full, plots, two versions side by side, downloads. Owner's only."""

import asyncio
import json
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response, StreamingResponse

from kimi_demo.batches.comparing import Comparison, Pair, compare
from kimi_demo.batches.finished import ORDERS, SHOWS, Finished, Sight
from kimi_demo.batches.indices import Indices
from kimi_demo.batches.rows import Row
from kimi_demo.batches.shelf import EngineName, Entry
from kimi_demo.batches.side_by_side import SideBySide
from kimi_demo.batches.writing import ENDINGS, OutFormat, written
from kimi_demo.dialect.failure import Failure
from kimi_demo.engines.availability import find_vllm
from kimi_demo.ui.acts import NO_STORE
from kimi_demo.ui.batch_live import BatchLive
from kimi_demo.ui.services import Services
from kimi_demo.ui.view.batch_charts import charts_html
from kimi_demo.ui.view.batch_compare import AGREEMENTS, choose_html, named, pairs_html, summary_html
from kimi_demo.ui.view.batch_engine import EngineNow, engine_html
from kimi_demo.ui.view.batch_table import PAGE, pager_html, row_html, rows_html

_MEDIA = {
    "jsonl": "application/jsonl",
    "csv": "text/csv; charset=utf-8",
    "tsv": "text/tab-separated-values; charset=utf-8",
    "openai": "application/jsonl",
    "raw": "text/plain; charset=utf-8",
}
_PIECES = 256


def add_batch_routes(app: FastAPI, services: Services) -> None:
    batches, texts = services.batches, services.texts
    owner_of = services.access.owner_of
    live, sides = BatchLive(batches, texts), SideBySide()

    def gone(failure: Failure) -> Response:
        return PlainTextResponse(texts.sentence(failure), 404, NO_STORE)

    @app.get("/kimi/live/batch")
    async def follow(request: Request, opened: str = "") -> Response:
        stream = live.stream(owner_of(request), opened, operator=services.access.is_operator(request))
        return StreamingResponse(stream, media_type="text/event-stream", headers={"cache-control": "no-store", "x-accel-buffering": "no"})

    @app.get("/kimi/batches/engine/{name}")
    async def engine(request: Request, name: EngineName) -> Response:
        """What starting a batch on this engine means now."""
        return HTMLResponse(engine_html(_engine(services, name, request), texts), headers=NO_STORE)

    @app.get("/kimi/batches/{batch}/rows")
    async def rows(
        request: Request, batch: str, show: str = "all", order: str = "finished", search: str = "", page: int = 0, only: str = ""
    ) -> Response:
        sight = Sight(
            next((known for known in SHOWS if known == show), "all"),
            next((known for known in ORDERS if known == order), "finished"),
            search[:200],
        )
        try:
            entry = await batches.get(owner_of(request), batch)
            table = await batches.table(entry)
            source, wanted = await asyncio.to_thread(lambda: (batches.shelf.source(entry), batches.shelf.wanted(entry)))
        except Failure as failure:
            return gone(failure)

        def window() -> dict[str, Any]:
            positions = table.found(sight)
            left = 0 if sight.search.strip() or sight.show not in ("all", "waiting") else max(0, entry.rows - len(table.done))
            total = len(positions) + left
            counts = table.counts() | {"all": entry.rows, "waiting": max(0, entry.rows - len(table.done))}
            if only == "counts":
                return {"counts": counts}
            at = min(max(page, 0), max(0, (total - 1) // PAGE))
            shown = table.read(positions[at * PAGE : (at + 1) * PAGE])
            skip = max(0, at * PAGE - len(positions))
            waiting = list(_waiting(source.rows(), table.done, wanted, skip, PAGE - len(shown))) if left else []
            # In order of finishing, a full window of finished rows is the same for ever.
            settled = len(shown) == PAGE and sight.order == "finished" and not sight.search.strip()
            html = rows_html(shown, waiting, texts) or f'<tr><td colspan="6" class="fine">{texts.say("batch_page.no_rows")}</td></tr>'
            return {
                "html": html,
                "pager": pager_html(at, total, texts),
                "page": at,
                "settled": settled,
                "counts": counts,
            }

        try:
            return JSONResponse(await asyncio.to_thread(_whole, window), headers=NO_STORE)
        except Failure:  # the batch was deleted while it was read; where its file lay is nothing for a visitor
            return gone(Failure("batch_page.unknown"))

    @app.get("/kimi/batches/{batch}/row/{index}")
    async def row(request: Request, batch: str, index: int) -> Response:
        try:
            table = await batches.table(await batches.get(owner_of(request), batch))
            found = await asyncio.to_thread(table.get, index)
        except Failure as failure:
            return gone(failure)
        if found is None:
            return gone(Failure("batch_page.unknown"))
        return HTMLResponse(_text(row_html(found, texts)), headers=NO_STORE)

    @app.get("/kimi/batches/{batch}/charts")
    async def charts(request: Request, batch: str) -> Response:
        try:
            table = await batches.table(await batches.get(owner_of(request), batch))
        except Failure as failure:
            return gone(failure)
        return HTMLResponse(await asyncio.to_thread(charts_html, table, texts), headers=NO_STORE)

    @app.get("/kimi/batches/{batch}/compare")
    async def versions(request: Request, batch: str, other: str = "", show: str = "all", page: int = 0) -> Response:
        try:
            entry = await batches.get(owner_of(request), batch)
            others = [one for one in await batches.versions(entry) if one.id != entry.id]
            if not others:
                return HTMLResponse(choose_html(entry, (), "", texts), headers=NO_STORE)
            against = next((one for one in others if one.id == other), None) or next(
                (one for one in others if one.id == entry.parent), others[0]
            )
            first, second = sorted((entry, against), key=lambda one: one.version)
            tables = (await batches.table(first), await batches.table(second))
            listed = await asyncio.to_thread(_compared, sides, *tables, show, page)
        except Failure as failure:
            return gone(failure)
        found, window, at, total = listed
        html = (
            choose_html(entry, others, against.id, texts)
            + summary_html(found, show if show in AGREEMENTS else "all", texts)
            + pairs_html(window, at, total, (named(first, texts), named(second, texts)), texts)
        )
        return HTMLResponse(_text(html), headers=NO_STORE)

    @app.get("/kimi/batches/{batch}/download.{form}")
    async def download(request: Request, batch: str, form: str) -> Response:
        known = next((one for one in ENDINGS if one == form), None)
        if known is None:
            return PlainTextResponse("No such form.", 404, NO_STORE)
        try:
            entry = await batches.get(owner_of(request), batch)
            table = await batches.table(entry)
            columns = await asyncio.to_thread(_columns, entry, table)
        except Failure as failure:
            return gone(failure)
        name = f"kimi-demo-batch-{entry.created_at:%Y%m%d-%H%M%S}{ENDINGS[known]}"
        headers = {**NO_STORE, "content-disposition": f'attachment; filename="{name}"'}
        pieces = _pieces(table, known, columns, lambda code, params: " ".join(texts.failure(code, params)))
        return StreamingResponse(pieces, media_type=_MEDIA[known], headers=headers)


def _engine(services: Services, name: EngineName, request: Request) -> EngineNow:
    engines = services.batches.engines
    operator = services.access.is_operator(request)
    return EngineNow(name, find_vllm() is not None, engines.offline.state, engines.stops(name), operator)


def _waiting(rows: Iterable[Any], done: Indices, wanted: Indices | None, skip: int, most: int) -> Iterator[Row]:
    open_rows = (row for row in rows if isinstance(row, Row) and row.index not in done and (wanted is None or row.index in wanted))
    return islice(open_rows, skip, skip + most)


def _whole(make: Callable[[], dict[str, Any]]) -> Any:
    """Half a surrogate pair, which a file can hold, cannot be sent."""
    return json.loads(json.dumps(make(), ensure_ascii=False).encode("utf-8", "replace"))


def _text(html: str) -> bytes:
    return html.encode("utf-8", "replace")


def _columns(entry: Entry, table: Finished) -> list[str]:
    """What travelled along, in order of appearance in the first rows."""
    names: dict[str, None] = {}
    for result in table.read(range(min(len(table), 200))):
        names.update(dict.fromkeys(result.columns))
    return list(names)


def _pieces(table: Finished, form: OutFormat, columns: list[str], sentence: Callable[[str, dict[str, str]], str]) -> Iterator[bytes]:
    gathered: list[str] = []
    for piece in written(table.in_file_order(), form, columns, sentence):
        gathered.append(piece)
        if len(gathered) == _PIECES:
            yield "".join(gathered).encode("utf-8", "backslashreplace")
            gathered = []
    yield "".join(gathered).encode("utf-8", "backslashreplace")


def _compared(sides: SideBySide, first: Finished, second: Finished, show: str, page: int) -> tuple[Comparison, list[Pair], int, int]:
    """(sums over all rows, a window of those listed, its number, how many are listed)."""
    found = sides.listed(first, second, next((known for known in AGREEMENTS if known == show), None))
    at = min(max(page, 0), max(0, (len(found.indices) - 1) // PAGE))
    window = [compare(first.get(index), second.get(index)) for index in found.indices[at * PAGE : (at + 1) * PAGE]]
    return found.sums, window, at, len(found.indices)
