"""Batches on disk, each in a folder of its own: what it was made from, its results, and a small card that says how it stands."""

import json
import logging
import os
import re
import shutil
from collections.abc import Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal
from uuid import uuid4

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from kimi_demo.batches.finished import Finished
from kimi_demo.batches.indices import Indices
from kimi_demo.batches.reading import Options, Source, open_source
from kimi_demo.batches.versions import Which
from kimi_demo.dialect.failure import Failure
from kimi_demo.dialect.sampling import Sampling
from kimi_demo.owners import OWNER

log = logging.getLogger(__name__)

EngineName = Literal["offline", "server"]
State = Literal["queued", "running", "paused", "done", "stopped", "failed", "interrupted"]
GOING: tuple[State, ...] = ("queued", "running", "paused")

_ID = re.compile(r"[0-9a-f]{32}")
_CARD = "batch.json"
_WANTED = "rows.json"
_SUFFIXES = (".txt", ".csv", ".tsv", ".tab", ".jsonl", ".ndjson", ".json")


class Entry(BaseModel):
    """One batch. owner: whose; title: what people call it; input: the file's name in the folder; options: how it is read.

    root: id of the first version over the same rows (its own for a first one); version: counts from 1; which: the rows of an earlier
    version that this one runs again. rows: to run; bad_rows: left out. done, failed, cut_off: as the batch last stood.
    failure, failure_params: why it stopped by itself.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    id: str = Field(default_factory=lambda: uuid4().hex)
    owner: str
    title: str
    created_at: datetime = Field(default_factory=lambda: datetime.now(UTC))
    input: str
    options: dict[str, Any] = {}
    engine: EngineName
    preset: str
    sampling: Sampling
    thinking: bool
    rows: int
    bad_rows: int = 0
    root: str = ""
    version: int = 1
    parent: str | None = None
    which: Which | None = None
    state: State = "queued"
    failure: str | None = None
    failure_params: dict[str, str] = {}
    done: int = 0
    failed: int = 0
    cut_off: int = 0

    @property
    def going(self) -> bool:
        return self.state in GOING

    def changed(self, **fields: Any) -> "Entry":
        return self.model_copy(update=fields)


class Shelf:
    """Folders `{folder}/{owner}/{id}/`. Blocking; one process at a time (the data folder is locked by the application)."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def place(self, owner: str, batch: str) -> Path:
        """The folder of a batch. Raises Failure("batch_page.unknown") for what cannot be the name of one."""
        if not OWNER.fullmatch(owner) or not _ID.fullmatch(batch):
            raise Failure("batch_page.unknown")
        return self.folder / owner / batch

    def results(self, entry: Entry) -> Path:
        return self.place(entry.owner, entry.id) / "results.jsonl"

    def source(self, entry: Entry) -> Source:
        """Raises Failure of the `batches.` family."""
        return open_source(self.place(entry.owner, entry.id) / entry.input, Options(**entry.options))

    def wanted(self, entry: Entry) -> Indices | None:
        """The rows that it runs; None for all."""
        path = self.place(entry.owner, entry.id) / _WANTED
        return Indices(json.loads(path.read_text(encoding="ascii"))) if path.exists() else None

    def add(self, entry: Entry, source: Path, wanted: Indices | None = None) -> None:
        """A new batch from the file `source`, which is linked or copied. Raises Failure: batches.disk_full, batches.unwritable."""
        place = self.place(entry.owner, entry.id)
        try:
            place.mkdir(parents=True)
            _link(source, place / entry.input)
            if wanted is not None:
                (place / _WANTED).write_text(json.dumps(list(wanted)), encoding="ascii")
            self.save(entry)
        except OSError as error:
            shutil.rmtree(place, ignore_errors=True)
            raise unwritten(entry.title, error) from error

    def save(self, entry: Entry) -> None:
        """Whole or not at all. Raises OSError."""
        path = self.place(entry.owner, entry.id) / _CARD
        beside = path.with_name(_CARD + ".new")
        with beside.open("w", encoding="utf-8") as file:
            file.write(entry.model_dump_json())
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)

    def entries(self, owner: str) -> list[Entry]:
        """The owner's batches, newest first."""
        if not OWNER.fullmatch(owner) or not (self.folder / owner).is_dir():
            return []
        found = [entry for place in (self.folder / owner).iterdir() if (entry := _read(place)) is not None]
        return sorted(found, key=lambda entry: entry.created_at, reverse=True)

    def older_than(self, before: datetime) -> list[Entry]:
        """Everybody's batches that were made before then and are over."""
        found = [entry for place in self.folder.glob("*/*") if (entry := _read(place)) is not None]
        return [entry for entry in found if entry.created_at < before and not entry.going]

    def recover(self) -> None:
        """At the start: what was going when the application died is `interrupted`; half-made folders and unused files go."""
        for place in list(self.folder.glob("*/*")):
            entry = _read(place)
            if entry is None:
                if not (place / _CARD).exists():
                    shutil.rmtree(place, ignore_errors=True)
            elif entry.going:
                self.save(self._as_found(entry.changed(state="interrupted")))

    def _as_found(self, entry: Entry) -> Entry:
        """With the counts of what is in its journal: its card was written before those rows."""
        table = Finished(self.results(entry))
        try:
            table.update()
        except (Failure, ValueError) as error:  # going on with it will say what is wrong
            log.warning("The results of batch %s cannot be read: %s", entry.id, error)
            return entry
        counts = table.counts()
        return entry.changed(done=counts["all"], failed=counts["failed"], cut_off=counts["cut_off"])

    def remove(self, entry: Entry) -> None:
        shutil.rmtree(self.place(entry.owner, entry.id), ignore_errors=True)


def input_name(name: str) -> str:
    """What a file is called in a batch's folder: of the name that somebody gave it only a known ending is kept."""
    suffix = Path(name.lower()).suffix
    return "input" + (suffix if suffix in _SUFFIXES else ".txt")


def options_dict(options: Options) -> dict[str, Any]:
    return asdict(options)


def unwritten(title: str, error: OSError) -> Failure:
    """As the journal says it, without the path."""
    import errno

    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return Failure("batches.disk_full", path=title)
    return Failure("batches.unwritable", path=title, error=error.strerror or error)


def _link(source: Path, target: Path) -> None:
    try:
        os.link(source, target)
    except OSError:  # a file system without hard links
        shutil.copyfile(source, target)


def _read(place: Path) -> Entry | None:
    try:
        entry = Entry.model_validate_json((place / _CARD).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, ValidationError) as error:
        log.warning("The batch in %s cannot be read: %s", place, type(error).__name__)
        return None
    return entry if (entry.owner, entry.id) == (place.parent.name, place.name) else None


def lineage(entries: list[Entry], entry: Entry) -> Iterator[Entry]:
    """The versions over the same rows, the first one first."""
    root = entry.root or entry.id
    yield from sorted((one for one in entries if (one.root or one.id) == root), key=lambda one: one.version)
