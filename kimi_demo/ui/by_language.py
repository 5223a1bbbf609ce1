"""One whole page for each language, over the same services.

So a sentence cannot come out in another language than the page around it, whoever makes it: Gradio's labels, its handlers and our routes
are all made from the texts of their own page.
"""

import contextlib
from collections.abc import AsyncIterator, Mapping

from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.requests import HTTPConnection
from starlette.types import Receive, Scope, Send

from kimi_demo.ui.languages import AtFirst, language_of


class ByLanguage:
    """pages: the whole application in each language. A request goes to the one that its visitor reads."""

    def __init__(self, pages: Mapping[str, FastAPI], at_first: AtFirst) -> None:
        self.pages = pages
        self._at_first = at_first
        self._life = Starlette(lifespan=lambda _: self.alive())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._life(scope, receive, send)
        else:
            await self.pages[language_of(HTTPConnection(scope), self._at_first)](scope, receive, send)

    @contextlib.asynccontextmanager
    async def alive(self) -> AsyncIterator[None]:
        """Start-up and shutdown of all of them: Gradio starts its queues there."""
        async with contextlib.AsyncExitStack() as stack:
            for page in self.pages.values():
                await stack.enter_async_context(page.router.lifespan_context(page))
            yield
