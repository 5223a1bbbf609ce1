"""A tab that nobody looks at, a network that goes away, a laptop that sleeps: the reply goes on, and the page has all of it again."""

import re
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Locator, expect

from tests.browser.lossy import Lossy, lossy
from tests.browser.page import DemoPage
from tests.demo import Demo
from tests.scripted_server import Scripted

pytestmark = pytest.mark.asyncio(loop_scope="session")

TOKENS = 400
REPLY = f"[[long_thought tokens={TOKENS} rate=40]] go"
WHOLE = [f"w{number}" for number in range(TOKENS)]

HIDE = """(hidden) => {
    Object.defineProperty(document, "hidden", { configurable: true, get: () => hidden });
    Object.defineProperty(document, "visibilityState", { configurable: true, get: () => (hidden ? "hidden" : "visible") });
    document.dispatchEvent(new Event("visibilitychange"));
}"""


async def thinking(page: DemoPage) -> Locator:
    await page.ask("chat", REPLY)
    run = page.run("chat")
    await expect(run.locator(".thought-text")).to_contain_text("w9 ")
    return run


async def has_all(page: DemoPage, run: Locator) -> None:
    """The reply is there whole, once, and its thought too."""
    await page.idle("chat")
    await expect(page.at("#chat [data-run]")).to_have_count(1)
    await expect(run.locator(".answer")).to_have_text("Done.")
    await expect(run.locator(".thought summary")).to_contain_text(f"{TOKENS} tokens")
    await expect(run.locator(".clock[data-elapsed]")).to_have_count(0)
    await run.locator("details.thought summary").click()
    await expect(run.locator(".thought-text .prose")).to_be_visible()
    assert (await run.locator(".thought-text").inner_text()).split() == WHOLE


async def test_a_hidden_tab_is_written_to_until_it_gives_up_its_connection_and_has_all_when_seen_again(page: DemoPage) -> None:
    run = await thinking(page)
    session = await page.page.context.new_cdp_session(page.page)
    async with page.page.expect_event("requestfailed", lambda request: "/kimi/live/chat" in request.url, timeout=30_000):
        await page.page.evaluate(HIDE, True)
        seen = await run.locator(".thought-text").inner_text()
        await expect(run.locator(".thought-text")).not_to_have_text(seen)  # nothing waits for an animation frame
    await session.send("Page.setWebLifecycleState", {"state": "frozen"})  # as Chromium does with tabs that stay hidden
    other = DemoPage(await page.page.context.new_page(), page.address)
    await other.load()
    await other.idle("chat")  # meanwhile the reply has ended
    await session.send("Page.setWebLifecycleState", {"state": "active"})
    await page.page.evaluate(HIDE, False)
    await has_all(page, run)


async def test_seen_again_in_mid_thought_it_goes_on_where_the_reply_is(page: DemoPage) -> None:
    run = await thinking(page)
    async with page.page.expect_event("requestfailed", lambda request: "/kimi/live/chat" in request.url, timeout=30_000):
        await page.page.evaluate(HIDE, True)
    await page.page.evaluate(HIDE, False)
    await expect(run.locator(".thought-text")).to_contain_text("w0 w1 w2")
    await expect(page.at("html")).to_have_attribute("data-chat", "running")
    await has_all(page, run)


@pytest_asyncio.fixture(loop_scope="session")
async def network(attached: Demo) -> AsyncIterator[Lossy]:
    """What stands between the browser and the demo."""
    async with lossy(attached.address) as found:
        yield found


@pytest_asyncio.fixture(loop_scope="session")
async def far(network: Lossy, browser: Browser) -> AsyncIterator[DemoPage]:
    """A page behind that network. What its console says about requests that failed is the browser's own."""
    found = await DemoPage.open(browser, network.address)
    yield found
    assert all("ERR_" in complaint for complaint in found.complaints), found.complaints
    await found.close()


async def test_without_a_network_for_a_while_nothing_is_lost(far: DemoPage, network: Lossy, scripted: Scripted) -> None:
    await far.at("#chat-max-tokens input").fill("777")
    await expect(far.at("#chat-parameters-open")).to_contain_text("1 changed")
    run = await thinking(far)
    network.cut()
    await expect(far.at("#chat .live")).to_have_class(re.compile("away"), timeout=60_000)
    said = "getComputedStyle(document.querySelector('#chat .live'), '::after').content"
    assert "Connection lost." in await far.page.evaluate(said)
    clock = await run.locator(".thought summary .clock").inner_text()
    await far.at("#chat-input textarea").press_sequentially("written on the train", delay=20)
    assert await run.locator(".thought summary .clock").inner_text() == clock, "nobody knows whether it still thinks"
    network.mend()
    await expect(far.at("#chat .live")).not_to_have_class(re.compile("away"), timeout=60_000)
    await has_all(far, run)
    await expect(far.at("#chat-input textarea")).to_have_value("written on the train")
    await expect(far.at("#chat-max-tokens input")).to_have_value("777")
    assert scripted.chats[-1].aborted_at is None


async def test_a_message_sent_without_a_network_comes_back_before_what_was_typed_since(far: DemoPage, network: Lossy) -> None:
    field = far.at("#chat-input textarea")
    network.cut()
    await far.ask("chat", "precious")
    await expect(far.at("#chat-notice")).to_contain_text("The demo could not be reached.")
    await expect(field).to_have_value("precious")
    network.mend()
    await field.press("Enter")
    await expect(far.run("chat").locator(".bubble")).to_have_text("precious")
    await expect(far.at("#chat-notice")).to_have_text("")
    await far.idle("chat")


async def test_a_laptop_that_slept_finds_its_connections_dead_and_follows_again(far: DemoPage, network: Lossy) -> None:
    run = await thinking(far)
    network.forget()
    # Its clock has jumped; the connections say nothing, not even that they are closed.
    await far.page.evaluate("() => { const now = Date.now.bind(Date); Date.now = () => now() + 60_000; }")
    await has_all(far, run)
