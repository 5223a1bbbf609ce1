"""Publishing runs in a browser, and reading them as somebody else, without scripts, while no model answers."""

import re
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path

import pytest
from playwright.async_api import Browser, Page, expect

from tests import scripted_server
from tests.browser.page import DemoPage
from tests.demo import running

pytestmark = pytest.mark.asyncio(loop_scope="session")

ADDRESS = re.compile(r"http://127\.0\.0\.1:\d+/kimi/p/[A-Za-z0-9_-]{32}")


@asynccontextmanager
async def stranger(browser: Browser, address: str) -> AsyncIterator[Page]:
    """The page as a browser without scripts and cookies shows it; nothing of it is refused by its own policy."""
    context = await browser.new_context(java_script_enabled=False)
    page = await context.new_page()
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
    answer = await page.goto(address)
    assert answer is not None and answer.status == 200
    yield page
    assert not complaints and not await context.cookies()
    await context.close()


async def published(page: DemoPage) -> str:
    """Publishes what the opened dialog is about; the address that it then shows."""
    await page.at("#publish-dialog [data-publish-form] button").click()
    field = page.at("#publish-dialog [data-new] input")
    await expect(field).to_have_value(ADDRESS)
    return await field.input_value()


async def test_a_conversation_and_a_tool_run_are_read_by_strangers_with_the_model_off(browser: Browser, tmp_path: Path) -> None:
    with ExitStack() as model, ExitStack() as app:
        server = model.enter_context(scripted_server.running())
        demo = app.enter_context(running(tmp_path / "data", "--base-url", server.base_url))
        page = await DemoPage.open(browser, demo.address)
        await page.ask("chat", "[[reasoning]] <b>Why</b> is that?")
        await expect(page.run("chat").locator("[data-publish=turn]")).to_be_attached()
        await page.at(".export-menu summary").click()
        await page.at(".export-menu [data-publish=chat]").click()
        await page.at("#publish-dialog input[name=title]").fill("Sky <i>& sea</i>")
        conversation = await published(page)
        await page.page.keyboard.press("Escape")
        await expect(page.at("#publish-dialog")).to_be_hidden()

        await page.tab("Function calling")
        await page.ask("tools", "[[one_call]] How many r are in strawberry?")
        await page.at("#tools .tool-foot [data-publish=tools]").click()
        tools = await published(page)
        await expect(page.at("#publish-dialog .publish-others summary")).to_have_text("Your other links (1)")

        model.close()  # from here on nothing answers
        async with stranger(browser, conversation) as seen:
            await expect(seen.locator("h1")).to_have_text("Sky <i>& sea</i>")
            await expect(seen.locator(".bubble")).to_contain_text("<b>Why</b> is that?")
            thought = seen.get_by_text("The user wants a short answer.")
            await expect(thought).to_be_hidden()
            await seen.locator("details.thought summary").click()
            await expect(thought).to_be_visible()
            await expect(seen.locator("button, input, script")).to_have_count(0)
            async with seen.expect_download() as downloading:
                await seen.locator(".published-bar a").click()
            file = tmp_path / "run.html"
            await (await downloading.value).save_as(file)
            await seen.goto(file.as_uri())
            await expect(seen.locator("h1")).to_have_text("Sky <i>& sea</i>")
            await expect(seen.locator(".published-bar")).to_have_count(0)
        async with stranger(browser, tools) as seen:
            await expect(seen.locator(".call .tool-name").first).to_have_text("add")
            await expect(seen.locator("main")).to_contain_text("strawberry")

        await page.at(f"#publish-dialog li:has(input[value*='{tools[-32:]}']) [data-publish-withdraw]").click()
        await expect(page.at("#publish-dialog .publish > .publish-links")).to_have_count(0)
        gone = await page.page.context.request.get(tools)
        assert gone.status == 404

        operator = await DemoPage.open(browser, demo.operator)
        await operator.tab("Server")
        await operator.at("[data-srv-view=links]").click()
        link = operator.at("#srv-links [data-token]")
        await expect(link.locator(".publish-title")).to_have_text("Sky <i>& sea</i>")
        await link.locator("[data-publish-qr]").click()
        await expect(link.locator(".srv-qr svg")).to_be_visible()
        await expect(link.locator(".srv-qr")).to_contain_text("this machine only")
        await link.locator("[data-act=publish_withdraw]").click()
        await expect(operator.at("#srv-links")).to_contain_text("Nobody has published a run.")
        assert (await page.page.context.request.get(conversation)).status == 404
        assert not page.complaints and not operator.complaints
        await operator.close()
        await page.close()
