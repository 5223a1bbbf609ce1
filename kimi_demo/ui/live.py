"""The event stream that a browser follows: `GET /kimi/live/{kind}`, server-sent events made of patches.

Its messages: `start` (what the box must hold; again when that changes), unnamed ones (lists of patches), `whole` (a run that
will not change any more) and `end` (nothing is being written: the browser closes the connection, since idle tabs must hold none).
"""

import time
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from itertools import takewhile
from typing import Any, Literal

from kimi_demo.chats import Chats, Shown
from kimi_demo.dialect.events import Asked, Phase, PromptTokens, RoundStarted, Usage
from kimi_demo.dialect.failure import Failure
from kimi_demo.runs.conversations import Conversation
from kimi_demo.runs.run import Run
from kimi_demo.ui.desk import Desk
from kimi_demo.ui.examples import empty_state
from kimi_demo.ui.merged import merged
from kimi_demo.ui.questions import Placed, arranged
from kimi_demo.ui.sse import as_event as _message
from kimi_demo.ui.texts import Texts
from kimi_demo.ui.view.act import act_button
from kimi_demo.ui.view.notice import failure_html
from kimi_demo.ui.view.pair_view import column_html
from kimi_demo.ui.view.patch import Patch, set_html
from kimi_demo.ui.view.raw_view import RawView
from kimi_demo.ui.view.repeat_view import RepeatView
from kimi_demo.ui.view.run_view import RunView
from kimi_demo.ui.view.tool_run_view import holder_html, tools_view
from kimi_demo.ui.view.turn_view import TAIL, Turn, tail_html, versions_html

Kind = Literal["chat", "tools", "raw", "pair"]
KINDS: tuple[Kind, ...] = ("chat", "tools", "raw", "pair")
"""The batch tab has a stream of its own: batch_live.py."""

INTERVAL_S = 0.05
"""Shortest time between two messages of one stream."""
INTERVAL_PER_STREAM_S = 0.004
"""Added to it per stream going on, so that many streams share the processor instead of queueing for it."""
OPENING = (Asked, Phase, RoundStarted, PromptTokens, Usage)
"""What comes before the first word of a reply, and must not hold it up by an interval."""
KEEP_ALIVE_S = 15.0
"""Proxies close connections that are silent for long."""

View = RunView | RawView | RepeatView


@dataclass
class Pace:
    """streams: how many are going on in the whole application, which their pace depends on."""

    streams: int = 0


class Live:
    """Makes the streams."""

    def __init__(self, desk: Desk, chats: Chats, texts: Texts, pace: Pace) -> None:
        self._desk = desk
        self._chats = chats
        self._texts = texts
        self._pace = pace

    async def stream(self, owner: str, kind: Kind, *, opened: str, group: str, after: str) -> AsyncIterator[str]:
        """opened: the conversation that the tab has open ("": none yet, so the latest); group, after: what the browser shows
        already, up to which finished run."""
        if kind == "chat":
            messages = self._chat(owner, opened, after if group == opened else "")
        else:
            messages = self._pair(owner, group, after) if kind == "pair" else self._group(owner, kind, group, after)
        self._pace.streams += 1
        try:
            async for message in messages:
                if message:
                    yield message
        finally:
            self._pace.streams -= 1
        yield _message(None, name="end")

    async def _group(self, owner: str, kind: Kind, group: str, after: str) -> AsyncIterator[str]:
        """The visitor's current tool questions, or their latest raw completion."""
        current = await self._desk.group(owner, kind)
        runs = await self._desk.runs(owner, kind)
        placed = arranged(runs, self._desk.chosen(owner)) if kind == "tools" else [Placed(run, run.id, [run.id]) for run in runs[-1:]]
        # A version or a comparison may come into the middle: what the browser has stays up to the first difference.
        have = after.split(".") if group == current else []
        kept = sum(1 for _ in takewhile(lambda pair: pair[0].run.id == pair[1], zip(placed, have, strict=False)))
        fresh = [(each, self._view(kind, each)) for each in placed[kept:]]
        html = "".join(holder_html(each, view.skeleton()) for each, view in fresh) if placed else empty_state(kind, self._texts)
        running = any(each.run.state == "running" for each in placed)
        yield _message({"group": current, "kept": kept, "running": running, "html": html}, name="start")
        for each, view in sorted(fresh, key=lambda pair: not pair[0].run.ended):  # one that is being written must not hold up others
            async for patches in self._run(each.run, view):
                yield patches
            yield _message(each.run.id, name="whole")

    async def _pair(self, owner: str, group: str, after: str) -> AsyncIterator[str]:
        """The visitor's latest prompt that was asked in two ways, both written at the same time."""
        current = await self._desk.group(owner, "pair")
        runs = await self._desk.runs(owner, "pair")
        runs.sort(key=lambda run: _parameters(run).get("side") != "left")
        whole = bool(runs) and group == current and after == runs[-1].id and all(run.ended for run in runs)
        fresh = [] if whole else [(run, RunView(run.id, self._texts)) for run in runs]
        html = "".join(column_html(run.id, _parameters(run), view.skeleton(), self._texts) for run, view in fresh)
        html = html if runs else empty_state("pair", self._texts)
        running = any(not run.ended for run in runs)
        yield _message({"group": current, "kept": len(runs) - len(fresh), "running": running, "html": html}, name="start")
        async with aclosing(merged(*(self._run(run, view) for run, view in fresh))) as messages:
            async for message in messages:
                yield message
        for run, _ in fresh:
            yield _message(run.id, name="whole")

    def _view(self, kind: Kind, placed: Placed) -> View:
        if kind == "tools":
            return tools_view(placed, self._texts)
        return RawView(placed.run.id, self._texts)

    async def _chat(self, owner: str, opened: str, after: str) -> AsyncIterator[str]:
        """A conversation, and whatever is added to it while something is being written."""
        conversations = self._chats.conversations
        found = await (conversations.find(opened, owner) if opened else conversations.latest(owner))
        have: list[str] | None = None
        while found is not None and not found.deleted:
            conversation, seen = found, self._chats.news(found.id)
            shown = await self._chats.shown(conversation)
            path = [run.id for run in shown.runs]
            if have is None:
                have = await self._chats.path(conversation, after)
            have = [mine for mine, theirs in takewhile(lambda pair: pair[0] == pair[1], zip(have, path, strict=False))]
            yield self._start(shown, kept=len(have))
            kept = [set_html(f"run-{run_id}-versions", versions_html(Turn(run_id, shown.versions[run_id]), self._texts)) for run_id in have]
            if kept:
                yield _message(kept)
            async for message in self._turns(shown, have, seen):
                yield message
            await self._chats.settled(conversation)
            if self._chats.news(conversation.id) == seen and shown.going is None:
                return
            found = await conversations.find(conversation.id, owner)
        yield _message({"group": opened, "kept": 0, "running": False, "html": self._nothing(found), "system": ""}, name="start")

    async def _turns(self, shown: Shown, have: list[str], seen: int) -> AsyncIterator[str]:
        """The turns that the browser lacks, then the end of one that is written on another branch; less when the branch changes.

        have: turns that the browser has whole; added to.
        """
        conversation = shown.conversation
        tail = tail_html(conversation, self._texts, going=shown.going is not None, taken_back=shown.taken_back)

        async def changed() -> list[Patch] | None:
            """What changed below the turns; None when the branch did."""
            nonlocal seen, tail
            if self._chats.news(conversation.id) == seen:
                return []
            seen = self._chats.news(conversation.id)
            now = await self._chats.conversations.find(conversation.id, conversation.owner)
            if now is None or now.deleted or now.leaf != conversation.leaf:
                return None
            html = tail_html(now, self._texts, going=shown.going is not None, taken_back=shown.taken_back)
            patches, tail = ([set_html(TAIL, html)] if html != tail else []), html
            return patches

        for run in [*shown.runs[len(have) :], *([shown.going] if shown.going else [])]:
            if run.id in have:
                continue
            turn = Turn(run.id, shown.versions.get(run.id, [run.id]))
            async for message in self._run(run, RunView(run.id, self._texts, turn=turn)):
                yield message
                patches = await changed()
                if patches is None:
                    return
                if patches:
                    yield _message(patches)
            if run.id in shown.versions:
                yield _message(run.id, name="whole")
                have.append(run.id)

    def _start(self, shown: Shown, *, kept: int) -> str:
        conversation, runs = shown.conversation, shown.runs[kept:]
        views = [RunView(run.id, self._texts, turn=Turn(run.id, shown.versions[run.id])) for run in runs]
        html = _skeletons(runs, views) if shown.runs else empty_state("chat", self._texts)
        tail = tail_html(conversation, self._texts, going=shown.going is not None, taken_back=shown.taken_back)
        begun = {
            "group": conversation.id,
            "kept": kept,
            "running": shown.going is not None,
            "html": f'{html}<div class="tail" id="{TAIL}">{tail}</div>',
            "system": conversation.system,
        }
        return _message(begun, name="start")

    def _nothing(self, deleted: Conversation | None) -> str:
        if deleted is None:
            return empty_state("chat", self._texts)
        restore = act_button("chat", "chat_restore", self._texts.say("chats.open_deleted"), chat=deleted.id)
        return f'<div class="empty">{failure_html(Failure("conversations.deleted", title=deleted.title), self._texts)}{restore}</div>'

    async def _run(self, run: Run, view: View) -> AsyncGenerator[str, None]:
        """The run's patches; comments while there are none, so that whoever listens can look at other things."""
        spoken = time.monotonic()
        async for entries in run.follow(0, interval=INTERVAL_S + INTERVAL_PER_STREAM_S * self._pace.streams, opening=OPENING):
            patches = view.take(entries) if entries else []
            if patches:
                spoken = time.monotonic()
                yield _message(patches)
            elif time.monotonic() - spoken > KEEP_ALIVE_S:
                spoken = time.monotonic()
                yield _message(None, name="beat")
            else:
                yield ""


def _parameters(run: Run) -> dict[str, Any]:
    return run.asked.parameters if run.asked is not None else {}


def _skeletons(runs: Sequence[Run], views: Sequence[View]) -> str:
    return "".join(f'<div id="holder-{run.id}" data-run="{run.id}">{view.skeleton()}</div>' for run, view in zip(runs, views, strict=True))
