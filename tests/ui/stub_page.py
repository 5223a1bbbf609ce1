"""A program for test_serve.py: the `ui` command with a small page of its own instead of Gradio's. One word on stdin at a time drives it.

It waits for a line before the page is built ("raise" fails instead), and prints what happens to it.
"""

import asyncio
import contextlib
import os
import sys
from collections.abc import AsyncIterator
from importlib import import_module

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from kimi_demo import cli
from kimi_demo.dialect.failure import Failure
from kimi_demo.settings import Settings
from kimi_demo.ui import command
from kimi_demo.ui.access import Access


def say(text: str) -> None:
    print(text, flush=True)


class StubPage:
    def __init__(self) -> None:
        self.asgi = Starlette(routes=[Route("/", self.page), Route("/kimi/stream", self.stream)], lifespan=self.lifespan)

    @contextlib.asynccontextmanager
    async def lifespan(self, app: Starlette) -> AsyncIterator[None]:
        say("alive")
        yield
        say("lifespan ended")

    async def page(self, request: Request) -> Response:
        return PlainTextResponse("the page")

    async def stream(self, request: Request) -> Response:
        async def chunks() -> AsyncIterator[bytes]:
            try:
                yield b"first"
                await asyncio.Event().wait()
            finally:
                say("stream ended")

        return StreamingResponse(chunks(), media_type="text/event-stream")

    async def aclose(self) -> None:
        say("closing")
        if "hang" in await line():
            await asyncio.Event().wait()


async def line() -> str:
    loop = asyncio.get_running_loop()
    heard: asyncio.Future[str] = loop.create_future()

    def read() -> None:
        loop.remove_reader(sys.stdin)
        heard.set_result(sys.stdin.readline())

    loop.add_reader(sys.stdin, read)
    try:
        return await heard
    finally:
        loop.remove_reader(sys.stdin)


async def build(settings: Settings, access: Access) -> StubPage:
    if "raise" in await line():
        raise Failure("access.operator_only")
    if "STUB_TUNNEL" in os.environ:  # a tunnel program of the test's own lies where Gradio looks for it
        tunneling = await asyncio.to_thread(import_module, "gradio.tunneling")
        tunneling.CHECKSUMS.clear()
    return StubPage()


if __name__ == "__main__":
    start = command.start
    command.start = lambda settings, build=build: start(settings, build)
    sys.exit(cli.main(prog="stub"))
