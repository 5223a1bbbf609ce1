"""The README's screenshots, taken from the running demo with the rehearsal model on real vLLM.

python scripts/shots.py [--folder docs/images]     (`make shots`)
"""

import argparse
import asyncio
import os
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from playwright.async_api import async_playwright, expect  # noqa: E402

from scripts.installer.browser import system_chromium  # noqa: E402
from tests.browser.page import ENGINE_MS, DemoPage  # noqa: E402
from tests.conftest import CHROMIUM_FLAGS  # noqa: E402
from tests.demo import running  # noqa: E402

WIDE = {"width": 1280, "height": 800}
PHONE = {"width": 390, "height": 800}


async def chat(page: DemoPage) -> None:
    """A finished turn, its thought opened."""
    await page.ask("chat", "Why is the sky blue?")
    await expect(page.run("chat")).to_have_attribute("data-whole", "1", timeout=ENGINE_MS)
    await page.run("chat").locator("summary").first.click()


async def tools(page: DemoPage) -> None:
    await page.tab("Function calling")
    await page.ask("tools", "用中文回答：strawberry中有多少个r?")
    await expect(page.run("tools")).to_have_attribute("data-whole", "1", timeout=ENGINE_MS)
    await page.at("#tools .live").evaluate("box => { box.scrollTop = 0 }")


async def batch(page: DemoPage) -> None:
    await page.tab("Batch")
    await page.at("#batch-prompts textarea").fill("给我一个关于大模型的简短介绍。\nWhat is a large language model?\nWhy is the sky blue?")
    await page.at("#batch-max-tokens input").fill("512")
    await page.at("#batch-run").click()
    await expect(page.run("batch")).to_have_attribute("data-whole", "1", timeout=ENGINE_MS)
    await expect(page.at("#batch-results tbody tr[data-state=done]")).to_have_count(3)
    await page.at("article.batch").evaluate("box => box.scrollIntoView()")


async def server(page: DemoPage) -> None:
    """What the server is and can do, as the operator sees it."""
    await page.tab("Server")
    await expect(page.at("#srv-head .srv-state")).to_have_text("ready", timeout=ENGINE_MS)
    await expect(page.at('[data-capability="reasoning"][data-can="yes"]')).to_be_visible(timeout=ENGINE_MS)


async def qa(page: DemoPage) -> None:
    """A finished run of the shortest suite; the next picture shows the same run."""
    await page.tab("QA")
    await expect(page.at("#qa-suites .qa-suite").first).to_be_visible()
    if not await page.at("[data-qa-open]").count():
        await page.at('#qa-suites input[value="smoke"]').check()
        await page.at("#qa-start").click()
    await expect(page.at('#qa-head .qa-state[data-run-state="done"]')).to_be_visible(timeout=ENGINE_MS)
    await page.at("#tabs").evaluate("box => box.scrollIntoView()")


async def take(address: str, folder: Path) -> None:
    """Every tab wide, dark and on a phone, into `folder`. address: the operator's."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=system_chromium(), args=CHROMIUM_FLAGS)
        for name, show in {"chat": chat, "tools": tools, "batch": batch, "server": server, "qa": qa}.items():
            for suffix, view, scheme in (("", WIDE, "light"), ("-dark", WIDE, "dark"), ("-phone", PHONE, "light")):
                page = await DemoPage.open(browser, address, viewport=view, color_scheme=scheme)
                await show(page)
                await page.page.mouse.move(0, 0)
                await page.page.screenshot(path=folder / f"{name}{suffix}.png", animations="disabled")
                await page.close()
                print(folder / f"{name}{suffix}.png")
        await browser.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=ROOT / "docs" / "images")
    folder: Path = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    built = Path(os.environ.get("KIMI_DEMO_DATA") or ROOT / "data").resolve() / "rehearsal"
    with tempfile.TemporaryDirectory() as data:
        if built.is_dir():
            (Path(data) / "rehearsal").symlink_to(built)
        with running(Path(data)) as demo:
            asyncio.run(take(demo.operator, folder))


if __name__ == "__main__":
    main()
