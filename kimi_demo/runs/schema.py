"""The store's tables, and the way there from every older file."""

import sqlite3
from collections.abc import Sequence

from kimi_demo.dialect.failure import Failure

APPLICATION_ID = 0x4B696D69  # "Kimi": tells our files from any other SQLite file

MIGRATIONS: tuple[str, ...] = (
    # 1. `nr` counts runs in order of creation. `ended` repeats the state in the run's `Ended`, so that those without one are
    #    found without reading their events.
    """
    CREATE TABLE runs (
        nr INTEGER PRIMARY KEY,
        id TEXT NOT NULL UNIQUE,
        owner TEXT NOT NULL,
        kind TEXT NOT NULL,
        "group" TEXT,
        title TEXT NOT NULL,
        created_at TEXT NOT NULL,
        ended TEXT
    );
    CREATE INDEX runs_by_owner ON runs (owner, kind, nr);
    CREATE INDEX runs_by_group ON runs ("group", owner, nr) WHERE "group" IS NOT NULL;
    CREATE INDEX runs_going ON runs (nr) WHERE ended IS NULL;
    CREATE TABLE events (
        run INTEGER NOT NULL REFERENCES runs (nr) ON DELETE CASCADE,
        seq INTEGER NOT NULL,
        at REAL NOT NULL,
        event TEXT NOT NULL,
        PRIMARY KEY (run, seq)
    ) WITHOUT ROWID;
    """,
)
"""Step n takes a file of schema n to schema n + 1. Steps that were released are never changed, only added to."""


def migrate(connection: sqlite3.Connection, migrations: Sequence[str] = MIGRATIONS) -> None:
    """Takes the file to the newest schema, each step in a transaction of its own (PRAGMA user_version counts them).

    `connection` is in autocommit mode (isolation_level None).
    Raises Failure: store.newer (found, known) for a file of a later version of this program, store.foreign for another program's.
    """
    found = _pragma(connection, "user_version")
    mine = _pragma(connection, "application_id") == APPLICATION_ID
    if not mine and (found or connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()):
        raise Failure("store.foreign")
    if found > len(migrations):
        raise Failure("store.newer", found=found, known=len(migrations))
    for number, step in enumerate(migrations[found:], start=found + 1):
        # executescript runs statement by statement and stops at the first that fails; the transaction is then still open.
        try:
            connection.executescript(
                f"BEGIN IMMEDIATE; {step}; PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {number}; COMMIT;"
            )
        except sqlite3.Error:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    return int(connection.execute(f"PRAGMA {name}").fetchone()[0])
