"""Prompts out of a file, row by row: .txt, .csv, .tsv, .jsonl. Nothing but the row at hand is in memory."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from kimi_demo.batches import json_rows
from kimi_demo.batches.encoding import detect, known, ordered
from kimi_demo.batches.lines import LONGEST, Lines, is_broken
from kimi_demo.batches.rows import BadRow, Row
from kimi_demo.batches.tables import layout, prompt_column, records
from kimi_demo.dialect.failure import Failure

Format = Literal["txt", "csv", "tsv", "jsonl"]
FORMATS: tuple[Format, ...] = ("txt", "csv", "tsv", "jsonl")
_ENDINGS: dict[str, Format] = {".csv": "csv", ".tsv": "tsv", ".tab": "tsv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl"}


@dataclass(frozen=True)
class Options:
    """What a person chose. None: found in the file. column: the prompt's, by name (or number, in a table).

    longest: characters of a prompt that are accepted; None for any.
    """

    format: Format | None = None
    encoding: str | None = None
    column: str | None = None
    header: bool = True
    keep_blank: bool = False
    keep_duplicates: bool = True
    longest: int | None = None


@dataclass(frozen=True)
class Source:
    """A file and how it is read. header: a table's columns; at: which of them is the prompt. Made by `open_source`."""

    path: Path
    format: Format
    encoding: str
    options: Options
    delimiter: str = ","
    header: tuple[str, ...] = ()
    at: int = 0
    skip: int = 0

    @property
    def column(self) -> str | None:
        """The name of the column that holds the prompt."""
        return self.header[self.at] if self.header else self.options.column

    def described(self) -> dict[str, Any]:
        """Everything that decides which rows come out of the file, for the fingerprint; the file's content apart."""
        kept = {"keep_blank": self.options.keep_blank, "keep_duplicates": self.options.keep_duplicates, "longest": self.options.longest}
        found = {"format": self.format, "encoding": self.encoding, "column": self.column, "delimiter": self.delimiter, "skip": self.skip}
        return found | kept

    def rows(self, counts: "Counts | None" = None) -> Iterator[Row | BadRow]:
        """The rows, each time from the beginning. counts: is kept up to date meanwhile; with it duplicates are counted too.

        Raises Failure("batches.unreadable").
        """
        counts = counts if counts is not None else Counts(duplicates=None)
        seen: set[bytes] | None = None if counts.duplicates is None and self.options.keep_duplicates else set()
        for found in self._parsed():
            if isinstance(found, BadRow):
                counts.bad += 1
                yield found
                continue
            if found.is_blank:
                counts.blank += 1
                if not self.options.keep_blank:
                    continue
            elif seen is not None:
                digest = found.digest()
                if digest in seen:
                    counts.duplicates = (counts.duplicates or 0) + 1
                    if not self.options.keep_duplicates:
                        continue
                else:
                    seen.add(digest)
            yield replace(found, index=counts.rows)
            counts.rows += 1

    def _parsed(self) -> Iterator[Row | BadRow]:
        reader = self._table() if self.format in ("csv", "tsv") else self._lines()
        for found in reader:
            if isinstance(found, Row):
                problem = self._problem(found)
                yield BadRow(found.line, problem) if problem is not None else found
            else:
                yield found

    def _problem(self, row: Row) -> Failure | None:
        text = row.ask if isinstance(row.ask, str) else str(row.ask)
        if is_broken(text) or any(isinstance(item, str) and is_broken(item) for item in row.columns.values()):
            return Failure("batches.broken_text", encoding=self.encoding)
        if "\0" in text and self.format != "jsonl":
            return Failure("batches.nul")
        if self.options.longest is not None and len(text) > self.options.longest:
            return Failure("batches.row_too_long", characters=len(text), limit=self.options.longest)
        return None

    def _lines(self) -> Iterator[Row | BadRow]:
        lines = Lines(self.path, self.encoding)
        for line in lines:
            if lines.cut:
                lines.cut = False
                yield BadRow(lines.number, Failure("batches.line_too_long", limit=LONGEST))
            elif self.format == "txt" or not line.strip():
                yield Row(0, lines.number, line.rstrip("\r\n"))
            else:
                try:
                    found = json_rows.parse(line, self.options.column)
                except Failure as failure:
                    yield BadRow(lines.number, failure)
                else:
                    yield Row(0, lines.number, found.ask, found.columns, found.custom_id, found.changes, found.thinking)

    def _table(self) -> Iterator[Row | BadRow]:
        others = [(number, name) for number, name in enumerate(self.header) if number != self.at]
        skip = self.skip
        for record in records(self.path, self.encoding, self.delimiter):
            cells = record.cells
            blank = not any(map(str.strip, cells))
            if skip and not blank:
                skip -= 1
            elif record.problem is not None:
                yield BadRow(record.line, record.problem)
            elif any(map(str.strip, cells[len(self.header) :])):
                yield BadRow(record.line, Failure("batches.too_many_cells", cells=len(cells), columns=len(self.header)))
            elif not (skip and blank):
                prompt = cells[self.at] if self.at < len(cells) else ""
                yield Row(0, record.line, prompt, {name: cells[at] if at < len(cells) else "" for at, name in others})


@dataclass
class Counts:
    """rows: kept so far; duplicates: of rows before them, None where they are not looked for."""

    rows: int = 0
    bad: int = 0
    blank: int = 0
    duplicates: int | None = 0


def open_source(path: Path, options: Options | None = None) -> Source:
    """Finds out how `path` is to be read. Raises Failure of the `batches.` family: what the file is, or which column is meant."""
    options = options if options is not None else Options()
    if not path.is_file():
        raise Failure("batches.no_file", path=path)
    encoding = ordered(known(options.encoding), path) if options.encoding else detect(path)
    form = options.format or _format(path, encoding)
    if form not in ("csv", "tsv"):
        if form == "jsonl" and options.format is None:
            _refuse_one_document(path, encoding)
        return Source(path, form, encoding, options)
    found = layout(path, encoding, tabs=form == "tsv", has_header=options.header)
    return Source(path, form, encoding, options, found.delimiter, found.header, prompt_column(found.header, options.column), found.skip)


def _first_line(path: Path, encoding: str) -> str:
    return next((line for line in Lines(path, encoding) if line.strip()), "")


def _format(path: Path, encoding: str) -> Format:
    """By the name's ending; a file of JSON objects is that whatever its name."""
    form = _ENDINGS.get(path.suffix.lower(), "txt")
    if form != "jsonl":
        line = _first_line(path, encoding).strip()
        if line.startswith("{") and line.endswith("}"):
            try:
                json_rows.load(line)
                return "jsonl"
            except Failure:
                pass
    return form


def _refuse_one_document(path: Path, encoding: str) -> None:
    """A JSON document that spans lines would come out as nothing but broken rows. Raises Failure("batches.json_document")."""
    line = _first_line(path, encoding).strip()
    if line in ("[", "{") or (line.startswith("[") and line.endswith(("]", ",")) and line != "[]"):
        raise Failure("batches.json_document", path=path)
