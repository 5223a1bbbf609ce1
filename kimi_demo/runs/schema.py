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
    # 2. Conversations are trees: `parent` is the id of the run that a run follows. What was a list becomes a chain. `words` is what
    #    searching looks at: question and answer of an ended chat turn, casefolded (here: as far as SQLite can).
    """
    ALTER TABLE runs ADD COLUMN parent TEXT;
    ALTER TABLE runs ADD COLUMN words TEXT;
    CREATE TABLE conversations (
        id TEXT PRIMARY KEY,
        owner TEXT NOT NULL,
        title TEXT NOT NULL DEFAULT '',
        created_at TEXT NOT NULL,
        updated_at TEXT NOT NULL,
        deleted_at TEXT,
        leaf TEXT,
        system TEXT NOT NULL DEFAULT '',
        queue TEXT NOT NULL DEFAULT '[]'
    );
    CREATE INDEX conversations_by_owner ON conversations (owner, updated_at);
    UPDATE runs SET parent = (
        SELECT earlier.id FROM runs AS earlier
        WHERE earlier."group" = runs."group" AND earlier.owner = runs.owner AND earlier.kind = 'chat' AND earlier.nr < runs.nr
        ORDER BY earlier.nr DESC LIMIT 1
    ) WHERE kind = 'chat' AND "group" IS NOT NULL;
    UPDATE runs SET words = (
        SELECT lower(group_concat(text, char(10))) FROM (
            SELECT json_extract(event, '$.text') AS text FROM events
            WHERE run = runs.nr AND iif(json_valid(event), json_extract(event, '$.type') IN ('asked', 'answer_delta'), 0) ORDER BY seq
        )
    ) WHERE kind = 'chat' AND ended IS NOT NULL;
    INSERT OR IGNORE INTO conversations (id, owner, title, created_at, updated_at, leaf)
        SELECT last."group", last.owner, first.title, first.created_at, last.created_at, last.id
        FROM (
            SELECT min(nr) AS first, max(nr) AS last FROM runs WHERE kind = 'chat' AND "group" IS NOT NULL GROUP BY "group", owner
        ) AS ends
        JOIN runs AS first ON first.nr = ends.first JOIN runs AS last ON last.nr = ends.last;
    """,
    # 3. Pages that were made of runs and can be read by whoever has the token (runs/published.py). A page goes with the first of its
    #    runs that is deleted, whoever deletes it.
    """
    CREATE TABLE published (
        token TEXT PRIMARY KEY,
        owner TEXT NOT NULL,
        kind TEXT NOT NULL,
        subject TEXT NOT NULL,
        title TEXT NOT NULL,
        published_at TEXT NOT NULL,
        page BLOB NOT NULL
    );
    CREATE INDEX published_by_owner ON published (owner, published_at);
    CREATE TABLE published_runs (
        run TEXT NOT NULL,
        token TEXT NOT NULL REFERENCES published (token) ON DELETE CASCADE,
        PRIMARY KEY (run, token)
    ) WITHOUT ROWID;
    CREATE TRIGGER published_with_a_deleted_run AFTER DELETE ON runs BEGIN
        DELETE FROM published WHERE token IN (SELECT token FROM published_runs WHERE run = OLD.id);
    END;
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
