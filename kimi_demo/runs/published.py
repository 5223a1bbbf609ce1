"""`Published`: pages made of runs that whoever has the link may read. The page is kept as it was made; deleting a run withdraws it."""

import asyncio
import secrets
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal, get_args

from kimi_demo.dialect.failure import Failure
from kimi_demo.runs.rows import whole
from kimi_demo.runs.store import Store

Kind = Literal["chat", "turn", "tools", "batch", "qa"]
"""A conversation as far as it was shown, one turn of it, one tool conversation, a batch, a QA run."""
KINDS: tuple[Kind, ...] = get_args(Kind)

MOST_PAGE_BYTES = 16 * 1024 * 1024
_TOKEN_BYTES = 24  # 192 bits of chance: nobody guesses one
TOKEN = r"[A-Za-z0-9_-]{32}"
"""What a token looks like, as a regular expression."""

_COLUMNS = "token, owner, kind, subject, title, published_at, length(page)"
# A deleted conversation can be brought back for a while; until then its pages are not to be had.
_NOT_HIDDEN = """NOT (kind IN ('chat', 'turn') AND EXISTS (
    SELECT 1 FROM conversations WHERE conversations.id = published.subject AND conversations.owner = published.owner
    AND conversations.deleted_at IS NOT NULL))"""


@dataclass(frozen=True)
class Publication:
    """subject: the id of the conversation (chat, turn), run (tools), batch or QA run; bytes: of the page."""

    token: str
    owner: str
    kind: Kind
    subject: str
    title: str
    published_at: datetime
    bytes: int


class Published:
    """All published pages. The methods wait for the disk on threads of their own.

    most: pages that one owner may have at a time; most_bytes: of all pages together.
    """

    def __init__(self, store: Store, *, most: int, most_bytes: int) -> None:
        self._store = store
        self._most = most
        self._most_bytes = most_bytes

    async def add(self, owner: str, kind: Kind, subject: str, title: str, runs: Sequence[str], page: bytes) -> Publication:
        """Publishes `page`, made of `runs` (none of a batch's or QA run's: those are files).

        Raises Failure: runs.unknown when one of them was deleted meanwhile, publish.too_large (mb, limit_mb), publish.too_many (limit),
        publish.full (limit_mb), store.unusable.
        """
        if len(page) > MOST_PAGE_BYTES:
            raise Failure("publish.too_large", mb=len(page) // 1_048_576 + 1, limit_mb=MOST_PAGE_BYTES // 1_048_576)
        made = Publication(secrets.token_urlsafe(_TOKEN_BYTES), owner, kind, subject, whole(title), datetime.now(UTC), len(page))

        def insert(connection: sqlite3.Connection) -> None:
            for run in runs:
                if connection.execute("SELECT 1 FROM runs WHERE id = ? AND owner = ?", (run, owner)).fetchone() is None:
                    raise Failure("runs.unknown")
            (own,) = connection.execute("SELECT count(*) FROM published WHERE owner = ?", (owner,)).fetchone()
            if own >= self._most:
                raise Failure("publish.too_many", limit=self._most)
            (held,) = connection.execute("SELECT ifnull(sum(length(page)), 0) FROM published").fetchone()
            if held + len(page) > self._most_bytes:
                raise Failure("publish.full", limit_mb=self._most_bytes // 1_000_000)
            row = (made.token, owner, kind, subject, made.title, made.published_at.isoformat(), page)
            connection.execute("INSERT INTO published VALUES (?, ?, ?, ?, ?, ?, ?)", row)
            connection.executemany("INSERT INTO published_runs (run, token) VALUES (?, ?)", [(run, made.token) for run in set(runs)])

        await asyncio.to_thread(self._store.change, insert)
        return made

    async def page(self, token: str) -> bytes | None:
        """The page for whoever has its token; None for one that never was, was withdrawn, or whose conversation is deleted."""

        def look(connection: sqlite3.Connection) -> bytes | None:
            found = connection.execute(f"SELECT page FROM published WHERE token = ? AND {_NOT_HIDDEN}", (token,)).fetchone()
            return None if found is None else bytes(found[0])

        return await asyncio.to_thread(self._store.read, look)

    async def list(self, owner: str | None = None) -> list[Publication]:
        """The owner's pages, or everybody's: the newest first."""

        def look(connection: sqlite3.Connection) -> list[Publication]:
            rows = connection.execute(
                f"SELECT {_COLUMNS} FROM published WHERE (?1 IS NULL OR owner = ?1) AND {_NOT_HIDDEN} ORDER BY published_at DESC", (owner,)
            )
            return [_read(row) for row in rows]

        return await asyncio.to_thread(self._store.read, look)

    async def withdraw(self, token: str, owner: str | None = None) -> None:
        """owner: whose it must be; None for whoever may withdraw all. Raises Failure("publish.unknown")."""

        def remove(connection: sqlite3.Connection) -> int:
            return connection.execute("DELETE FROM published WHERE token = ?1 AND (?2 IS NULL OR owner = ?2)", (token, owner)).rowcount

        if not await asyncio.to_thread(self._store.change, remove):
            raise Failure("publish.unknown")

    async def withdraw_all(self, owner: str | None, kind: Kind, subject: str) -> None:
        """Every page of one subject, which is about to be deleted. owner: None for a subject that belongs to all operators."""

        def remove(connection: sqlite3.Connection) -> None:
            connection.execute(
                "DELETE FROM published WHERE (?1 IS NULL OR owner = ?1) AND kind = ?2 AND subject = ?3", (owner, kind, subject)
            )

        await asyncio.to_thread(self._store.change, remove)


def _read(row: tuple[str, str, Kind, str, str, str, int]) -> Publication:
    token, owner, kind, subject, title, published_at, size = row
    return Publication(token, owner, kind, subject, title, datetime.fromisoformat(published_at), size)
