"""What a batch of the page runs on: the in-process engine or the chat server; and who counts its tokens beforehand."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from kimi_demo.batches.engines import OfflineRows, RowEngine, ServerRows
from kimi_demo.batches.preview import Renderer, TokenizerRenderer
from kimi_demo.batches.shelf import EngineName
from kimi_demo.dialect.conversation import ChatRequest, Message
from kimi_demo.dialect.failure import Failure
from kimi_demo.dialect.sampling import Sampling
from kimi_demo.engines.accelerators import Holder, Lease
from kimi_demo.engines.availability import find_vllm, require_vllm
from kimi_demo.engines.chat_engine import ChatEngine
from kimi_demo.engines.endpoint import Endpoint
from kimi_demo.engines.model_folder import ModelFolder
from kimi_demo.engines.offline import Emit, OfflineEngine
from kimi_demo.settings import Settings

T = TypeVar("T")

_HOLDS: dict[EngineName, Holder] = {"offline": "batch", "server": "chat"}


@dataclass(frozen=True)
class Counting:
    """renderer: None where nobody can count, and `why` says so where that is worth a word. limit: tokens of the context, if known."""

    renderer: Renderer | None = None
    limit: int | None = None
    why: Failure | None = None


class BatchEngines:
    """Belongs to the event loop's thread."""

    def __init__(self, settings: Settings, folder: ModelFolder, offline: OfflineEngine, chat: ChatEngine, lease: Lease) -> None:
        self.settings = settings
        self.offline = offline
        self.chat = chat
        self.lease = lease
        self._folder = folder
        self._tokenizer: TokenizerRenderer | None = None
        self._loading = asyncio.Lock()

    @property
    def default(self) -> EngineName:
        return "server" if self.settings.base_url is not None or find_vllm() is None else "offline"

    def stops(self, name: EngineName) -> Holder | None:
        """Who would have to give up the GPUs for it now."""
        if self.lease.shared or (name == "server" and self.chat.remote):
            return None
        return next((holder for holder in self.lease.holders if holder != _HOLDS[name]), None)

    def require(self, name: EngineName) -> None:
        """Raises Failure("batch.vllm_missing") where the engine can never run."""
        if name == "offline":
            require_vllm()

    @asynccontextmanager
    async def open(self, name: EngineName, on_event: Emit, *, takeover: bool) -> AsyncIterator[RowEngine]:
        """The engine, loaded or connected; its phases go to on_event meanwhile.

        takeover: whether the other engine may be stopped for it where both want the same GPUs.
        Raises Failure: accelerators.held, those of `OfflineEngine.load`, and those of `ChatEngine.ready`.
        """
        if name == "server":
            if takeover and self.stops("server") == "batch":
                await self.unload()
            yield ServerRows(await self.chat.ready(on_event))
            return
        require_vllm()
        path = await self._folder.path(on_event)
        await self.lease.acquire("batch", self.offline.unload, takeover=takeover)
        try:
            await self.offline.load(on_event)
        except Failure:
            if self.offline.state not in ("loading", "ready"):  # it has nothing on the GPUs: do not keep the chat from them
                self.lease.release("batch")
            raise
        async with self.offline.feed() as feed:
            # The stand-in's folder is named after its contents; where the data folder lies is no matter.
            yield OfflineRows(feed, Path(path).name if self.settings.rehearsal else path)

    async def unload(self) -> None:
        """Frees what the in-process engine holds; batches in it stop there and can go on later."""
        await self.offline.unload()
        self.lease.release("batch")

    async def counting(self, name: EngineName) -> Counting:
        """Who renders and counts prompts as this engine would, without starting it."""
        if name == "server" and self.chat.remote:
            endpoint = self.chat.endpoint
            if endpoint is None:
                return Counting()
            return Counting(EndpointRenderer(endpoint, asyncio.get_running_loop()), endpoint.info.max_model_len)
        async with self._loading:
            try:
                if self._tokenizer is None:
                    path = await self._folder.path(lambda event: None)
                    named = not self.settings.rehearsal
                    self._tokenizer = await asyncio.to_thread(lambda: TokenizerRenderer(path, named=named))
            except Failure as failure:
                return Counting(why=failure)
        return Counting(self._tokenizer, self.settings.max_model_len)


class EndpointRenderer:
    """A server's own template and tokenizer, asked from another thread than the loop's. Raises LookupError where it has none."""

    def __init__(self, endpoint: Endpoint, loop: asyncio.AbstractEventLoop) -> None:
        self._endpoint = endpoint
        self._loop = loop

    def render(self, messages: list[Message], *, thinking: bool) -> str:
        found = self._wait(self._endpoint.render(ChatRequest(messages, Sampling(), thinking=thinking)))
        if found is None:
            raise LookupError("the server does not render prompts")
        return found

    def count(self, prompt: str) -> int:
        found = self._wait(self._endpoint.tokens_of(prompt))
        if found is None:
            raise LookupError("the server does not count tokens")
        return found.count

    def _wait(self, question: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(question, self._loop).result(timeout=30)
