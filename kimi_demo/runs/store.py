"""`Store`: runs on disk, in one SQLite file. Writing happens on a thread of its own and never holds up a run."""

import logging
import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TypeVar

from kimi_demo.dialect.events import Ended, Timed
from kimi_demo.dialect.failure import Failure
from kimi_demo.runs import conversation_rows
from kimi_demo.runs.conversation_rows import Changes, Fields
from kimi_demo.runs.merge import merged
from kimi_demo.runs.rows import event_of, text_of, whole
from kimi_demo.runs.run import Run
from kimi_demo.runs.schema import MIGRATIONS, migrate
from kimi_demo.runs.tree import Node

log = logging.getLogger(__name__)

T = TypeVar("T")

STORE = "runs.sqlite3"
"""Its name in the data folder."""

COMMIT_EVERY_S = 0.4
MOST_WAITING_EVENTS = 500_000

INSERT_RUN = 'INSERT OR IGNORE INTO runs (id, owner, kind, "group", parent, title, created_at) VALUES (?, ?, ?, ?, ?, ?, ?)'
INSERT_EVENT = "INSERT INTO events (run, seq, at, event) VALUES (?, (SELECT ifnull(max(seq) + 1, 0) FROM events WHERE run = ?1), ?, ?)"


@dataclass
class _Waiting:
    """What is to be written at the next commit."""

    runs: list[tuple[str | None, ...]] = field(default_factory=list)
    events: dict[str, list[Timed]] = field(default_factory=dict)
    conversations: Changes = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.runs or self.events or self.conversations)


class Store:
    """Opens (or makes, or migrates) the file; runs that were going when the last application died get `Ended("interrupted")`.

    alone: False for a program beside the application: a run without an end may be going on there, and stays as it is.

    Events are on disk at most a second after `write`, `Ended` at once; a process that is killed loses no more than that.
    When writing fails (a full disk), runs go on in memory, `trouble` says why, and writing is tried again until it works.
    `load` and `ids` may be called from any thread, several at once.

    Raises Failure: store.newer (found, known), store.foreign, store.corrupt (path, error), store.unusable (path, error).
    """

    def __init__(
        self, path: Path, *, alone: bool = True, commit_every: float = COMMIT_EVERY_S, migrations: Sequence[str] = MIGRATIONS
    ) -> None:
        self._path = path
        self._commit_every = commit_every
        self._waiting = _Waiting()
        self._in_hand: set[str] = set()  # runs of the batch that is being written
        self._given_up: set[str] = set()
        self._lock = threading.Lock()  # guards these three
        self._wake = threading.Condition(self._lock)
        self._urgent = False
        self._closing = False
        self._writing = threading.Lock()  # held over a commit
        self._trouble: Failure | None = None
        self._connection = self._open(migrations, alone)
        self._thread = threading.Thread(target=self._write_until_closed, name="run store", daemon=True)
        self._thread.start()

    @property
    def trouble(self) -> Failure | None:
        """Why nothing reaches the disk at the moment; None while all is well."""
        return self._trouble

    def add(self, run: Run) -> None:
        """Makes a run known, before its first event."""
        row = (run.id, run.owner, run.kind, run.group, run.parent, run.title, run.created_at.isoformat())
        with self._lock:
            self._waiting.runs.append(row)

    def write(self, run_id: str, timed: Timed) -> None:
        """Takes an event. Costs an append; the disk is the other thread's business."""
        with self._wake:
            if run_id in self._given_up:
                return
            first = not self._waiting.events
            self._waiting.events.setdefault(run_id, []).append(timed)
            if isinstance(timed.event, Ended):
                self._urgent = True
            if first or self._urgent:
                self._wake.notify()

    def change_conversation(self, conversation_id: str, **fields: str | None) -> None:
        """Takes new values of a conversation's columns; with `owner` and `created_at` among them it is made where there is none."""
        with self._wake:
            self._waiting.conversations.setdefault(conversation_id, {}).update(
                {name: None if value is None else whole(value) for name, value in fields.items()}
            )
            self._wake.notify()

    def conversations(self, owner: str, **question: str | None) -> list[tuple[str, Fields]]:
        """Those of the owner, changes that are not on disk included; see conversation_rows.read for what can be asked.

        Raises Failure: store.corrupt, store.unusable.
        """
        self.flush()
        with self._reading() as connection:
            found = dict(conversation_rows.read(connection, owner, **question))
        if self._trouble is not None:
            with self._lock:
                conversation_rows.overlay(found, self._waiting.conversations, owner, **question)
        return list(found.items())

    def forget_conversation(self, conversation_id: str) -> None:
        """Removes a conversation's row; its runs are deleted one by one. Raises Failure: store.unusable."""
        self.flush()
        with self._writing, self._told_as_failure():
            self._connection.execute("DELETE FROM conversations WHERE id = ?", (conversation_id,))

    def deleted_conversations(self, before: str) -> list[tuple[str, str]]:
        """(id, owner) of those that were deleted before a time (ISO 8601, UTC)."""
        self.flush()
        with self._reading() as connection:
            return connection.execute("SELECT id, owner FROM conversations WHERE deleted_at < ?", (before,)).fetchall()

    def nodes(self, group: str, owner: str) -> list[Node]:
        """The owner's runs of a group, each with what it follows, in order of creation. Raises Failure: store.corrupt, store.unusable."""
        self.flush()
        with self._reading() as connection:
            rows = connection.execute('SELECT id, parent FROM runs WHERE owner = ? AND "group" = ? ORDER BY nr', (owner, group))
            return [Node(*row) for row in rows]

    def holds(self, run_id: str) -> bool:
        """Whether all that was written of a run is on disk."""
        with self._lock:
            return run_id not in self._waiting.events and run_id not in self._in_hand and run_id not in self._given_up

    def load(self, run_id: str, owner: str) -> Run | None:
        """The owner's run as it was written; None when there is none. Raises Failure: store.corrupt, store.unusable."""
        self.flush()
        with self._reading() as connection:
            found = connection.execute(
                'SELECT nr, kind, "group", parent, title, created_at FROM runs WHERE id = ? AND owner = ?', (run_id, owner)
            ).fetchone()
            if found is None:
                return None
            nr, kind, group, parent, title, created_at = found
            rows = connection.execute("SELECT at, event FROM events WHERE run = ? ORDER BY seq", (nr,))
            entries = [Timed(at, event_of(text)) for at, text in rows]
        if not entries or not isinstance(entries[-1].event, Ended):
            # Only after trouble with the disk: what came later is lost, and nobody works on this run any more.
            entries.append(Timed(entries[-1].at if entries else 0.0, Ended("interrupted")))
        return Run(
            id=run_id,
            owner=owner,
            kind=kind,
            group=group,
            parent=parent,
            title=title,
            created_at=datetime.fromisoformat(created_at),
            entries=entries,
        )

    def ids(self, owner: str, *, kind: str | None = None, group: str | None = None) -> list[str]:
        """Ids of the owner's runs (of a kind, of a group), in order of creation. Raises Failure: store.corrupt, store.unusable."""
        self.flush()
        with self._reading() as connection:
            rows = connection.execute(
                'SELECT id FROM runs WHERE owner = ?1 AND (?2 IS NULL OR kind = ?2) AND (?3 IS NULL OR "group" = ?3) ORDER BY nr',
                (owner, kind, group),
            )
            return [run_id for (run_id,) in rows]

    def mentions(self, owner: str, word: str) -> bool:
        """Whether a question of the owner's, or a message of theirs that waits, holds `word` (the id of an image)."""
        self.flush()
        with self._reading() as connection:
            (found,) = connection.execute(
                "SELECT EXISTS (SELECT 1 FROM runs JOIN events ON events.run = runs.nr WHERE owner = ?1 AND seq = 0 AND instr(event, ?2)) "
                "OR EXISTS (SELECT 1 FROM conversations WHERE owner = ?1 AND instr(ifnull(queue, ''), ?2))",
                (owner, word),
            ).fetchone()
            return bool(found)

    def delete(self, run_id: str) -> None:
        """Removes a run and all its events. Raises Failure: store.unusable."""
        self.flush()
        with self._writing, self._told_as_failure():
            self._connection.execute("DELETE FROM runs WHERE id = ?", (run_id,))

    def read(self, look: Callable[[sqlite3.Connection], T]) -> T:
        """What `look` finds, all that was written before included. Raises Failure: store.corrupt, store.unusable."""
        self.flush()
        with self._reading() as connection:
            return look(connection)

    def change(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Does `work` in a transaction, after all that waits. Raises Failure: store.unusable, and what `work` raises."""
        self.flush()
        with self._writing, self._told_as_failure(), self._transaction() as connection:
            return work(connection)

    def flush(self) -> None:
        """Writes what waits, now, and returns when that is done (or has failed: see `trouble`)."""
        self._commit()

    def close(self) -> None:
        """Writes what waits and closes the file. Nothing may be written after this."""
        with self._wake:
            self._closing = True
            self._wake.notify()
        self._thread.join()
        self._connection.close()

    # Writing

    def _write_until_closed(self) -> None:
        while True:
            with self._wake:
                self._wake.wait_for(lambda: self._waiting or self._closing)
                # Trouble waits as well: an urgent event must not try a full disk in a tight loop.
                self._wake.wait_for(lambda: self._closing or (self._urgent and self._trouble is None), timeout=self._commit_every)
                self._urgent = False
                closing = self._closing
            self._commit()
            if closing:
                return

    def _commit(self) -> None:
        with self._writing:
            with self._lock:
                batch, self._waiting = self._waiting, _Waiting()
                self._in_hand = set(batch.events)
            if not batch:
                return
            try:
                self._write(batch)
            except sqlite3.Error as error:
                self._keep(batch)
                if self._trouble is None:
                    log.error("Runs cannot be written to %s: %s", self._path, error)
                self._trouble = Failure("store.write", path=self._path, error=error)
            except Exception as error:  # would come again with the same events, and this thread must go on for all others
                log.exception("Events of %d runs cannot be written and are left out", len(batch.events))
                self._trouble = Failure("store.write", path=self._path, error=error)
            else:
                if self._trouble is not None:
                    log.warning("Runs are written to %s again", self._path)
                self._trouble = None
            finally:
                with self._lock:
                    self._in_hand = set()

    def _write(self, batch: _Waiting) -> None:
        with self._transaction() as connection:
            connection.executemany(INSERT_RUN, batch.runs)
            conversation_rows.write(connection, batch.conversations)
            for run_id, entries in batch.events.items():
                found = connection.execute("SELECT nr FROM runs WHERE id = ?", (run_id,)).fetchone()
                if found is None:
                    continue  # deleted meanwhile
                nr = found[0]
                connection.executemany(INSERT_EVENT, [(nr, item.at, text_of(item.event)) for item in merged(entries)])
                last = entries[-1].event
                if isinstance(last, Ended):
                    _set_ended(connection, nr, last)

    def _keep(self, batch: _Waiting) -> None:
        """Puts a batch that could not be written back in front. When too much waits, its runs are given up: what is on disk of a
        run is always its beginning, never a text with a hole."""
        with self._lock:
            later = self._waiting
            batch.runs += later.runs
            for conversation_id, fields in later.conversations.items():
                batch.conversations.setdefault(conversation_id, {}).update(fields)
            for run_id, entries in later.events.items():
                batch.events.setdefault(run_id, []).extend(entries)
            if sum(len(entries) for entries in batch.events.values()) > MOST_WAITING_EVENTS:
                self._given_up |= batch.events.keys()
                batch = _Waiting(runs=batch.runs, conversations=batch.conversations)
            self._waiting = batch

    # The file

    def _open(self, migrations: Sequence[str], alone: bool) -> sqlite3.Connection:
        with self._told_as_failure():
            connection = sqlite3.connect(self._path, isolation_level=None, check_same_thread=False)
            try:
                migrate(connection, migrations)
                connection.execute("PRAGMA journal_mode = WAL")
                # NORMAL: a commit survives the death of the process, and an outage costs at most the last commits, never the file.
                connection.execute("PRAGMA synchronous = NORMAL")
                connection.execute("PRAGMA foreign_keys = ON")
                connection.execute("PRAGMA secure_delete = ON")  # what a person deletes is gone from the file, too
                if alone:
                    self._mark_interrupted(connection)
            except BaseException:
                connection.close()
                raise
            return connection

    def _mark_interrupted(self, connection: sqlite3.Connection) -> None:
        ended = Ended("interrupted")
        with _transaction(connection):
            for (nr,) in connection.execute("SELECT nr FROM runs WHERE ended IS NULL").fetchall():
                (at,) = connection.execute("SELECT ifnull(max(at), 0.0) FROM events WHERE run = ?", (nr,)).fetchone()
                connection.execute(INSERT_EVENT, (nr, at, text_of(ended)))
                _set_ended(connection, nr, ended)

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with _transaction(self._connection):
            yield self._connection

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        """A connection of the reader's own: in WAL mode readers and the writer do not wait for one another."""
        with self._told_as_failure(), closing(sqlite3.connect(f"{self._path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
            connection.text_factory = bytes.decode  # raises ValueError, where sqlite3 itself would quote the damaged text
            yield connection

    @contextmanager
    def _told_as_failure(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            damaged = getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
            raise Failure("store.corrupt" if damaged else "store.unusable", path=self._path, error=error) from error
        except ValueError as error:  # an event that is none; its message would hold the person's text
            raise Failure("store.corrupt", path=self._path, error=type(error).__name__) from error


def _set_ended(connection: sqlite3.Connection, nr: int, ended: Ended) -> None:
    connection.execute("UPDATE runs SET ended = ? WHERE nr = ?", (ended.state, nr))
    conversation_rows.index(connection, nr)


@contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[None]:
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:  # a full disk has rolled back by itself
            connection.execute("ROLLBACK")
        raise
