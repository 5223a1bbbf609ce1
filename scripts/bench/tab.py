"""A browser tab and its meters: the main thread's own processor time, when text appeared, and long blocks.

The meters are put into every page alike, ours, bare and peers, so that what they cost is in every figure.
"""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from playwright.async_api import Browser, Page, Route

from scripts.bench.visitor import Visitor, conversation

LAST_WORD = "Done."
"""What the scripted server says after a long thought; it must not stand in what is earlier in the page."""

_METERS = """
(() => {
  const box = __BOX__;
  const state = (window.bench = { shown: [], blocks: [], pressed: 0, done: 0 });
  const now = () => performance.timeOrigin + performance.now();
  let due = false;
  let last = false;
  const changed = (record) => {
    const element = record.target.nodeType === 1 ? record.target : record.target.parentElement;
    return element && element.closest(box);
  };
  new MutationObserver((records) => {
    const said = state.pressed ? records.filter(changed).map(({ target }) => target.data ?? target.textContent) : [];
    last = last || said.some((text) => text.includes(__LAST__));
    if (due || !said.some((text) => last || /w[0-9]/.test(text))) return;
    due = true;
    requestAnimationFrame(() => { due = false; state.shown.push(now()); if (last && !state.done) state.done = now(); });
  }).observe(document, { subtree: true, childList: true, characterData: true });
  new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) state.blocks.push([performance.timeOrigin + entry.startTime, entry.duration]);
  }).observe({ type: "longtask" });
  const press = () => { if (!state.pressed) state.pressed = now(); };
  document.addEventListener("keydown", (event) => { if (event.key === "Enter") press(); }, true);
  document.addEventListener("pointerdown", (event) => { if (event.target.closest("[id*=stop], #go")) press(); }, true);
})();
"""


@dataclass(frozen=True)
class Shown:
    """Moments (seconds since the epoch) at which new text was painted, the press that asked for it, when the last word stood there
    (0: not yet), and long blocks in ms."""

    pressed: float
    done: float
    moments: list[float]
    blocks_ms: list[float]

    @property
    def longest_gap_ms(self) -> float:
        return 1000 * max((late - early for early, late in zip(self._until_done, self._until_done[1:], strict=False)), default=0.0)

    @property
    def _until_done(self) -> list[float]:
        return [moment for moment in self.moments if not self.done or moment <= self.done]

    @property
    def first_ms(self) -> float:
        return 1000 * (self.moments[0] - self.pressed)

    @property
    def longest_block_ms(self) -> float:
        """0 below the browser's own threshold of 50 ms."""
        return max(self.blocks_ms, default=0.0)


class Tab:
    def __init__(self, page: Page, session: Any) -> None:
        self.page = page
        self._session = session
        self.received = 0

    async def meter(self) -> None:
        """Processor time of the main thread (`threadTicks`), which a busy machine does not lengthen; and bytes."""
        await self._session.send("Performance.enable", {"timeDomain": "threadTicks"})
        await self._session.send("Network.enable")
        self._session.on("Network.dataReceived", self._count)

    def _count(self, event: Mapping[str, Any]) -> None:
        self.received += int(event["dataLength"])

    async def busy_s(self) -> float:
        metrics = (await self._session.send("Performance.getMetrics"))["metrics"]
        return next(float(metric["value"]) for metric in metrics if metric["name"] == "TaskDuration")

    async def forget(self) -> None:
        """What is measured begins with the next press."""
        await self.page.evaluate("Object.assign(window.bench, { shown: [], blocks: [], pressed: 0, done: 0 })")

    async def shown(self) -> Shown:
        told = await self.page.evaluate("window.bench")
        moments = [moment / 1000 for moment in told["shown"]]
        pressed = told["pressed"] / 1000
        blocks = [duration for start, duration in told["blocks"] if start / 1000 >= pressed]
        return Shown(pressed, told["done"] / 1000, moments, blocks)

    async def until_done(self) -> Shown:
        """Once the last word has been painted."""
        await self.page.wait_for_function("window.bench.done", timeout=180_000, polling=50)
        return await self.shown()

    async def until_shown(self) -> Shown:
        """Once any word has been painted."""
        await self.page.wait_for_function("window.bench.shown.length", timeout=60_000, polling=20)
        return await self.shown()


@asynccontextmanager
async def opened(browser: Browser, box: str, cookies: Mapping[str, str] | None = None, address: str = "") -> AsyncIterator[Tab]:
    """A tab in a context of its own; `box`: a CSS selector of where text appears."""
    context = await browser.new_context()
    try:
        if cookies:
            await context.add_cookies([{"name": name, "value": value, "url": address} for name, value in cookies.items()])
        await context.add_init_script(_METERS.replace("__BOX__", json.dumps(box)).replace("__LAST__", json.dumps(LAST_WORD)))
        page = await context.new_page()
        tab = Tab(page, await context.new_cdp_session(page))
        await tab.meter()
        yield tab
    finally:
        await context.close()


_DEMO_BOX = "#chat .thought-text, #chat .answer"


@asynccontextmanager
async def demo_tab(browser: Browser, address: str, cookies: Mapping[str, str] | None = None) -> AsyncIterator[Tab]:
    """Our page, ready to be asked."""
    async with opened(browser, _DEMO_BOX, cookies, address) as tab:
        await tab.page.goto(address, wait_until="domcontentloaded")
        await ready(tab.page)
        yield tab


@asynccontextmanager
async def tab_below(browser: Browser, address: str, messages: int) -> AsyncIterator[Tab]:
    """Our page on a conversation that has so many messages before the browser comes, all of them shown."""
    async with Visitor(address) as visitor:
        await conversation(visitor, messages)
        cookies = visitor.cookies
    async with demo_tab(browser, address, cookies) as tab:
        shown = "count => document.querySelectorAll('#chat [data-whole]').length === count"
        await tab.page.wait_for_function(shown, arg=messages // 2, timeout=120_000)
        yield tab


async def ready(page: Page) -> None:
    """Until the page takes text (and remembers nothing any more that would overwrite it)."""
    await page.wait_for_selector('html[data-restored="1"]', timeout=120_000, state="attached")
    await page.wait_for_selector("#chat-input textarea", timeout=120_000)


async def ask(page: Page, text: str) -> None:
    field = page.locator("#chat-input textarea")
    await field.fill(text)
    await field.press("Enter")


async def serve_html(page: Page, address: str, html: str) -> None:
    """`html` at `address`, so that it shares its origin with the server that is there, without a server of its own."""

    async def fulfil(route: Route) -> None:
        await route.fulfill(body=html, content_type="text/html; charset=utf-8")

    await page.route(address, fulfil)
    await page.goto(address)
