"""The browser's main thread per token, at the beginning of a thought, late in a very long one, and below many messages."""

import asyncio
import secrets
from dataclasses import dataclass

from playwright.async_api import Page

from scripts.bench.figure import Figure, measured
from scripts.bench.stage import Stage
from scripts.bench.tab import Tab, ask, demo_tab, tab_below
from scripts.bench.visitor import question

_TOKENS_SHOWN = """() => {
  const text = [...document.querySelectorAll("#chat .thought-text .segment")].at(-1)?.textContent ?? "";
  return Number([...text.matchAll(/w(\\d+) /g)].at(-1)?.[1] ?? 0);
}"""
"""The tokens are numbered; the last one may be half there."""


_PATIENCE_S = 120.0


@dataclass(frozen=True)
class Window:
    """Main-thread seconds for so many tokens."""

    tokens: int
    spent_s: float

    @property
    def ms_per_token(self) -> float:
        return 1000 * self.spent_s / self.tokens


async def _until(page: Page, tokens: int, rate: int) -> int:
    """Tokens shown, once at least `tokens` are. Sleeps about as long as they take, since looking costs the browser time.

    Raises TimeoutError.
    """
    async with asyncio.timeout(_PATIENCE_S + tokens / rate):
        while True:
            shown = int(await page.evaluate(_TOKENS_SHOWN))
            if shown >= tokens:
                return shown
            await asyncio.sleep(max(0.05, (tokens - shown) / rate))


async def _windows(tab: Tab, stage: Stage, starts: tuple[int, ...]) -> list[Window]:
    sizes, found = stage.sizes, []
    await ask(tab.page, question(starts[-1] + 2 * sizes.window, sizes.length_rate))
    await tab.until_shown()
    for start in starts:
        early = await _until(tab.page, start, sizes.length_rate)
        before = await tab.busy_s()
        late = await _until(tab.page, early + sizes.window, sizes.length_rate)
        found.append(Window(late - early, await tab.busy_s() - before))
    return found


async def measure(stage: Stage) -> list[Figure]:
    sizes, address = stage.sizes, stage.demo.address
    starts = tuple(length - (0 if number == 0 else sizes.window) for number, length in enumerate(sizes.lengths))
    async with demo_tab(stage.browser, address) as tab:
        await tab.page.evaluate("id => window.kimi.show(id)", secrets.token_hex(16))
        long = await _windows(tab, stage, starts)
    async with tab_below(stage.browser, address, sizes.messages) as tab:
        below = (await _windows(tab, stage, starts[:1]))[0]
    first = long[0].ms_per_token
    raw = [
        {"from": start, "ms_per_token": window.ms_per_token, "tokens": window.tokens} for start, window in zip(starts, long, strict=True)
    ]
    return [
        measured("browser_1k", first, windows=raw, tokens_per_s=sizes.length_rate),
        measured("browser_10k", long[1].ms_per_token / first, ms_per_token=long[1].ms_per_token),
        measured("browser_50k", long[2].ms_per_token / first, ms_per_token=long[2].ms_per_token),
        measured("browser_100_messages", below.ms_per_token / first, ms_per_token=below.ms_per_token, messages=sizes.messages),
    ]
