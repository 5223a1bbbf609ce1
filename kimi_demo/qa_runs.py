"""The QA runs of the page: one at a time, against what answers the chat or another server; kept as they go, judged, deleted."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field

from kimi_demo.dialect.events import Event, Phase
from kimi_demo.dialect.failure import Failure
from kimi_demo.engines.chat_engine import ChatEngine
from kimi_demo.engines.endpoint import Endpoint
from kimi_demo.qa.case import Overrides, Suite
from kimi_demo.qa.judging import by_hand
from kimi_demo.qa.report import Report
from kimi_demo.qa.running import QaRun
from kimi_demo.qa_books import Baseline, Books, Card, settled
from kimi_demo.qa_suites import Catalogue, Offered

log = logging.getLogger(__name__)

_KEEP_EVERY_S = 2.0
"""How often a report that grows is written: all of it each time."""

UNFINISHED = ("fail", "waiting", "running")
"""The states of cases that are run again."""


@dataclass
class Going:
    """The run that goes on. began: time.monotonic(); phase: what it waits for, before it is connected; run: None until then.
    before: what it goes on from."""

    card: Card
    suite: Suite
    before: Report | None
    began: float = field(default_factory=time.monotonic)
    phase: Phase | None = None
    run: QaRun | None = None
    task: "asyncio.Task[None] | None" = None
    dirty: asyncio.Event = field(default_factory=asyncio.Event)
    over: asyncio.Event = field(default_factory=asyncio.Event)


class QaRuns:
    """Belongs to the event loop's thread; what reads and writes is done in others.

    elsewhere: connects to another server by its base URL.
    last: id of the run that goes on, or went on last; trouble: why it could not be written.
    """

    def __init__(
        self, engine: ChatEngine, books: Books, catalogue: Catalogue, elsewhere: Callable[[str], Awaitable[Endpoint]] | None = None
    ) -> None:
        self._engine = engine
        self._elsewhere = elsewhere
        self._closing = False
        self.books = books
        self.catalogue = catalogue
        self._offered: tuple[Offered, ...] = ()
        self._looked = 0.0
        self.going: Going | None = None
        self.trouble: Failure | None = None
        self.last = ""

    async def aclose(self) -> None:
        """What is going on is interrupted, and can be gone on with after the next start."""
        self._closing = True
        await self.stop()

    async def start(self, key: str, overrides: Overrides, at_once: int | None = None, server: str = "") -> Card:
        """Begins a run of a suite. server: base URL of another server than what answers the chat.

        Raises Failure: qa.no_suite, qa.suite_wrong, qa.unreadable, qa_page.busy, qa.unwritable, and why our own server could not start.
        """
        self._require_free(server)
        suite = await asyncio.to_thread(self.catalogue.suite, key)
        card = Card(
            key=key,
            title=suite.title,
            mode=overrides.mode,
            preset=overrides.preset,
            repeats=overrides.repeats,
            at_once=at_once or suite.at_once,
            server=server,
        )
        self._require_free(server)
        going = self.going = Going(card, suite, None)  # from here on nobody else begins one
        try:
            await asyncio.to_thread(self.books.add, card, suite)
        except BaseException:
            self.going = None
            raise
        self._begin(going)
        return card

    async def again(self, run: str) -> None:
        """The cases of a run that failed or were not finished, once more, in the same report.

        Raises Failure: qa_page.unknown, qa_page.busy, qa_page.nothing_again, qa.no_report, qa.unreadable, qa.unwritable.
        """
        card = self.books.get(run)
        self._require_free(card.server)
        suite = await asyncio.to_thread(self.books.suite, run)
        before = await asyncio.to_thread(self.books.report, run)
        if before is not None and not any(case.state in UNFINISHED for case in before.cases):
            raise Failure("qa_page.nothing_again")
        self._require_free(card.server)
        going = self.going = Going(card.changed(state="running", failure=None, failure_params={}), suite, before)
        try:
            await asyncio.to_thread(self.books.save, going.card)
        except BaseException:
            self.going = None
            self.books.cards[run] = card
            raise
        self._begin(going)

    async def stop(self) -> None:
        """Closes what is asked at once; what is finished stays. Returns when the run has ended."""
        going = self.going
        if going is None or going.task is None:
            return
        if going.run is not None and going.run.running and not self._closing:
            going.run.stop()
        else:
            going.task.cancel()
        await asyncio.gather(going.task, return_exceptions=True)

    async def judge(self, run: str, case_id: str, *, good: bool, note: str) -> None:
        """What a person says of a manual case. Raises Failure: qa_page.unknown, qa_page.not_manual, qa.unwritable."""
        going = self._live(run)
        try:
            if going is not None and going.run is not None:
                going.run.judged(case_id, good=good, note=note)
                return
            report = await asyncio.to_thread(self.books.report, run)
            if report is None:
                raise KeyError(case_id)
            found = {case.id: case for case in report.cases}
            found[case_id] = by_hand(found[case_id], good=good, note=note)
        except KeyError:
            raise Failure("qa_page.not_manual") from None
        changed = report.model_copy(update={"cases": tuple(found.values())})
        await asyncio.to_thread(self.books.save_report, run, changed)
        await asyncio.to_thread(self.books.save, self.books.get(run).changed(counts=dict(changed.counts)))

    async def delete(self, run: str) -> None:
        """Raises Failure: qa_page.unknown, qa_page.going, qa.unwritable."""
        if self._live(run) is not None:
            raise Failure("qa_page.going")
        await asyncio.to_thread(self.books.delete, run)

    async def set_baseline(self, run: str) -> None:
        """Raises Failure: qa_page.unknown, qa_page.going, qa_page.no_report, qa.unwritable."""
        if self._live(run) is not None:
            raise Failure("qa_page.going")
        await asyncio.to_thread(self.books.set_baseline, run)

    async def report(self, run: str) -> Report | None:
        """As it stands now; None where nothing has been asked yet. Raises Failure: qa_page.unknown, qa.unreadable, qa.no_report."""
        going = self._live(run)
        if going is not None:
            return going.run.report() if going.run is not None else going.before
        return await asyncio.to_thread(self.books.report, run)

    def card(self, run: str) -> Card:
        """Raises Failure("qa_page.unknown")."""
        return self.books.get(run)

    async def drop_baseline(self, run: str) -> None:
        """Of the run's suite. Raises Failure: qa_page.unknown, qa.unwritable."""
        await asyncio.to_thread(self.books.drop_baseline, self.books.get(run).key)

    async def baseline(self, key: str) -> Baseline | None:
        return await asyncio.to_thread(self.books.baseline, key)

    async def held_against(self, key: str, chosen: str) -> Report | None:
        """chosen: "baseline", or the id of another run of the suite `key`; anything else: nothing.

        Raises Failure: qa.unreadable, qa.no_report.
        """
        if chosen == "baseline":
            return await self.baseline(key)
        card = self.books.cards.get(chosen)
        return await self.report(chosen) if card is not None and card.key == key else None

    async def offered(self, every_s: float) -> tuple[Offered, ...]:
        """What can be run; the files are looked at no more often than every so many seconds."""
        if not self._offered or time.monotonic() - self._looked > every_s:
            self._looked = time.monotonic()
            self._offered = await asyncio.to_thread(self.catalogue.look)
        return self._offered

    def _live(self, run: str) -> Going | None:
        return self.going if self.going is not None and self.going.card.id == run else None

    def _require_free(self, server: str) -> None:
        if self.going is not None:
            raise Failure("qa_page.busy")
        if server:
            return
        state = self._engine.state
        if state.name == "failed" and state.failure is not None and not self._engine.remote:
            raise state.failure  # it would be the run's end, too

    def _begin(self, going: Going) -> None:
        self.trouble, self.last = None, going.card.id
        going.task = asyncio.create_task(self._work(going), name=f"qa {going.card.id}")

    async def _work(self, going: Going) -> None:
        card = going.card
        keeping = asyncio.create_task(self._keep(going), name=f"qa-keep {card.id}")
        try:
            stopped = await self._asked(going)
            card = card.changed(state="stopped" if stopped else "done")
        except asyncio.CancelledError:
            card = card.changed(state="interrupted" if self._closing else "stopped")
        except Failure as failure:
            card = card.changed(state="failed", failure=failure.code, failure_params=failure.params)
        except Exception as error:
            log.exception("A QA run broke off")
            card = card.changed(state="failed", failure="unexpected", failure_params={"error": f"{type(error).__name__}: {error}"})
        finally:
            going.over.set()
            going.dirty.set()
            await keeping  # never two that write the same file
            await self._ended(going, card)

    async def _asked(self, going: Going) -> bool:
        """Whether it was stopped."""
        endpoint = await self._connect(going)
        try:
            if going.before is not None and going.before.server.model != endpoint.info.id:
                raise Failure("qa_page.other_model", before=going.before.server.model, now=endpoint.info.id)
            card = going.card
            run = going.run = QaRun(
                endpoint,
                going.suite,
                overrides=card.overrides,
                at_once=card.at_once,
                command=() if card.server else self._engine.command,
                before=going.before,
                on_case=lambda _: going.dirty.set(),
            )
            report = await (run.run() if going.before is None else run.again())
            return report.stopped
        finally:
            await endpoint.aclose()

    async def _connect(self, going: Going) -> Endpoint:
        """A connection of the run's own to who is asked, once that is ready."""
        if going.card.server and self._elsewhere is not None:
            going.phase = Phase("connecting")
            endpoint = await self._elsewhere(going.card.server)
            going.phase = None
            return endpoint

        def waits(event: Event) -> None:
            if isinstance(event, Phase):
                going.phase = event

        engine = self._engine
        found = await engine.ready(waits)
        server, remote = engine.server, engine.settings.api_key
        key = server.api_key if server is not None else remote.get_secret_value() if remote is not None else None
        going.phase = None
        return await Endpoint.connect(
            found.base_url, key, kind=found.kind, connect_timeout_s=engine.settings.connect_timeout_s, model=found.info.id
        )

    async def _keep(self, going: Going) -> None:
        """Writes the report while it grows, so that a crash costs seconds of it."""
        while True:
            await going.dirty.wait()
            going.dirty.clear()
            if going.over.is_set():
                return
            if going.run is not None:
                await self._write(going.card, going.run.report())
            with suppress(TimeoutError):
                async with asyncio.timeout(_KEEP_EVERY_S):
                    await going.over.wait()

    async def _ended(self, going: Going, card: Card) -> None:
        report = settled(going.run.report()) if going.run is not None else None
        try:
            await self._write(card, report)
        finally:
            if self.going is going:
                self.going = None

    async def _write(self, card: Card, report: Report | None) -> None:
        """What cannot be written stays in memory, and is said."""
        if report is not None:
            card = card.changed(model=report.server.model, counts=dict(report.counts))
        try:
            if report is not None:
                await asyncio.to_thread(self.books.save_report, card.id, report)
            await asyncio.to_thread(self.books.save, card)
        except Failure as failure:
            self.trouble = failure
            self.books.cards[card.id] = card
            self.books.edition += 1
