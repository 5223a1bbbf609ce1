"""Rows of .csv and .tsv files: the delimiter, the header, which column is the prompt, and cells that tell what went wrong."""

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from kimi_demo.batches.lines import LONGEST, Lines
from kimi_demo.dialect.failure import Failure

_DELIMITERS = (",", ";", "\t", "|")
MOST_NAMED = 200
"""Columns that a message or a list to choose from names; a file of nothing but commas has millions."""
_PROMPT_NAMES = ("prompt", "prompts", "question", "input", "text", "instruction", "query", "问题", "提示", "提示词", "输入", "指令")


@dataclass(frozen=True)
class Layout:
    """How a table is written. header: the columns' names, each once; skip: records before the first row."""

    delimiter: str
    header: tuple[str, ...]
    skip: int


@dataclass(frozen=True, slots=True)
class Record:
    """line: where it begins, from 1. problem: what keeps it from being a row; cells may be wrong then."""

    line: int
    cells: list[str]
    problem: Failure | None = None


def records(path: Path, encoding: str, delimiter: str) -> Iterator[Record]:
    """Every record of the file, the header among them. Blank lines are records without cells."""
    csv.field_size_limit(LONGEST)
    lines = Lines(path, encoding)
    reader = csv.reader(iter(lines), delimiter=delimiter)
    while True:
        start, lines.cut = lines.number + 1, False
        problem = None
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            cells, problem = [], Failure("batches.csv", problem=error)
        if lines.cut:
            problem = Failure("batches.line_too_long", limit=LONGEST)
        elif lines.ended:
            # A record is complete before the next line is asked for, unless it stands in quotes that were never closed.
            problem = Failure("batches.quote_not_closed")
        yield Record(start, cells, problem)


def layout(path: Path, encoding: str, *, tabs: bool, has_header: bool) -> Layout:
    """Found in the first lines. tabs: a .tsv. Raises Failure("batches.empty")."""
    first = next((line for line in Lines(path, encoding) if line.strip()), None)
    if first is None:
        raise Failure("batches.empty", path=path)
    skip, told = 0, first.strip("\r\n")
    if told.lower().startswith("sep=") and len(told) == 5:  # Excel's own way of saying it
        skip, delimiter = 1, told[4]
    else:
        delimiter = "\t" if tabs and "\t" in told else _delimiter(told)
    cells: list[str] = []
    for number, record in enumerate(record for record in records(path, encoding, delimiter) if any(map(str.strip, record.cells))):
        if number == skip:
            cells = record.cells
            break
    names = cells if has_header else [str(number) for number in range(1, len(cells) + 1)]
    return Layout(delimiter, unique(names), skip + has_header)


def _delimiter(line: str) -> str:
    outside = "".join(line.split('"')[::2])
    return max(_DELIMITERS, key=outside.count)  # the comma where none occurs


def unique(names: Sequence[str]) -> tuple[str, ...]:
    """Names that occur again get a number, nameless columns one as well."""
    found: dict[str, None] = {}
    numbers: dict[str, int] = {}  # where the counting of a name goes on: a line of commas has a million columns of one name
    for number, name in enumerate(names, start=1):
        base = candidate = name.strip() or f"column {number}"
        again = numbers.get(base, 2)
        while candidate in found:
            candidate, again = f"{base} ({again})", again + 1
        numbers[base] = again
        found[candidate] = None
    return tuple(found)


def prompt_column(header: Sequence[str], chosen: str | None) -> int:
    """The prompt's column: the one named (or, where no name fits, numbered) `chosen`, else the one that is most likely meant.

    Raises Failure: batches.no_column (name, columns), batches.column_twice (name), batches.which_column (columns).
    """
    columns = ", ".join(header[:MOST_NAMED]) + (", …" if len(header) > MOST_NAMED else "")
    lower = [name.lower() for name in header]
    if chosen is not None:
        wanted = chosen.strip().lower()
        if wanted in lower:
            if f"{wanted} (2)" in lower:
                raise Failure("batches.column_twice", name=chosen, columns=columns)
            return lower.index(wanted)
        if wanted.isdecimal() and 1 <= int(wanted) <= len(header):
            return int(wanted) - 1
        raise Failure("batches.no_column", name=chosen, columns=columns)
    if len(header) == 1:
        return 0
    for name in _PROMPT_NAMES:
        if name in lower:
            return prompt_column(header, name)
    raise Failure("batches.which_column", columns=columns)
