"""What is to become a batch: a file that comes in piece by piece, or typed prompts; looked through before anything runs."""

import asyncio
import re
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from uuid import uuid4

from kimi_demo.batch_engines import BatchEngines, Counting
from kimi_demo.batches.encoding import detect, known, ordered
from kimi_demo.batches.indices import Indices
from kimi_demo.batches.preview import Rendered, long_rows, preview
from kimi_demo.batches.reading import Options, Source, open_source
from kimi_demo.batches.rows import BadRow
from kimi_demo.batches.shelf import EngineName, Shelf, input_name, unwritten
from kimi_demo.batches.survey import MOST_BAD, Survey, survey
from kimi_demo.batches.tables import MOST_NAMED, layout
from kimi_demo.dialect.failure import Failure
from kimi_demo.owners import is_viewer
from kimi_demo.runs.conversations import shortened
from kimi_demo.runs.rows import whole
from kimi_demo.settings import Settings

PIECE = 768 * 1024
"""Bytes of a file that a browser sends at once: below the 1 MB that proxies let through unless told otherwise."""

_SPARE = 256 * 2**20
"""Bytes of disk that an upload must leave free: results are worth more than what they are made from."""

_LOOKS_AT_ONCE = 2
_FORGOTTEN_S = 24 * 3600.0
"""A file that nobody has run for so long goes when the next one comes."""


@dataclass
class Draft:
    """name: as its owner knows it, "" for typed prompts; size: bytes that it will have; received: of them.

    begun: monotonic seconds. becoming: whether a batch is being made of it.
    """

    token: str
    name: str
    path: Path
    size: int
    options: Options
    received: int = 0
    begun: float = field(default_factory=time.monotonic)
    becoming: bool = False
    surveyed: dict[Options, tuple[Source, Survey]] = field(default_factory=dict)

    @property
    def is_whole(self) -> bool:
        return self.received == self.size


@dataclass(frozen=True)
class Checked:
    """A draft as it would run. first: rows with their prompt and count; long: rows that leave no room for an answer (the first MOST_BAD
    of `left_out`); limit: tokens of the context; uncounted: why nobody could count."""

    source: Source
    found: Survey
    first: tuple[Rendered, ...] = ()
    long: tuple[BadRow, ...] = ()
    left_out: Indices = field(default_factory=Indices)
    limit: int | None = None
    uncounted: Failure | None = None

    @property
    def cannot_run(self) -> int:
        return self.found.bad_rows + len(self.left_out)

    @property
    def wanted(self) -> Indices | None:
        """The rows that fit; None for all."""
        if not len(self.left_out):
            return None
        return Indices(index for index in range(self.found.rows) if index not in self.left_out)


class Drafts:
    """One file per visitor; another takes its place. Belongs to the event loop's thread; files are read in others."""

    def __init__(self, shelf: Shelf, engines: BatchEngines, settings: Settings) -> None:
        self._shelf = shelf
        self._engines = engines
        self._settings = settings
        self._drafts: dict[str, Draft] = {}
        self._looking = asyncio.Semaphore(_LOOKS_AT_ONCE)

    @property
    def most_rows(self) -> int:
        return self._settings.max_batch_rows

    def of(self, owner: str) -> Draft | None:
        """The visitor's file."""
        return self._drafts.get(owner)

    def get(self, owner: str, token: str) -> Draft:
        """Raises Failure("batch_page.no_draft")."""
        draft = self._drafts.get(owner)
        if draft is None or draft.token != token:
            raise Failure("batch_page.no_draft")
        return draft

    @contextmanager
    def becoming(self, owner: str, token: str) -> Iterator[Draft]:
        """The visitor's file, while a batch is made of it: a second click meanwhile makes no second one. Where that fails it stays.

        Raises Failure: batch_page.no_draft, batch_page.draft_taken.
        """
        draft = self.get(owner, token)
        if draft.becoming:
            raise Failure("batch_page.draft_taken")
        draft.becoming = True
        try:
            yield draft
        except Failure as failure:
            raise renamed(failure, draft.name) from failure
        finally:
            draft.becoming = False

    async def begin(self, owner: str, name: str, size: int) -> Draft:
        """A file of `size` bytes is coming. Raises Failure: batch_page.too_large, batches.empty, batches.disk_full, batches.unwritable."""
        limit = self._most_bytes(owner)
        title = shortened(whole(name.replace("\\", "/").rpartition("/")[2]), 120) or "file"
        if size > limit:
            raise Failure("batch_page.too_large", size=f"{size / 1e6:.1f}", limit=f"{limit / 1e6:g}")
        if size < 1:
            raise Failure("batches.empty", path=title)
        old = time.monotonic() - _FORGOTTEN_S
        for other in [owner, *(one for one, draft in self._drafts.items() if draft.begun < old)]:
            await self.remove(other)
        draft = await asyncio.to_thread(self._made, owner, title, size)
        self._drafts[owner] = draft
        return draft

    async def add(self, owner: str, token: str, at: int, piece: bytes) -> Draft:
        """The next piece. A piece that is there already may come again; Raises Failure: batch_page.no_draft, batch_page.out_of_order."""
        draft = self.get(owner, token)
        if at + len(piece) <= draft.received:
            return draft
        if at != draft.received or at + len(piece) > draft.size:
            raise Failure("batch_page.out_of_order")
        draft.received += len(piece)  # before the disk is waited for, so that the same piece sent twice is not written twice
        try:
            await asyncio.to_thread(_append, draft.path, piece)
        except OSError as error:
            await self.remove(owner)
            raise unwritten(draft.name, error) from error
        return draft

    async def typed(self, owner: str, text: str) -> Draft:
        """Prompts, one a line; the caller calls `discard` in the end.

        Raises Failure: batch.no_prompts, batch.too_many_rows, batch.row_too_long, batches.disk_full, batches.unwritable.
        """
        lines = [line.strip() for line in re.split(r"\r\n|\r|\n", whole(text)) if line.strip()]
        if not lines:
            raise Failure("batch.no_prompts")
        if len(lines) > self._settings.max_batch_rows:
            raise Failure("batch.too_many_rows", rows=len(lines), limit=self._settings.max_batch_rows)
        longest = self._longest(owner)
        for number, line in enumerate(lines, start=1):
            if len(line) > longest:
                raise Failure("batch.row_too_long", row=number, characters=len(line), limit=longest)
        data = "".join(line + "\n" for line in lines).encode("utf-8", "replace")
        draft = await asyncio.to_thread(self._made, owner, "", len(data))
        draft.options = replace(draft.options, format="txt", encoding="utf-8")
        try:
            await asyncio.to_thread(_append, draft.path, data)
        except OSError as error:
            await asyncio.to_thread(self.discard, draft)
            raise unwritten("–", error) from error
        draft.received = draft.size
        return draft

    async def check(self, draft: Draft, options: Options, *, engine: EngineName, thinking: bool) -> Checked:
        """Looks the whole file through, read as `options` say.

        Raises Failure: batch_page.unfinished, and the `batches.` family with the file's name in place of its path.
        """
        if not draft.is_whole:
            raise Failure("batch_page.unfinished")
        options = draft.options = replace(options, longest=draft.options.longest)
        async with self._looking:
            try:
                source, found = await asyncio.to_thread(_surveyed, draft, options)
            except Failure as failure:
                raise renamed(failure, draft.name) from failure
            counting = await self._engines.counting(engine) if found.rows else Counting()
            if counting.renderer is None:
                return Checked(source, found, tuple(Rendered(row, None, None) for row in found.first), uncounted=counting.why)
            return await asyncio.to_thread(_measured, source, found, counting, thinking)

    async def remove(self, owner: str) -> None:
        draft = self._drafts.pop(owner, None)
        if draft is not None:
            await asyncio.to_thread(self.discard, draft)

    def discard(self, draft: Draft) -> None:
        """Blocking."""
        shutil.rmtree(draft.path.parent, ignore_errors=True)

    def _longest(self, owner: str) -> int:
        """Characters of one prompt."""
        return self._settings.public_prompt_chars if is_viewer(owner) else self._settings.max_prompt_chars

    def _most_bytes(self, owner: str) -> int:
        """Of a file; a viewer's has room for as many of the longest prompts as they may run, in any script."""
        if is_viewer(owner):
            return self._settings.public_rows * self._settings.public_prompt_chars * 4
        return self._settings.max_batch_file_mb * 10**6

    def _made(self, owner: str, name: str, size: int) -> Draft:
        token = uuid4().hex
        place = self._shelf.place(owner, token)
        try:
            place.mkdir(parents=True)
            if shutil.disk_usage(place).free < size + _SPARE:
                place.rmdir()
                raise Failure("batches.disk_full", path=name or "–")
        except OSError as error:
            raise unwritten(name or "–", error) from error
        options = Options(longest=self._longest(owner))
        return Draft(token, name, place / input_name(name), size, options)


def renamed(failure: Failure, name: str) -> Failure:
    """A path on the server is nothing for a visitor: they know the file by its name."""
    return Failure(failure.code, **failure.params | {"path": name}) if "path" in failure.params else failure


def columns_of(draft: Draft, options: Options) -> tuple[str, ...]:
    """The columns of a table that cannot be read yet, because it is not known which is meant; () for anything else. Blocking."""
    form = options.format or {".csv": "csv", ".tsv": "tsv", ".tab": "tsv"}.get(draft.path.suffix)
    if form not in ("csv", "tsv"):
        return ()
    try:
        encoding = ordered(known(options.encoding), draft.path) if options.encoding else detect(draft.path)
        return layout(draft.path, encoding, tabs=form == "tsv", has_header=options.header).header[:MOST_NAMED]
    except Failure:
        return ()


def _append(path: Path, piece: bytes) -> None:
    with path.open("ab") as file:
        file.write(piece)


def _surveyed(draft: Draft, options: Options) -> tuple[Source, Survey]:
    if options not in draft.surveyed:
        source = open_source(draft.path, options)
        draft.surveyed = {options: (source, survey(source))}
    return draft.surveyed[options]


def _measured(source: Source, found: Survey, counting: Counting, thinking: bool) -> Checked:
    renderer = counting.renderer
    assert renderer is not None
    try:
        first = preview(found.first, renderer, thinking=thinking)
    except LookupError:  # a server that renders prompts and does not count them
        first = [Rendered(row, None, None) for row in found.first]
    long: list[BadRow] = []
    left_out = Indices()
    if counting.limit is not None:
        try:
            for row, failure in long_rows(source.rows(), renderer, limit=counting.limit, thinking=thinking):
                left_out.add(row.index)
                if len(long) < MOST_BAD:
                    long.append(BadRow(row.line, failure))
        except LookupError:
            pass
    return Checked(source, found, tuple(first), tuple(long), left_out, counting.limit)
