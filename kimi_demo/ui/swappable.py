"""Stands on the port from the first moment: a page that says "starting", then the real application, then "shutting down"."""

import asyncio

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from kimi_demo.dialect.failure import Failure
from kimi_demo.ui.guard import HEALTH
from kimi_demo.ui.plain import refusal, starting_page


class Swappable:
    """An ASGI application whose inside comes later.

    Until `swap`, a browser gets the starting page and everything else (an API client's first call) waits; after `close`,
    open streams are ended and whoever comes is told so. /healthz says which of the first two it is.
    """

    def __init__(self) -> None:
        self._app: ASGIApp | None = None
        self._there = asyncio.Event()
        self._closed = False
        self._running: set[asyncio.Task[object]] = set()

    def swap(self, app: ASGIApp) -> None:
        """Pass every request on to `app` from now on."""
        self._app = app
        self._there.set()

    async def close(self) -> None:
        """Take no more requests, end those under way, and give them two seconds to clean up."""
        self._closed = True
        self._there.set()
        for task in self._running:
            task.cancel()
        if self._running:
            await asyncio.wait(self._running, timeout=2)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        task = asyncio.current_task()
        assert task is not None
        reply = _Reply(send)
        self._running.add(task)
        try:
            await self._answer(scope, receive, reply.send)
        except asyncio.CancelledError:
            if not self._closed:
                raise
            task.uncancel()
        finally:
            self._running.discard(task)
        if self._closed:
            await reply.end(scope, receive, _closing(Request(scope)))

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        early = None if self._closed else self._own_answer(Request(scope))
        if early is not None:
            await early(scope, receive, send)
            return
        await self._there.wait()
        if self._app is not None and not self._closed:
            await self._app(scope, receive, send)

    def _own_answer(self, request: Request) -> Response | None:
        """Health, and what can be said before the page is there."""
        if request.url.path == HEALTH:
            return JSONResponse({"status": "ready" if self._app else "starting"}, headers={"cache-control": "no-store"})
        if self._app is None and request.url.path == "/" and request.method in ("GET", "HEAD"):
            return starting_page(request)
        return None


class _Reply:
    """Knows how far an answer has come, so that one cut short by the end can be finished properly."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._started = False
        self._finished = False

    async def send(self, message: Message) -> None:
        self._started = True
        self._finished = message["type"] == "http.response.body" and not message.get("more_body", False)
        await self._send(message)

    async def end(self, scope: Scope, receive: Receive, instead: Response) -> None:
        if not self._started:
            await instead(scope, receive, self._send)
        elif not self._finished:
            await self._send({"type": "http.response.body", "body": b"", "more_body": False})


def _closing(request: Request) -> Response:
    return refusal(503, Failure("page.closing"), request)
