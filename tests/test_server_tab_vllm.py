"""The Server tab on real vLLM: launched with options, chatted with, its log joined to the run, halted, its engine killed, restarted."""

import os
import re
from collections.abc import AsyncIterator

import psutil
import pytest
import pytest_asyncio
from playwright.async_api import Browser, expect

from tests.browser.page import ENGINE_MS, DemoPage
from tests.demo import Demo

pytestmark = pytest.mark.asyncio(loop_scope="session")

START_MS = 900_000
"""A start takes half a minute on two idle cores, and was seen to take five on busy ones."""


@pytest_asyncio.fixture(loop_scope="session")
async def page(demo: Demo, browser: Browser) -> AsyncIterator[DemoPage]:
    found = await DemoPage.open(browser, demo.operator)
    yield found
    await found.close()


async def state(page: DemoPage, name: str) -> None:
    await expect(page.at("#srv-head .srv-state")).to_have_text(name, timeout=START_MS)


async def view(page: DemoPage, name: str) -> None:
    await page.at(f'[data-srv-view="{name}"]').click()


async def engine_core(page: DemoPage) -> psutil.Process:
    facts = await page.at(".srv-facts").inner_text()
    found = re.search(r"process (\d+)", facts)
    assert found, facts
    return next(each for each in psutil.Process(int(found[1])).children(recursive=True) if "EngineCore" in each.name())


async def test_from_launch_to_chat_to_a_killed_engine_and_back(page: DemoPage, demo: Demo) -> None:
    await page.tab("Server")
    await state(page, "ready")
    await page.at('#srv-head [data-act="server_stop"]').click()
    await state(page, "off")

    # Launch, with an option, and watch the phases.
    await view(page, "launch")
    ranks = page.at('#srv-form [name="tensor_parallel_size"]')
    await ranks.fill("2")
    await expect(page.at("#srv-warned .notice")).to_contain_text("This will not start here")
    await ranks.fill("1")
    await page.at('#srv-form [name="log_requests"]').check()
    await expect(page.at("#srv-warned")).to_be_empty()
    await expect(page.at("#srv-line-shell")).to_contain_text("--enable-log-requests")
    await page.at("[data-srv-start]").click()
    await expect(page.at('.srv-steps [data-state="running"]')).to_be_visible()
    await expect(page.at("#srv-left")).to_contain_text("last start took")
    await view(page, "log")
    await expect(page.at("#srv-log")).to_contain_text("enable_log_requests", timeout=START_MS)
    await state(page, "ready")

    # Chat; its lines in the log carry the question's name, and searching for it leaves only them.
    await page.tab("Chat")
    await page.ask("chat", "What is the capital of France?")
    await page.idle("chat")
    await page.tab("Server")
    chip = page.at(".srv-run").first
    await expect(chip).to_have_text("What is the capital of France?")
    await chip.click()
    rows = page.at("#srv-log .srv-row")
    await expect(rows.first).to_contain_text("request")
    assert all("chatcmpl-" in text for text in await rows.all_inner_texts())
    async with page.page.expect_download() as downloading:
        await page.at('a[href="kimi/server/log"]').click()
    log = (await (await downloading.value).path()).read_text(encoding="utf-8")
    assert "Starting vLLM server" in log and "Added request chatcmpl-" in log and "GET /metrics" not in log

    await view(page, "metrics")
    await expect(page.at('[data-figure="finished"] dd')).not_to_have_text("0", timeout=60_000)
    await expect(page.at('[data-plot="tokens"] polyline').first).to_be_attached(timeout=60_000)
    await view(page, "overview")
    await expect(page.at('[data-capability="images"][data-can="no"]')).to_be_visible(timeout=60_000)
    await expect(page.at('[data-capability="tools"][data-can="yes"]')).to_be_visible()

    # Halted: said, and over when it goes on.
    core = await engine_core(page)
    core.suspend()
    try:
        await expect(page.at("#srv-trouble")).to_contain_text("halted")
    finally:
        core.resume()
    await expect(page.at("#srv-trouble")).to_be_empty()

    # Killed in the middle of a reply: both the page and the reply say what happened and who can help.
    await page.tab("Chat")
    await page.ask("chat", "Tell me a long story about the sea and a lighthouse, with every detail.")
    await expect(page.run("chat").locator(".thought, .answer").first).to_be_visible(timeout=ENGINE_MS)
    os.kill(core.pid, 9)
    await page.idle("chat")
    ending = page.run("chat").locator(".ending")
    if await ending.inner_text():  # it may just have been complete
        await expect(ending).to_contain_text("operator")
    await page.tab("Server")
    await expect(page.at("#srv-trouble .notice")).to_contain_text("ended from outside")
    await state(page, "failed")
    await page.at('#srv-head [data-act="server_restart"]').click()
    await state(page, "ready")
    await page.tab("Chat")
    await page.ask("chat", "What is the capital of France?")
    await page.idle("chat")
    await expect(page.run("chat").locator(".answer")).to_contain_text("Paris")
