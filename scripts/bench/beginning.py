"""How long the app takes to start: until its first byte, and until a browser that came at once takes text."""

import asyncio
import tempfile
import time
from pathlib import Path
from statistics import median

import httpx
from playwright.async_api import Browser

from scripts.bench.figure import Figure, measured
from scripts.bench.tab import ready
from scripts.bench.upstream import Upstream
from tests.ports import free_port
from tests.programs import running

_LIMIT_S = 120.0


async def _first_byte(address: str) -> None:
    async with httpx.AsyncClient() as client:
        async with asyncio.timeout(_LIMIT_S):
            while True:
                try:
                    await client.get(address, headers={"accept": "text/html"})
                    return
                except httpx.TransportError:
                    await asyncio.sleep(0.02)


async def once(browser: Browser, upstream: Upstream) -> tuple[float, float]:
    """(seconds to the first byte, seconds from there until the page takes text)."""
    address = f"http://127.0.0.1:{(port := free_port())}/"
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        flags = ("--port", str(port), "--data", folder, "--base-url", upstream.base_url)
        with running("app.py", *flags, cwd=Path(__file__).parents[2]):
            await _first_byte(address)
            answered = time.perf_counter()
            context = await browser.new_context()
            try:
                page = await context.new_page()
                await page.goto(address, wait_until="commit")
                await ready(page)
                return answered - began, time.perf_counter() - answered
            finally:
                await context.close()


async def measure(browser: Browser, upstream: Upstream, repeats: int) -> list[Figure]:
    found = [await once(browser, upstream) for _ in range(repeats)]
    starts, interactive = [one[0] for one in found], [one[1] for one in found]
    return [measured("start_s", median(starts), each=starts), measured("interactive_s", median(interactive), each=interactive)]
