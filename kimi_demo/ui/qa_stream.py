"""The event stream of the QA tab: the parts of the page that have changed, for as long as it is looked at.

Messages: `run` (which run is shown), `parts` (element id → HTML), `beat`.
"""

import asyncio
import re
import time
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, field

from kimi_demo.dialect.failure import Failure
from kimi_demo.qa.comparing import Comparison, compare
from kimi_demo.qa.report import CaseReport, Report
from kimi_demo.qa_books import Card
from kimi_demo.qa_runs import QaRuns
from kimi_demo.ui.sse import as_event
from kimi_demo.ui.texts import Texts
from kimi_demo.ui.view.notice import failure_html
from kimi_demo.ui.view.qa_compare import BASELINE, NOTHING, compare_html
from kimi_demo.ui.view.qa_page import runs_html, servers_html, suites_html
from kimi_demo.ui.view.qa_run import Shown, case_html, head_html, places_html

_TICK_S = 0.4
_BEAT_S = 15.0
_LOOK_EVERY_S = 2.0
"""How often the folder of suites is looked at."""

_CLOCK = re.compile(r'<span class="clock"[^>]*>[^<]*</span>')


@dataclass
class _Told:
    """What one browser has been told. parts: HTML without its clocks; cases: as they were drawn; compared: what was compared last."""

    run: str | None = None
    parts: dict[str, str] = field(default_factory=dict)
    cases: dict[int, CaseReport] = field(default_factory=dict)
    compared: tuple[Report, Report, Comparison] | None = None


class QaStream:
    """Makes what the tab shows. One for the application. addresses: base URLs of the servers that may be asked."""

    def __init__(self, runs: QaRuns, texts: Texts, addresses: Callable[[], list[str]] = list) -> None:
        self._runs = runs
        self._addresses = addresses
        self._texts = texts

    async def follow(self, opened: str, against: str) -> AsyncGenerator[str, None]:
        """opened: the run to show; "" or one that is gone: the one that goes on, else the newest. against: NOTHING, BASELINE, a run's id;
        "": the baseline where there is one."""
        told, spoken = _Told(), 0.0
        while True:
            card = self._card(opened)
            if told.run != (card.id if card is not None else ""):
                told.run = card.id if card is not None else ""
                told.cases, told.compared = {}, None
                told.parts = {name: html for name, html in told.parts.items() if not name.startswith("qa-c")}
                spoken = time.monotonic()
                yield as_event({"run": told.run}, name="run")
            parts = await self._parts(card, against, told)
            fresh = {name: html for name, html in parts.items() if told.parts.get(name) != _CLOCK.sub("", html)}
            told.parts |= {name: _CLOCK.sub("", html) for name, html in fresh.items()}
            if fresh:
                spoken = time.monotonic()
                yield as_event(fresh, name="parts")
            elif time.monotonic() - spoken > _BEAT_S:
                spoken = time.monotonic()
                yield as_event(None, name="beat")
            await asyncio.sleep(_TICK_S)

    def _card(self, opened: str) -> Card | None:
        runs = self._runs
        if runs.going is not None and opened in ("", runs.going.card.id):
            return runs.going.card
        listed = runs.books.newest_first()
        return runs.books.cards.get(opened) or (runs.going.card if runs.going is not None else listed[0] if listed else None)

    async def _parts(self, card: Card | None, against: str, told: _Told) -> dict[str, str]:
        runs, texts = self._runs, self._texts
        offered = await runs.offered(_LOOK_EVERY_S)
        cards = runs.books.newest_first()
        kept = [await runs.baseline(key) for key in {one.key for one in cards}]
        baselines = frozenset(one.run for one in kept if one is not None)
        found = {
            "qa-suites": suites_html(offered, texts),
            "qa-servers": servers_html(self._addresses(), texts),
            "qa-runs": runs_html(cards, card.id if card is not None else "", baselines, texts),
        }
        if card is None:
            return found | {"qa-head": "", "qa-compare": "", "qa-cases": ""}
        try:
            report = await runs.report(card.id)
        except Failure as failure:
            return found | {"qa-head": failure_html(failure, texts), "qa-compare": "", "qa-cases": ""}
        baseline = await runs.baseline(card.key)
        going = runs.going if runs.going is not None and runs.going.card.id == card.id else None
        seconds = time.monotonic() - going.began if going is not None else None
        trouble = runs.trouble if going is not None or runs.last == card.id else None
        shown = Shown(card, report, seconds, going.phase if going is not None else None, trouble, baseline.run if baseline else "")
        found["qa-head"] = head_html(shown, texts)
        found["qa-compare"] = await self._compared(card, report, against, told) if going is None and report is not None else ""
        return found | self._cases(card, report, told)

    def _cases(self, card: Card, report: Report | None, told: _Told) -> dict[str, str]:
        """The places, and the cases that have changed."""
        if report is None:
            return {"qa-cases": ""}
        found = {"qa-cases": places_html(len(report.cases))}
        for at, case in enumerate(report.cases):
            if told.cases.get(at) is not case:
                told.cases[at] = case
                found[f"qa-c-{at}"] = case_html(at, card.id, case, self._texts)
        return found

    async def _compared(self, card: Card, report: Report, against: str, told: _Told) -> str:
        runs = self._runs
        baseline = await runs.baseline(card.key)
        others = [one for one in runs.books.newest_first() if one.key == card.key and one.id != card.id and not one.going and one.model]
        chosen = against if against in (NOTHING, BASELINE) or any(one.id == against for one in others) else BASELINE
        if chosen == BASELINE and (baseline is None or (baseline.run == card.id and against != BASELINE)):
            chosen = NOTHING
        first = await runs.held_against(card.key, chosen)
        comparison = None
        if first is not None:
            if told.compared is None or told.compared[0] is not first or told.compared[1] is not report:
                told.compared = (first, report, await asyncio.to_thread(compare, first, report))
            comparison = told.compared[2]
        return compare_html(comparison, others, chosen, baseline is not None, card.id, self._texts)
