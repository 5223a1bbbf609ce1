"""The batch tab's event stream: the visitor's batches and the opened one as they stand, until nothing of theirs is going on.

Only figures and sentences come this way; the table is fetched a window at a time (batch_routes.py), so that a stream costs the same
for ten rows and for a hundred thousand.
"""

import asyncio
import time
from collections.abc import AsyncIterator

from kimi_demo.batch_queue import Batches
from kimi_demo.batches.shelf import Entry
from kimi_demo.ui.examples import empty_state
from kimi_demo.ui.sse import as_event
from kimi_demo.ui.texts import Texts
from kimi_demo.ui.view import batch_view
from kimi_demo.ui.view.batch_view import Standing
from kimi_demo.ui.view.patch import Patch, set_html, set_state

INTERVAL_S = 0.4
KEEP_ALIVE_S = 15.0


class BatchLive:
    def __init__(self, batches: Batches, texts: Texts) -> None:
        self._batches = batches
        self._texts = texts

    async def stream(self, owner: str, opened: str, *, operator: bool) -> AsyncIterator[str]:
        """opened: the batch that the tab shows; "" or one that is gone: the newest."""
        shown: str | None = None
        told: dict[str, str] = {}
        spoken = time.monotonic()
        while True:
            entries = await self._batches.all_of(owner)
            entry = next((one for one in entries if one.id == opened), entries[0] if entries else None)
            going = any(one.going for one in entries)
            if shown != (entry.id if entry is not None else ""):
                shown, told = entry.id if entry is not None else "", {}
                yield as_event(self._start(entry), name="start")
            found = self._found(entries, entry, operator=operator)
            patches = _changed(found, told)
            told = found
            if patches:
                spoken = time.monotonic()
                yield as_event(patches)
            elif time.monotonic() - spoken > KEEP_ALIVE_S:
                spoken = time.monotonic()
                yield as_event(None, name="beat")
            if not going:
                break
            await asyncio.sleep(INTERVAL_S)
        if entry is not None:
            yield as_event(entry.id, name="whole")
        yield as_event(None, name="end")

    def _start(self, entry: Entry | None) -> dict[str, object]:
        texts = self._texts
        opened = batch_view.frame(entry, texts) if entry is not None else empty_state("batch", texts)
        html = f'<div class="batches"><nav class="batch-list" id="{batch_view.LIST}"></nav><div class="batch-opened">{opened}</div></div>'
        running = entry is not None and entry.going
        return {"group": entry.id if entry is not None else "", "kept": 0, "running": running, "html": html}

    def _found(self, entries: list[Entry], entry: Entry | None, *, operator: bool) -> dict[str, str]:
        """Element id → its HTML; `=id` → its state."""
        batches, texts = self._batches, self._texts
        listed = [(one, batches.progress(one)) for one in entries]
        found = {batch_view.LIST: batch_view.list_html(listed, entry.id if entry is not None else "", texts)}
        if entry is None:
            return found
        standing = self._standing(entries, entry, operator=operator)
        found |= batch_view.parts(standing, texts)
        name = batch_view.key(entry.id)
        # After the rest, so that whoever looks at them finds the rest done. The browser fetches rows when the version is another.
        return found | {f"={name}-version": f"{standing.progress.done}/{entry.state}", f"={name}": "going" if entry.going else entry.state}

    def _standing(self, entries: list[Entry], entry: Entry, *, operator: bool) -> Standing:
        batches = self._batches
        job = batches.job(entry)
        loading = job is not None and job.run is None and entry.state == "running"
        root = entry.root or entry.id
        versions = sorted((one for one in entries if (one.root or one.id) == root), key=lambda one: one.version)
        return Standing(
            entry,
            batches.progress(entry),
            phase=job.phase if job is not None and loading else None,
            phase_s=time.monotonic() - job.since if job is not None and loading else 0.0,
            ahead=batches.ahead(entry),
            versions=tuple(versions),
            stops=batches.engines.stops(entry.engine),
            operator=operator,
        )


def _changed(found: dict[str, str], told: dict[str, str]) -> list[Patch]:
    return [
        set_state(name[1:], value) if name.startswith("=") else set_html(name, value)
        for name, value in found.items()
        if told.get(name) != value
    ]
