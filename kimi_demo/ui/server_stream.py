"""The event stream of the Server tab: the parts of the page that have changed, and the new lines of the log.

Messages: `parts` (element id → HTML), `log` (a generation, and lines), `beat`. It goes on for as long as the tab is looked at.
"""

import asyncio
import re
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import PurePath
from typing import Any

from kimi_demo.engines.availability import find_vllm
from kimi_demo.engines.launch_shown import KEY_VARIABLE, curls
from kimi_demo.engines.log_lines import Line
from kimi_demo.runs.published import Published
from kimi_demo.runs.registry import Registry
from kimi_demo.server_control import ServerControl
from kimi_demo.ui.access import Access
from kimi_demo.ui.sse import as_event
from kimi_demo.ui.texts import Texts
from kimi_demo.ui.view.request import KEY_VARIABLE as REMOTE_KEY
from kimi_demo.ui.view.server_charts import cards_html, charts_html, gpus_html
from kimi_demo.ui.view.server_check import check_html
from kimi_demo.ui.view.server_form import launch_acts_html, profiles_html, servers_html
from kimi_demo.ui.view.server_links import links_view_html
from kimi_demo.ui.view.server_page import VIEWS, curl_html, models_html
from kimi_demo.ui.view.server_state import Standing, head_html, left_html, steps_html, stopped, trouble_html
from kimi_demo.ui.view.server_weights import weights_html

_TICK_S = 0.5
_BEAT_S = 15.0
_LINES_AT_ONCE = 500
_LAST_WORDS = 8
_CLOCK = re.compile(r'<span class="clock"[^>]*>[^<]*</span>')


class ServerStream:
    """Makes what the tab shows. One for the application."""

    def __init__(self, control: ServerControl, registry: Registry, published: Published, access: Access, texts: Texts) -> None:
        self._control = control
        self._registry = registry
        self._published = published
        self._access = access
        self._texts = texts

    async def follow(self, view: str, window_s: float, after: tuple[int, int], owner: str) -> AsyncIterator[str]:
        """view: the one that is looked at; after: (pid, line) of the log that the browser has; owner: whose runs are named by title."""
        shown: dict[str, str] = {}
        spoken = 0.0
        if view == "overview":
            self._ask_once()
        with self._control.monitor.watching():
            while True:
                now = self._parts(view, window_s) | (await self._links() if view == "links" else {})
                parts = {name: html for name, html in now.items() if shown.get(name) != _CLOCK.sub("", html)}
                shown |= {name: _CLOCK.sub("", html) for name, html in parts.items()}
                if parts:
                    spoken = time.monotonic()
                    yield as_event(parts, name="parts")
                if view == "log":
                    after, lines = self._log(after)
                    if lines is not None:
                        spoken = time.monotonic()
                        yield as_event({"pid": after[0], "lines": self._lines(lines, owner)}, name="log")
                if time.monotonic() - spoken > _BEAT_S:
                    spoken = time.monotonic()
                    yield as_event(None, name="beat")
                with suppress(TimeoutError):
                    async with asyncio.timeout(_TICK_S):
                        await self._control.engine.changed()
                if view == "overview":
                    self._ask_once()

    def _ask_once(self) -> None:
        """Asks a vLLM what it can do as soon as somebody looks; a server that may cost money waits for the button."""
        endpoint = self._control.engine.endpoint
        if endpoint is not None and endpoint.kind == "vllm":
            self._control.ask()

    def standing(self) -> Standing:
        control, engine = self._control, self._control.engine
        endpoint, server = engine.endpoint, engine.server
        if engine.remote:
            model, address = (PurePath(endpoint.info.id).name if endpoint else "") or "–", engine.settings.base_url or ""
        else:
            model = PurePath(engine.settings.model).name if engine.settings.model else self._texts.say("badge.rehearsal")
            address = server.base_url if server is not None and not server.exited else ""
        return Standing(
            state=engine.state,
            health=control.monitor.health,
            remote=engine.remote,
            model=model,
            address=_without_user(address),
            pid=server.pid if server is not None and not server.exited else None,
            last_words=engine.log_tail(_LAST_WORDS),
            steps=control.steps,
            last=control.last_start,
            left=control.left(),
            replies=self._registry.going,
            stops=control.stops,
        )

    def _parts(self, view: str, window_s: float) -> dict[str, str]:
        control, texts = self._control, self._texts
        now, monitor = self.standing(), control.monitor
        found = {"srv-head": head_html(now, texts), "srv-trouble": trouble_html(now, texts)}
        if view == "overview":
            found |= {"srv-left": left_html(now, texts), "srv-steps": steps_html(now, texts)} | self._about()
        elif view == "launch":
            ends = stopped(now.stops, now.replies if now.state.name == "ready" else 0, texts, ends=True)
            found["srv-launch-acts"] = launch_acts_html(ends, texts, takeover=now.stops is not None)
            found["srv-profiles"] = profiles_html(list(control.saved.profiles), texts)
            up = not now.remote and now.state.name in ("starting", "ready")
            current = control.engine.settings.base_url or ""
            found["srv-servers"] = servers_html(control.addresses(), current, control.started_with, texts, stops=up)
        elif view == "weights":
            weights = control.weights
            name = weights.job.model if weights.job is not None else None
            going, done = (name, None) if weights.going else (None, name if weights.done else None)
            found["srv-weights"] = weights_html(going, weights.phase, weights.failure, done, weights.known, texts)
        elif view == "metrics":
            points = monitor.history.points
            found["srv-cards"] = cards_html(points[-1] if points else None, monitor.history.last, texts)
            # Drawn anew with each look, not with each tick: the right end is the latest look.
            found["srv-charts"] = charts_html(points, window_s, points[-1].at, texts) if points else ""
            found["srv-gpus"] = gpus_html(monitor.gpus, texts)
        return found

    async def _links(self) -> dict[str, str]:
        access, wanted = self._access, self._control.engine.settings.share
        found = await self._published.list()
        return {"srv-links": links_view_html(found, access.share_link, access.share_failure, self._texts, wanted=wanted)}

    def _about(self) -> dict[str, str]:
        control, texts = self._control, self._texts
        endpoint, engine = control.engine.endpoint, control.engine
        models = endpoint.models if endpoint is not None else ()
        lines: list[tuple[str, str]] = []
        variable = REMOTE_KEY if engine.remote else KEY_VARIABLE
        if endpoint is not None:
            lines = curls(endpoint.base_url, endpoint.info.id, variable)
        running = time.monotonic() - control.check_began if control.checks_now else None
        return {
            "srv-models": models_html(models, control.capabilities, control.asks(), texts),
            "srv-check": check_html(control.checks, running, endpoint is not None, texts),
            "srv-curl": curl_html(lines, variable, texts, own=not engine.remote),
        }

    def _log(self, after: tuple[int, int]) -> tuple[tuple[int, int], list[Line] | None]:
        """Where the browser is then, and the lines; None where there is nothing to tell."""
        server = self._control.engine.server
        if server is None:
            return (0, 0), None if after == (0, 0) else []
        pid, number = after
        if pid != server.pid:
            number = 0
        lines = server.log_since(number)[:_LINES_AT_ONCE] if number else server.log_since(0)[-2 * _LINES_AT_ONCE :]
        if not lines and pid == server.pid:
            return after, None
        return (server.pid, lines[-1].number if lines else number), lines

    def _lines(self, lines: list[Line], owner: str) -> list[list[Any]]:
        """[number, level, time, process, text, run, its title]: the title only of the operator's own runs."""
        titles: dict[str, str] = {}
        for request in {line.request for line in lines if line.request}:
            run = self._registry.seen(request, owner)
            titles[request] = run.title if run is not None else ""
        return [
            [line.number, line.level, line.time, line.process, line.text, line.request or "", titles.get(line.request or "", "")]
            for line in lines
        ]


def view_of(name: str) -> str:
    return name if name in VIEWS else VIEWS[0]


def on_cpu() -> bool:
    build = find_vllm()
    return build is None or build.on_cpu


def _without_user(address: str) -> str:
    return re.sub(r"//[^/@]*@", "//", address)
