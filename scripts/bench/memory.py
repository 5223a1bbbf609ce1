"""Memory of the app: with many streams going on, and after many runs. Measured last: what was allocated is not always given back."""

import asyncio
import secrets
from contextlib import AsyncExitStack

from scripts.bench.figure import Figure, measured
from scripts.bench.stage import Stage, memory_mb
from scripts.bench.visitor import Visitor, question

_AT_ONCE = 16
_RUNS = 50
_SECONDS = 12


async def _with_streams(stage: Stage, count: int) -> float:
    """Megabytes in the middle of so many open streams, of at most `_RUNS` replies: the app takes no more than 64 at a time."""
    rate, seconds = (10, _SECONDS) if not stage.sizes.quick else (50, 2)
    async with AsyncExitStack() as stack:
        visitors = [await stack.enter_async_context(Visitor(stage.demo.address)) for _ in range(min(count, _RUNS))]
        chats = [secrets.token_hex(16) for _ in visitors]
        for visitor, chat in zip(visitors, chats, strict=True):
            await visitor.send(chat, question(rate * seconds, rate))
        watched = [number % len(visitors) for number in range(count)]
        following = asyncio.gather(*(visitors[number].follow(chats[number]) for number in watched))
        await asyncio.sleep(seconds / 2)
        found = memory_mb(stage.app)
        await following
        return found


async def _after_runs(stage: Stage, count: int) -> float:
    """Megabytes after so many more replies, each in a conversation of its own."""
    waiting = iter(range(count))

    async def some() -> None:
        async with Visitor(stage.demo.address) as visitor:
            for _ in waiting:
                chat = secrets.token_hex(16)
                await visitor.send(chat, question(5, None))
                await visitor.follow(chat)

    await asyncio.gather(*(some() for _ in range(min(_AT_ONCE, count))))
    return memory_mb(stage.app)


async def measure(stage: Stage) -> list[Figure]:
    sizes = stage.sizes
    one, many = [await _with_streams(stage, count) for count in sizes.memory_streams]
    few, all_ = [await _after_runs(stage, count) for count in sizes.memory_runs]
    return [
        measured(
            "memory_200_streams_mb",
            many,
            streams=sizes.memory_streams,
            mb=[one, many],
            mb_per_stream=(many - one) / sizes.memory_streams[1],
        ),
        measured("memory_10k_runs_mb", all_, runs=sizes.memory_runs, mb=[few, all_], growth=all_ / few),
    ]
