"""What a command without a page talks to: the server it was given, else the page's own, else one that it starts and stops itself."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Literal

from kimi_demo.dialect.events import Event, Phase
from kimi_demo.dialect.failure import Failure
from kimi_demo.engines.endpoint import Endpoint
from kimi_demo.engines.server_note import NotedServer, ServerNote
from kimi_demo.settings import Settings

_LOOK_S = 0.5
"""How often a page's server that is starting is looked for."""


@dataclass(frozen=True)
class Found:
    """whose: "given" by --base-url, the "page"'s (found through the data folder), or the command's "own", which ends with it.
    command: the server's command line where it is known; it never holds a key."""

    endpoint: Endpoint
    whose: Literal["given", "page", "own"]
    command: tuple[str, ...] = ()


@asynccontextmanager
async def command_endpoint(settings: Settings, on_event: Callable[[Event], None]) -> AsyncIterator[Found]:
    """The connection for one command; `on_event` gets the phases while a server of its own loads.

    With --model, the page's server is used only where it serves that model. Raises the Failures of `Endpoint.connect` and `Server.start`.
    """
    async with AsyncExitStack() as stack:
        noted = await _noted(settings, on_event) if settings.base_url is None else None
        page = await _page(noted, settings) if noted is not None else None
        if page is not None and noted is not None:
            stack.push_async_callback(page.aclose)
            yield Found(page, "page", noted.command)
            return
        yield await _own_or_given(settings, on_event, stack)


async def _noted(settings: Settings, on_event: Callable[[Event], None]) -> NotedServer | None:
    """Where the page's server is; waits for one that is still starting, since two would want the same GPUs."""
    note = ServerNote(settings.data)
    while note.is_starting():
        on_event(Phase("server.pages"))
        await asyncio.sleep(_LOOK_S)
    noted = note.read()
    return noted if noted is not None and noted.base_url else None


async def _page(noted: NotedServer, settings: Settings) -> Endpoint | None:
    """None where nothing answers there any more, or where it is not what was asked for."""
    try:
        endpoint = await Endpoint.connect(noted.base_url, noted.api_key, kind="vllm", connect_timeout_s=settings.connect_timeout_s)
    except Failure:
        return None
    if settings.model is not None and settings.model not in (endpoint.info.id, endpoint.info.root):
        await endpoint.aclose()
        return None
    return endpoint


async def _own_or_given(settings: Settings, on_event: Callable[[Event], None], stack: AsyncExitStack) -> Found:
    from kimi_demo.engines.accelerators import Lease
    from kimi_demo.engines.chat_engine import ChatEngine
    from kimi_demo.engines.guardian import Guardian
    from kimi_demo.engines.model_folder import ModelFolder

    guardian = Guardian()
    stack.callback(guardian.close)
    chat = ChatEngine(settings, ModelFolder(settings), Lease(shared=True), guardian)
    stack.push_async_callback(chat.stop)
    endpoint = await chat.ready(on_event)
    return Found(endpoint, "given" if chat.remote else "own", chat.command)
