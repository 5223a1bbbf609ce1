"""Handing runs to a store, and looking at its file from outside."""

import sqlite3
from contextlib import closing
from pathlib import Path

from kimi_demo.dialect.events import Event, Timed
from kimi_demo.runs.run import Run
from kimi_demo.runs.store import Store

NEVER = 3600.0


def put(store: Store, *events: Event, title: str = "t", **more: str) -> Run:
    """A run with these events, handed to the store."""
    run = Run(owner=more.get("owner", "me"), kind=more.get("kind", "chat"), title=title, group=more.get("group"))
    store.add(run)
    for number, event in enumerate(events):
        store.write(run.id, Timed(float(number), event))
    return run


def events_of(run: Run | None) -> list[Event]:
    assert run is not None
    return [item.event for item in run.entries]


def rows(path: Path, query: str = "SELECT count(*) FROM events") -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(query).fetchall()


def fill(store: Store) -> None:
    """From now on the file may not grow: SQLite says SQLITE_FULL, as it does for a full disk."""
    [(pages,)] = store._connection.execute("PRAGMA page_count").fetchall()
    store._connection.execute(f"PRAGMA max_page_count = {pages}")
