"""`Conversations`: titles, leaves, system prompts and waiting messages of chats. Every look-up takes the owner."""

import asyncio
import json
import re
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from kimi_demo.dialect.failure import Failure
from kimi_demo.runs.conversation_rows import Fields
from kimi_demo.runs.registry import Registry

KIND = "chat"
UNDO_S = 600.0
"""Seconds for which a deleted conversation can be brought back; then it goes from the disk as well."""
MOST_TITLE_CHARS = 120
_ID = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True)
class Queued:
    """A message that waits until the reply before it is done. parameters: as in `Asked`."""

    id: str
    text: str
    parameters: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Conversation:
    """leaf: the run up to which it is shown and goes on from; None before the first (or when all of it was taken back)."""

    id: str
    owner: str
    title: str
    created_at: datetime
    updated_at: datetime
    deleted: bool = False
    leaf: str | None = None
    system: str = ""
    queue: tuple[Queued, ...] = ()


class Conversations:
    """The conversations of all people. Belongs to the event loop's thread."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._store = registry.store
        self.changes: Counter[str] = Counter()  # by conversation, since the start of the application

    async def find(self, conversation_id: str, owner: str) -> Conversation | None:
        """One's own conversation, deleted or not; None when there is none."""
        rows = await asyncio.to_thread(self._store.conversations, owner, id=conversation_id)
        return _read(*rows[0]) if rows else None

    async def get(self, conversation_id: str, owner: str) -> Conversation:
        """Raises Failure: conversations.unknown (also when it is another's), conversations.deleted."""
        found = await self.find(conversation_id, owner)
        if found is None:
            raise Failure("conversations.unknown")
        if found.deleted:
            raise Failure("conversations.deleted", title=found.title)
        return found

    async def open(self, conversation_id: str, owner: str) -> Conversation:
        """The conversation of an id that the browser made, begun now if it is new.

        Raises Failure: conversations.deleted; conversations.unknown for an id that is none or another's.
        """
        if not _ID.fullmatch(conversation_id):
            raise Failure("conversations.unknown")
        if await self.find(conversation_id, owner) is None:
            now = _now()
            self._store.change_conversation(conversation_id, owner=owner, created_at=now, updated_at=now)
        return await self.get(conversation_id, owner)  # still unknown: the id is another's

    async def latest(self, owner: str) -> Conversation | None:
        found = await self.list(owner, limit=1)
        return found[0] if found else None

    async def list(self, owner: str, *, search: str = "", limit: int | None = None) -> list[Conversation]:
        """Those that have begun and are not deleted, the latest first. search: what title or text must hold, whatever the case."""
        wanted = " ".join(search.split()) or None
        rows = await asyncio.to_thread(self._store.conversations, owner, search=wanted, limit=None if limit is None else str(limit))
        return [_read(*row) for row in rows]

    def grow(self, conversation: Conversation, leaf: str, *, title: str) -> None:
        """A new turn is its leaf. title: for a conversation that has none yet."""
        named: Fields = {} if conversation.title else {"title": shortened(title)}
        self._change(conversation, leaf=leaf, updated_at=_now(), **named)

    def turn_to(self, conversation: Conversation, leaf: str | None) -> None:
        self._change(conversation, leaf=leaf)

    def rename(self, conversation: Conversation, title: str) -> None:
        """Raises Failure: conversations.no_title."""
        if not title.strip():
            raise Failure("conversations.no_title")
        self._change(conversation, title=shortened(title, MOST_TITLE_CHARS))

    def instruct(self, conversation: Conversation, system: str) -> None:
        self._change(conversation, system=system)

    def wait_in_line(self, conversation: Conversation, queue: tuple[Queued, ...]) -> None:
        """The messages that wait from now on."""
        text = json.dumps([{"id": each.id, "text": each.text, "parameters": each.parameters} for each in queue])
        self._change(conversation, queue=text)

    def delete(self, conversation: Conversation) -> None:
        """Hides it; it is gone for good when UNDO_S have passed."""
        self._change(conversation, deleted_at=_now())

    def restore(self, conversation: Conversation) -> None:
        self._change(conversation, deleted_at=None)

    def _change(self, conversation: Conversation, **fields: str | None) -> None:
        self.changes[conversation.id] += 1
        created_at = conversation.created_at.isoformat()
        self._store.change_conversation(conversation.id, owner=conversation.owner, created_at=created_at, **fields)

    async def purge(self) -> None:
        """Removes from the disk what was deleted more than UNDO_S ago."""
        before = (datetime.now(UTC) - timedelta(seconds=UNDO_S)).isoformat()
        for conversation_id, owner in await asyncio.to_thread(self._store.deleted_conversations, before):
            for run in await self._registry.group(conversation_id, owner):
                await self._registry.delete(run.id, owner)
            await asyncio.to_thread(self._store.forget_conversation, conversation_id)


def shortened(text: str, limit: int = 60) -> str:
    """`text` on one line of at most `limit` characters."""
    line = " ".join(text.split())
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "…"


def _read(conversation_id: str, row: Fields) -> Conversation:
    return Conversation(
        id=conversation_id,
        owner=row["owner"] or "",
        title=row["title"] or "",
        created_at=datetime.fromisoformat(row["created_at"] or ""),
        updated_at=datetime.fromisoformat(row["updated_at"] or ""),
        deleted=row["deleted_at"] is not None,
        leaf=row["leaf"],
        system=row["system"] or "",
        queue=tuple(Queued(each["id"], each["text"], each["parameters"]) for each in json.loads(row["queue"] or "[]")),
    )


def _now() -> str:
    return datetime.now(UTC).isoformat()
