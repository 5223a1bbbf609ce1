"""Several asynchronous streams read as one."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress
from typing import TypeVar

T = TypeVar("T")


async def merged(*streams: AsyncGenerator[T, None]) -> AsyncGenerator[T, None]:
    """What any of the streams brings, as it comes; ends when all have ended. Left early, all are closed."""
    waiting: dict[asyncio.Task[T], AsyncGenerator[T, None]] = {}

    async def following(stream: AsyncGenerator[T, None]) -> T:
        return await anext(stream)

    try:
        for stream in streams:
            waiting[asyncio.create_task(following(stream))] = stream
        while waiting:
            done, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                stream = waiting.pop(task)
                with suppress(StopAsyncIteration):
                    yield task.result()
                    waiting[asyncio.create_task(following(stream))] = stream
    finally:
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        for stream in streams:
            async with aclosing(stream):
                pass
