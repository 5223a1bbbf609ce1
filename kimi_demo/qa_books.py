"""QA runs on disk, each in a folder of its own (a card, the suite as it was run, the report), and the baseline of each suite.

qa/runs/ID/card.json  suite.json  report.json
qa/baselines/SUITE.json      a report that `qa --baseline` reads, too
"""

import logging
import re
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal
from uuid import uuid4

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from kimi_demo.dialect.failure import Failure
from kimi_demo.qa.case import Overrides, Suite, Words
from kimi_demo.qa.files import write_whole
from kimi_demo.qa.report import Report, read_report

log = logging.getLogger(__name__)

State = Literal["running", "done", "stopped", "failed", "interrupted"]
_ID = re.compile(r"[0-9a-f]{32}")
_IN_MEMORY = 8
"""Reports that are kept read: the one that is looked at, what it is held against."""


class Card(BaseModel):
    """One run, as far as a list of runs needs it.

    key: the suite's, as `Catalogue` names it. server: base URL of who is asked, "" for what answers the chat. mode, preset, repeats,
    at_once: as it was started. model: who answered, "" before that is
    known. counts: cases by their state. failure: why it could not go on.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    id: str = Field(default_factory=lambda: uuid4().hex)
    key: str
    title: Words
    created_at: datetime = Field(default_factory=lambda: datetime.now(UTC))
    state: State = "running"
    failure: str | None = None
    failure_params: dict[str, str] = {}
    server: str = ""
    mode: Literal["thinking", "instant"] | None = None
    preset: str | None = None
    repeats: int | None = None
    at_once: int
    model: str = ""
    counts: dict[str, int] = {}

    @property
    def going(self) -> bool:
        return self.state == "running"

    @property
    def overrides(self) -> Overrides:
        return Overrides(self.mode, self.preset, self.repeats)

    def changed(self, **fields: Any) -> "Card":
        return self.model_copy(update=fields)


class Baseline(Report):
    """A report with the id of the run that it was."""

    run: str = ""


class Books:
    """Blocking where it reads and writes; one process at a time (the data folder is locked by the application).

    cards: all runs, by id. edition: counts up with every change of a card or a baseline.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.edition = 0
        self.cards: dict[str, Card] = {}
        self._reports: dict[str, Report] = {}
        self._baselines: dict[str, Baseline | None] = {}

    def recover(self) -> None:
        """Reads the cards. What was running belongs to an application that is gone."""
        for path in sorted((self.folder / "runs").glob("*/card.json")):
            try:
                card = Card.model_validate_json(path.read_bytes())
                if card.id != path.parent.name:
                    raise ValueError("its id is not its folder's name")
                if card.going:
                    card = card.changed(state="interrupted", counts=self._counted(card))
                    self.save(card)
            except (OSError, ValueError, Failure):
                log.warning("%s cannot be read and is passed over", path, exc_info=True)
                continue
            self.cards[card.id] = card

    def newest_first(self) -> list[Card]:
        return sorted(self.cards.values(), key=lambda card: (card.created_at, card.id), reverse=True)

    def get(self, run: str) -> Card:
        """Raises Failure("qa_page.unknown")."""
        card = self.cards.get(run)
        if card is None:
            raise Failure("qa_page.unknown")
        return card

    def add(self, card: Card, suite: Suite) -> None:
        """A new run. Raises Failure("qa.unwritable")."""
        try:
            write_whole(self._place(card.id) / "suite.json", suite.model_dump_json(exclude_unset=True))
            self.save(card)
        except Failure:
            shutil.rmtree(self._place(card.id), ignore_errors=True)
            self.cards.pop(card.id, None)
            raise

    def save(self, card: Card) -> None:
        """Raises Failure("qa.unwritable"); what is in memory is changed all the same."""
        self.cards[card.id] = card
        self.edition += 1
        write_whole(self._place(card.id) / "card.json", card.model_dump_json())

    def suite(self, run: str) -> Suite:
        """The suite as it was when the run began. Raises Failure: qa_page.unknown, qa.no_report."""
        path = self._place(self.get(run).id) / "suite.json"
        try:
            return Suite.model_validate_json(path.read_bytes())
        except (OSError, ValidationError) as error:
            raise Failure("qa.no_report", path=path.name, problem=_first_line(error)) from error

    def report(self, run: str) -> Report | None:
        """None where nothing has been asked yet. Raises Failure: qa_page.unknown, qa.unreadable, qa.no_report."""
        path = self._place(self.get(run).id) / "report.json"
        known = self._reports.pop(run, None)
        if known is None and path.exists():
            known = settled(read_report(path))
        if known is not None:
            self._remember(run, known)
        return known

    def save_report(self, run: str, report: Report) -> None:
        """Raises Failure("qa.unwritable"); what is in memory is changed all the same."""
        self._remember(run, report)
        write_whole(self._place(run) / "report.json", report.to_json())

    def delete(self, run: str) -> None:
        """For good; a baseline that was made of it stays. Raises Failure: qa_page.unknown, qa.unwritable."""
        place = self._place(self.get(run).id)
        try:
            if place.exists():
                shutil.rmtree(place)
        except OSError as error:
            raise Failure("qa.unwritable", path=place.name, error=error.strerror or error) from error
        del self.cards[run]
        self._reports.pop(run, None)
        self.edition += 1

    def baseline(self, key: str) -> Baseline | None:
        """Of a suite. A file that is none is passed over, and said in the log."""
        if key not in self._baselines:
            path = self._baseline_path(key)
            try:
                self._baselines[key] = Baseline.model_validate_json(path.read_bytes()) if path.is_file() else None
            except (OSError, ValidationError):
                log.warning("%s is no baseline and is passed over", path, exc_info=True)
                self._baselines[key] = None
        return self._baselines[key]

    def set_baseline(self, run: str) -> None:
        """What later runs of the same suite are held against. Raises Failure: qa_page.unknown, qa_page.no_report, qa.unwritable."""
        card, report = self.get(run), self.report(run)
        if report is None:
            raise Failure("qa_page.no_report")
        made = Baseline.model_validate({**report.__dict__, "run": run})
        write_whole(self._baseline_path(card.key), made.to_json())
        self._baselines[card.key] = made
        self.edition += 1

    def drop_baseline(self, key: str) -> None:
        """Raises Failure("qa.unwritable")."""
        path = self._baseline_path(key)
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise Failure("qa.unwritable", path=path.name, error=error.strerror or error) from error
        self._baselines[key] = None
        self.edition += 1

    def _remember(self, run: str, report: Report) -> None:
        self._reports.pop(run, None)
        self._reports[run] = report
        while len(self._reports) > _IN_MEMORY:
            self._reports.pop(next(iter(self._reports)), None)

    def _counted(self, card: Card) -> dict[str, int]:
        path = self._place(card.id) / "report.json"
        return dict(settled(read_report(path)).counts) if path.exists() else card.counts

    def _place(self, run: str) -> Path:
        if not _ID.fullmatch(run):
            raise Failure("qa_page.unknown")
        return self.folder / "runs" / run

    def _baseline_path(self, key: str) -> Path:
        """key: of a card, which had it from the catalogue: a file's name, never a path."""
        if "/" in key or key in ("", ".", ".."):
            raise Failure("qa_page.unknown")
        return self.folder / "baselines" / f"{key}.json"


def settled(report: Report) -> Report:
    """`report` of a run that has ended: what was in the middle has not been run."""
    if not any(case.state == "running" for case in report.cases):
        return report
    cases = [case.model_copy(update={"state": "waiting"}) if case.state == "running" else case for case in report.cases]
    return report.model_copy(update={"cases": tuple(cases)})


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0][:200]
