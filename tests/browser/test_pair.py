"""Side by side in a browser: both columns are written at once, survive a reload, and stop together."""

import pytest
from playwright.async_api import expect

from tests.browser.page import DemoPage
from tests.scripted_server import Scripted

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_one_prompt_in_two_ways(page: DemoPage, scripted: Scripted) -> None:
    await page.page.get_by_role("radio", name="Chat", exact=True).focus()
    await page.page.keyboard.press("ArrowLeft")  # round to the last one
    await expect(page.page.get_by_role("radio", name="Side by side")).to_be_focused()
    right = page.at('[data-pair-side="right"]')
    await expect(right.locator("select")).to_have_value("moonshot_instant")
    await expect(right.locator("select[name=server]")).to_have_count(0)  # the operator's
    await right.locator("select").select_option("guide_thinking")
    await expect(right.locator("input")).to_be_checked()
    await right.locator("input").uncheck()

    scripted.scenario("long_thought", tokens=2_000, rate=40)
    await page.at("#pair-input textarea").fill("Why <b>this</b>?")
    await page.at("#pair-run").click()
    columns = page.at("#pair [data-run]")
    await expect(columns).to_have_count(2)
    for column in (columns.first, columns.last):
        await expect(column).to_contain_text("w5")
    await expect(columns.last.locator(".pair-title")).to_have_text("Guide, thinkinginstant")
    await page.load()
    for column in (columns.first, columns.last):  # neither is lost, nor does one wait for the other
        await expect(column).to_contain_text("w20")
    await expect(page.at("#pair-input textarea")).to_have_value("Why <b>this</b>?")
    await expect(right.locator("select")).to_have_value("guide_thinking")
    await expect(right.locator("input")).not_to_be_checked()
    await page.at("#pair-stop").click()
    for column in (columns.first, columns.last):
        await expect(column.locator(".notice")).to_contain_text("Stopped.")

    scripted.scenario("reasoning")
    await page.at("#pair-run").click()
    for column in (columns.first, columns.last):
        await expect(column.locator(".answer")).to_contain_text("A language model predicts text.")
        await expect(column.locator(".numbers")).to_contain_text("finish reason stop")
    asked = [chat.body for chat in scripted.chats[-2:]]
    assert sorted(body["chat_template_kwargs"]["thinking"] for body in asked) == [False, True]
    await page.page.get_by_role("radio", name="Chat", exact=True).click()
    await expect(page.at("#chat-input textarea")).to_be_visible()
    await expect(page.at("#pair-input textarea")).to_be_hidden()
