"""Networks that fail: one that forgets (open connections carry nothing any more, and nobody is told), one that is away for a while."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

CHUNK = 65_536


class Lossy:
    """A TCP proxy in front of `address` (http://host:port)."""

    def __init__(self, address: str) -> None:
        self._to = urlsplit(address)
        self._lost: asyncio.Event = asyncio.Event()
        self._copying: set[asyncio.Task[None]] = set()
        self.address = ""
        self._down = False
        self._open: set[asyncio.StreamWriter] = set()

    def forget(self) -> None:
        """All connections of this moment are dead from now on, without a word to either end."""
        self._lost.set()
        self._lost = asyncio.Event()

    def cut(self) -> None:
        """Ends all connections, and any new one at once, until `mend`."""
        self._down = True
        for writer in self._open:
            writer.transport.abort()
        self._open.clear()

    def mend(self) -> None:
        self._down = False

    async def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._down:
            writer.transport.abort()
            return
        lost = self._lost
        there_reader, there_writer = await asyncio.open_connection(self._to.hostname, self._to.port)
        self._open |= {writer, there_writer}
        for source, target in ((reader, there_writer), (there_reader, writer)):
            task = asyncio.create_task(_copy(source, target, lost))
            self._copying.add(task)
            task.add_done_callback(self._copying.discard)

    async def aclose(self) -> None:
        for task in self._copying:
            task.cancel()
        await asyncio.gather(*self._copying, return_exceptions=True)


async def _copy(source: asyncio.StreamReader, target: asyncio.StreamWriter, lost: asyncio.Event) -> None:
    losing = asyncio.create_task(lost.wait())
    try:
        while True:
            reading = asyncio.create_task(source.read(CHUNK))
            await asyncio.wait((reading, losing), return_when=asyncio.FIRST_COMPLETED)
            if lost.is_set():
                reading.cancel()
                await asyncio.Event().wait()  # neither closed nor read
            data = reading.result()
            if not data:
                target.close()
                return
            target.write(data)
            await target.drain()
    except OSError:
        target.close()
    finally:
        losing.cancel()


@asynccontextmanager
async def lossy(address: str) -> AsyncIterator[Lossy]:
    proxy = Lossy(address)
    server = await asyncio.start_server(proxy.accept, "127.0.0.1", 0)
    proxy.address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield proxy
    finally:
        server.close()
        await proxy.aclose()
