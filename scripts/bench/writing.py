"""One long thought written into a page, and what it cost the browser. The page is any: ours, a bare one, a peer's."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from scripts.bench.sizes import Sizes
from scripts.bench.tab import Tab
from scripts.bench.upstream import Upstream

_AFTER_THE_LAST_WORD = 3
"""Chunks that the scripted server sends, at the same pace, after the last word: the finish reason, the counts, the end mark."""


@dataclass(frozen=True)
class Cost:
    """Of one thought: main-thread ms per token, bytes per token, tokens/s from the press on; ms from the press to the first word, from
    the last word's sending to its being seen, of the longest time without new text and of the longest block."""

    thread_ms_per_token: float
    bytes_per_token: float
    tokens_per_s: float
    first_ms: float
    lag_ms: float
    freeze_ms: float
    longest_block_ms: float


async def write(tab: Tab, upstream: Upstream, sizes: Sizes, begin: Callable[[], Awaitable[None]]) -> Cost:
    """`begin` presses what makes the page ask for `sizes.floor_tokens` tokens at `sizes.floor_rate`."""
    known = len(await asyncio.to_thread(upstream.seen))
    await tab.forget()
    before, received = await tab.busy_s(), tab.received
    await begin()
    await tab.until_shown()
    over = await asyncio.to_thread(upstream.until_over, known + 1, 180.0)
    shown = await tab.until_done()
    spent = await tab.busy_s() - before
    assert over.ended_at is not None
    sent = over.ended_at - _AFTER_THE_LAST_WORD / sizes.floor_rate
    return Cost(
        thread_ms_per_token=1000 * spent / sizes.floor_tokens,
        bytes_per_token=(tab.received - received) / sizes.floor_tokens,
        tokens_per_s=sizes.floor_tokens / (shown.done - shown.pressed),
        first_ms=shown.first_ms,
        lag_ms=1000 * (shown.done - sent),
        freeze_ms=shown.longest_gap_ms,
        longest_block_ms=shown.longest_block_ms,
    )
