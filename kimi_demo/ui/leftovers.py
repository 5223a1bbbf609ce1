"""What viewers of a public page leave behind: all of it deleted when one of them asks, or when it has become old."""

import asyncio
import shutil
import sqlite3
from datetime import datetime

from kimi_demo.batch_queue import Batches
from kimi_demo.owners import is_viewer
from kimi_demo.runs.registry import Registry
from kimi_demo.tools.bench import Benches
from kimi_demo.ui.attachments import Attachments

_VIEWERS = "substr(owner, 1, 1) IN ('v', 'w')"


class Leftovers:
    """Belongs to the event loop's thread."""

    def __init__(self, registry: Registry, batches: Batches, attachments: Attachments, benches: Benches) -> None:
        self._registry, self._batches, self._attachments, self._benches = registry, batches, attachments, benches

    async def forget(self, owner: str) -> None:
        """Everything that this viewer has here; what is going is stopped first. Raises Failure of the store."""
        assert is_viewer(owner)
        for entry in await self._batches.all_of(owner):
            await self._batches.delete(owner, entry.id)
        await self._batches.drafts.remove(owner)
        for run in self._registry.active(owner):
            run.cancel()
        for run_id in await asyncio.to_thread(self._registry.store.ids, owner):
            await self._registry.delete(run_id, owner)
        for image in self._attachments.chosen(owner):
            await self._attachments.remove(owner, image)
        await asyncio.to_thread(self._registry.store.change, lambda database: _forget_conversations(database, owner))
        await asyncio.to_thread(self._benches.remove, owner)
        await asyncio.to_thread(shutil.rmtree, self._attachments.images.folder / owner, ignore_errors=True)

    async def tidy(self, before: datetime) -> None:
        """What no viewer has touched since `before`: conversations by their latest turn, everything else by its beginning."""
        old, conversations = await asyncio.to_thread(self._registry.store.read, lambda database: _old(database, before.isoformat()))
        for run_id, owner in old:
            await self._registry.delete(run_id, owner)
        for conversation in conversations:
            await asyncio.to_thread(self._registry.store.forget_conversation, conversation)
        for entry in await asyncio.to_thread(self._batches.shelf.older_than, before):
            if is_viewer(entry.owner):
                await self._batches.delete(entry.owner, entry.id)


def _forget_conversations(database: sqlite3.Connection, owner: str) -> None:
    database.execute("DELETE FROM conversations WHERE owner = ?", (owner,))


def _old(database: sqlite3.Connection, before: str) -> tuple[list[tuple[str, str]], list[str]]:
    """((id, owner) of runs, ids of conversations)."""
    conversations = [
        conversation for (conversation,) in database.execute(f"SELECT id FROM conversations WHERE {_VIEWERS} AND updated_at < ?", (before,))
    ]
    runs = database.execute(
        f'SELECT id, owner FROM runs WHERE {_VIEWERS} AND created_at < ?1 AND (kind <> \'chat\' OR "group" IS NULL OR "group" NOT IN '
        "(SELECT id FROM conversations WHERE updated_at >= ?1))",
        (before,),
    ).fetchall()
    return [(str(run), str(owner)) for run, owner in runs], conversations
