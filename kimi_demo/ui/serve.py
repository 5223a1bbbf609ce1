"""From a socket to a page and back: listen, answer at once, build the page, keep it until a signal, take it down in order."""

import asyncio
import contextlib
import os
import signal
import socket
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from typing import Any, Protocol, TypeVar
from urllib.parse import urlencode

import uvicorn
from starlette.types import ASGIApp
from uvicorn.lifespan.on import LifespanOn

from kimi_demo.dialect.failure import Failure
from kimi_demo.engines.guardian import Guardian
from kimi_demo.settings import Settings
from kimi_demo.ui.access import Access
from kimi_demo.ui.guard import Guard
from kimi_demo.ui.share import close_share_links, open_share_link, tunnel_processes
from kimi_demo.ui.sign_in import INVITATION
from kimi_demo.ui.swappable import Swappable
from kimi_demo.ui.texts import texts

T = TypeVar("T")


class Page(Protocol):
    """What `build` gives: the ASGI application, and how to stop its runs and engines."""

    @property
    def asgi(self) -> ASGIApp: ...

    async def aclose(self) -> None: ...


Build = Callable[[Settings, Access], Awaitable[Page]]


async def serve(settings: Settings, sock: socket.socket, build: Build) -> None:
    """Serve the page on `sock` until SIGINT, SIGTERM or SIGHUP. Raises what `build` raises.

    The address is printed, and answers, before `build` begins: building imports Gradio, which takes seconds.
    """
    access = Access.of(settings, sock.getsockname()[1])
    holder = Swappable()
    stop = _stop_on_signals()
    guardian = Guardian()
    async with _listening(Guard(holder, access), sock, stop):
        _say("cli.open", address=access.operator_address(settings.host))
        _say("cli.operator")
        if settings.invite_hours is not None and access.sessions is not None:
            access.invitation = access.sessions.invitation(time.time() + settings.invite_hours * 3600)
            address = access.address(settings.host, {INVITATION: access.invitation})
            _say("cli.invitation", address=address, hours=f"{settings.invite_hours:g}")
        try:
            async with contextlib.AsyncExitStack() as page:
                if await _unless(stop, _open(settings, access, build, holder, page)) and settings.share:
                    await _unless(stop, _share(settings, access, guardian))
                await stop.wait()
                await holder.close()
        finally:
            await holder.close()
            close_share_links()
            await asyncio.to_thread(guardian.close)


async def _open(settings: Settings, access: Access, build: Build, holder: Swappable, page: contextlib.AsyncExitStack) -> bool:
    built = await build(settings, access)
    page.push_async_callback(built.aclose)
    await page.enter_async_context(_alive(built.asgi))
    holder.swap(built.asgi)
    return True


async def _share(settings: Settings, access: Access, guardian: Guardian) -> None:
    """Put up the public link. Where that fails, the page says so and goes on without."""
    _say("cli.link_wait")
    try:
        link = await _in_daemon_thread(lambda: open_share_link(settings, access.port))
    except Failure as failure:
        access.share_failure = failure
        print(texts().sentence(failure), flush=True)
        return
    for pid in tunnel_processes():
        guardian.watch(pid)  # killed without a chance to clean up, we would leave a public link to a free port behind
    access.hosts.allow(link.split("://")[-1].strip("/"))
    access.share_link = link
    _say("cli.link", address=link if access.invitation is None else f"{link.rstrip('/')}/?{urlencode({INVITATION: access.invitation})}")


class _Server(uvicorn.Server):
    """uvicorn, with the signals left to us: it would wait for open streams before anything else is stopped."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


@contextlib.asynccontextmanager
async def _listening(app: ASGIApp, sock: socket.socket, stop: asyncio.Event) -> AsyncIterator[None]:
    # proxy_headers: whom to believe is for the guard to say; uvicorn would believe everybody on this machine.
    config = uvicorn.Config(
        app, lifespan="off", ws="none", log_level="warning", access_log=False, timeout_graceful_shutdown=3, proxy_headers=False
    )
    server = _Server(config)
    serving = asyncio.create_task(server.serve(sockets=[sock]))
    serving.add_done_callback(lambda _: stop.set())
    try:
        yield
    finally:
        server.should_exit = True
        await serving


@contextlib.asynccontextmanager
async def _alive(app: ASGIApp) -> AsyncIterator[None]:
    """The application's own start-up and shutdown (ASGI lifespan): Gradio starts its queue there."""
    lifespan = LifespanOn(uvicorn.Config(app, lifespan="auto", log_config=None))
    await lifespan.startup()
    if lifespan.should_exit:
        raise RuntimeError("the page's own start-up failed")
    try:
        yield
    finally:
        await lifespan.shutdown()


def _stop_on_signals() -> asyncio.Event:
    """An event set by the first signal; Ctrl-C after that ends the process at once (its engines die with it)."""
    stop = asyncio.Event()

    def on_signal(number: signal.Signals) -> None:
        if not stop.is_set():
            stop.set()
            _say("cli.stopping")
        elif number == signal.SIGINT:
            close_share_links()
            os._exit(130)

    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:  # nohup: the terminal's end is not ours
            loop.add_signal_handler(number, on_signal, number)
    return stop


async def _unless(stop: asyncio.Event, work: Coroutine[Any, Any, T]) -> T | None:
    """The result of `work`, or None when `stop` comes first; `work` is cancelled then."""
    task, stopped = asyncio.create_task(work), asyncio.create_task(stop.wait())
    try:
        await asyncio.wait({task, stopped}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
        task.cancel()
        await asyncio.wait({task})
        return None
    finally:
        stopped.cancel()


async def _in_daemon_thread(work: Callable[[], T]) -> T:
    """Run `work` on a thread that the end of the program does not wait for, as it would for asyncio.to_thread."""
    loop = asyncio.get_running_loop()
    result: asyncio.Future[T] = loop.create_future()

    def settle(set_it: Callable[[Any], None], value: object) -> None:
        if not result.done():
            set_it(value)

    def target() -> None:
        try:
            value = work()
        except Exception as error:
            outcome: tuple[Callable[[Any], None], object] = (result.set_exception, error)
        else:
            outcome = (result.set_result, value)
        with contextlib.suppress(RuntimeError):  # the loop has ended meanwhile
            loop.call_soon_threadsafe(settle, *outcome)

    threading.Thread(target=target, name="share-link", daemon=True).start()
    return await result


def _say(key: str, **params: object) -> None:
    print(texts().say(key, **params), flush=True)
