"""One look through a file before anything runs: how many rows, which ones cannot be run, what the first ones are."""

from dataclasses import dataclass

from kimi_demo.batches.reading import Counts, Source
from kimi_demo.batches.rows import BadRow, Row

MOST_BAD = 1000
"""Bad rows that are listed; the others are only counted."""

_MOST_COLUMNS = 200


@dataclass(frozen=True)
class Survey:
    """rows: to run; columns: names of what travels along, in order of appearance; bad: the first MOST_BAD of `bad_rows`."""

    rows: int
    blank: int
    duplicates: int
    bad_rows: int
    bad: tuple[BadRow, ...]
    first: tuple[Row, ...]
    columns: tuple[str, ...]


def survey(source: Source, preview: int = 5) -> Survey:
    """Reads the whole file. Raises Failure("batches.unreadable")."""
    counts = Counts()
    bad: list[BadRow] = []
    first: list[Row] = []
    columns: dict[str, None] = {name: None for at, name in enumerate(source.header) if at != source.at}
    for found in source.rows(counts):
        if isinstance(found, BadRow):
            if len(bad) < MOST_BAD:
                bad.append(found)
            continue
        if len(first) < preview:
            first.append(found)
        if not source.header and len(columns) < _MOST_COLUMNS:
            columns.update(dict.fromkeys(found.columns))
    return Survey(counts.rows, counts.blank, counts.duplicates or 0, counts.bad, tuple(bad), tuple(first), tuple(columns))
