"""The event stream that a browser follows: `GET /kimi/live/{kind}`, server-sent events made of patches.

Its messages: `start` (what the box must hold), unnamed ones (lists of patches), `whole` (a run that will not change any more)
and `end` (nothing is being written: the browser closes the connection, since idle tabs must hold none).
"""

import json
import time
from collections.abc import AsyncIterator
from typing import Literal

from kimi_demo.runs.run import Run
from kimi_demo.ui.desk import Desk
from kimi_demo.ui.examples import empty_state
from kimi_demo.ui.texts import Texts
from kimi_demo.ui.view.batch_view import BatchView
from kimi_demo.ui.view.run_view import RunView

Kind = Literal["chat", "tools", "batch"]
KINDS: tuple[Kind, ...] = ("chat", "tools", "batch")

INTERVAL_S = 0.05
"""Shortest time between two messages of one stream."""
INTERVAL_PER_STREAM_S = 0.004
"""Added to it per stream going on, so that many streams share the processor instead of queueing for it."""
KEEP_ALIVE_S = 15.0
"""Proxies close connections that are silent for long."""


class Live:
    """Makes the streams. One per application, since the pace depends on how many there are."""

    def __init__(self, desk: Desk, texts: Texts) -> None:
        self._desk = desk
        self._texts = texts
        self._streams = 0

    async def stream(self, owner: str, kind: Kind, *, group: str, after: str) -> AsyncIterator[str]:
        """The visitor's current group of `kind`. group, after: what the browser shows already, up to which finished run."""
        current = await self._desk.group(owner, kind)
        runs = await self._desk.runs(owner, kind)
        shown = [run.id for run in runs]
        kept = group == current and after in shown
        if kind == "batch":
            runs, kept = runs[-1:], kept and shown[-1] == after
            if kept:
                runs = []
        elif kept:
            runs = runs[shown.index(after) + 1 :]
        views = [self._view(kind, run) for run in runs]
        html = "".join(
            f'<div id="holder-{run.id}" data-run="{run.id}">{view.skeleton()}</div>' for run, view in zip(runs, views, strict=True)
        )
        if not runs and not kept:
            html = empty_state(kind, self._texts)
        running = any(run.state == "running" for run in runs)
        yield _message({"group": current, "kept": kept, "running": running, "html": html}, name="start")
        self._streams += 1
        try:
            for run, view in zip(runs, views, strict=True):
                async for text in self._run(run, view):
                    yield text
                yield _message(run.id, name="whole")
        finally:
            self._streams -= 1
        yield _message(None, name="end")

    async def _run(self, run: Run, view: RunView | BatchView) -> AsyncIterator[str]:
        spoken = time.monotonic()
        async for entries in run.follow(0, interval=INTERVAL_S + INTERVAL_PER_STREAM_S * self._streams):
            patches = view.take(entries) if entries else []
            if patches:
                yield _message(patches)
                spoken = time.monotonic()
            elif time.monotonic() - spoken > KEEP_ALIVE_S:
                yield ": still here\n\n"
                spoken = time.monotonic()

    def _view(self, kind: Kind, run: Run) -> RunView | BatchView:
        return BatchView(run.id, self._texts) if kind == "batch" else RunView(run.id, self._texts, titled=kind == "tools")


def _message(data: object, *, name: str = "") -> str:
    """One server-sent event. JSON holds no bare line break, so one `data:` line is enough."""
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {json.dumps(data, ensure_ascii=False, separators=(',', ':'))}\n\n"
