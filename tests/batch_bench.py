"""The batches of the page on a scripted engine: what tests of the queue and of files share."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

from kimi_demo.batch_drafts import Drafts
from kimi_demo.batch_engines import BatchEngines, Counting
from kimi_demo.batch_queue import Asked, Batches
from kimi_demo.batches.engines import RowEngine
from kimi_demo.batches.shelf import EngineName, Entry, Shelf
from kimi_demo.dialect.conversation import Message
from kimi_demo.dialect.events import Phase
from kimi_demo.dialect.failure import Failure
from kimi_demo.dialect.sampling import Sampling
from kimi_demo.engines.accelerators import Lease
from kimi_demo.engines.offline import Emit
from kimi_demo.settings import Settings
from tests.batches.scripted_engine import ScriptedEngine

ME, OTHER = "a" * 32, "b" * 32
ASKED = Asked("guide_thinking", Sampling(max_tokens=64), True, "server")


class Words:
    """Counts words as tokens."""

    def render(self, messages: list[Message], *, thinking: bool) -> str:
        return f"<{messages[-1]['content']}>"

    def count(self, prompt: str) -> int:
        return len(prompt.split())


class ScriptedEngines(BatchEngines):
    """`engine` for every batch; opening fails with `failure` while there is one."""

    def __init__(self, settings: Settings, engine: ScriptedEngine) -> None:
        super().__init__(settings, cast(Any, None), cast(Any, None), cast(Any, None), Lease(shared=True))
        self.engine = engine
        self.failure: Failure | None = None
        self.opened = 0
        self.counter = Counting()

    def require(self, name: EngineName) -> None:
        pass

    @asynccontextmanager
    async def open(self, name: EngineName, on_event: Emit, *, takeover: bool) -> AsyncIterator[RowEngine]:
        self.opened += 1
        on_event(Phase("batch.checking"))
        if self.failure is not None:
            raise self.failure
        yield self.engine

    async def counting(self, name: EngineName) -> Counting:
        return self.counter


class Bench:
    def __init__(self, folder: Path, engine: ScriptedEngine | None = None, **settings: Any) -> None:
        self.settings = Settings(_env_file=None, data=folder, **settings)
        self.engine = engine or ScriptedEngine()
        self.engines = ScriptedEngines(self.settings, self.engine)
        self.shelf = Shelf(folder / "batches")
        self.shelf.recover()
        self.drafts = Drafts(self.shelf, self.engines, self.settings)
        self.batches = Batches(self.shelf, self.drafts, self.engines)

    async def start(self, text: str, owner: str = ME, asked: Asked = ASKED) -> Entry:
        draft = await self.drafts.typed(owner, text)
        try:
            return await self.batches.start(owner, draft, asked)
        finally:
            self.drafts.discard(draft)

    async def until(self, entry: Entry, state: str | Callable[[Entry], bool]) -> Entry:
        """The batch once it is in that state."""
        async with asyncio.timeout(60):
            while True:
                now = await self.batches.get(entry.owner, entry.id)
                if now.state == state if isinstance(state, str) else state(now):
                    return now
                await asyncio.sleep(0.01)

    async def rows(self, entry: Entry) -> list[tuple[int, str]]:
        return [(one.index, one.answer) for one in (await self.batches.table(entry)).in_file_order()]


def numbered(count: int, words: str = "prompt") -> str:
    return "\n".join(f"{words} {number}" for number in range(count))
