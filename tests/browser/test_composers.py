"""The fields of tools and raw prompt while the app is slow, away, or out of order: nothing typed is lost or mixed up."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from playwright.async_api import Route, expect

from kimi_demo.ui.raw_pane import GUIDE_PROMPT
from tests.browser.page import DemoPage

RENDERED = "<|im_user|>user<|im_middle|>{}<|im_end|><|im_assistant|>assistant<|im_middle|><think>"

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def tools(page: DemoPage) -> None:
    await page.tab("Function calling")
    await expect(page.at("#tools-input textarea")).to_be_visible()


async def raw(page: DemoPage) -> None:
    await page.page.get_by_role("radio", name="Raw prompt").click()
    await expect(page.at("#raw-input textarea")).to_be_visible()


async def held(page: DemoPage, act: str) -> tuple[asyncio.Event, Callable[[], None]]:
    """Requests of the act wait: (set once the first is there, to let them all go)."""
    there, go = asyncio.Event(), asyncio.Event()

    async def wait(route: Route) -> None:
        there.set()
        await go.wait()
        await route.continue_()

    await page.page.route(f"**/kimi/act/{act}", wait)
    return there, go.set


async def first_fails(page: DemoPage, act: str, fail: Callable[[Route], Awaitable[None]]) -> None:
    failed = False

    async def answer(route: Route) -> None:
        nonlocal failed
        if failed:
            await route.continue_()
        else:
            failed = True
            await fail(route)

    await page.page.route(f"**/kimi/act/{act}", answer)


async def approved(page: DemoPage) -> bool:
    """What the app has kept of the box."""
    return bool(await page.page.evaluate("fetch('kimi/tools').then((answer) => answer.json()).then(({ approve }) => approve)"))


async def test_what_is_typed_after_enter_is_the_next_question(page: DemoPage) -> None:
    await tools(page)
    there, go = await held(page, "tools_ask")
    field = page.at("#tools-input textarea")
    await field.fill("[[silent seconds=60]] first")
    await field.press("Enter")
    await field.press_sequentially("second")
    await there.wait()
    await field.press("Enter")  # while the first is on its way
    await expect(field).to_have_value("")
    go()
    await expect(page.run("tools").locator(".bubble")).to_have_text("[[silent seconds=60]] first")
    await expect(page.at("#tools-notice")).to_contain_text("still being written")
    await expect(field).to_have_value("second")  # it came back, for one question goes on at a time
    await page.at("#tools-stop").click()
    await page.idle("tools")


async def test_a_second_enter_is_no_question(page: DemoPage) -> None:
    await tools(page)
    there, go = await held(page, "tools_ask")
    await page.ask("tools", "once")
    await there.wait()
    await page.at("#tools-input textarea").press("Enter")
    await page.at("#tools-input textarea").press("Enter")
    go()
    await expect(page.run("tools")).to_have_attribute("data-whole", "1")
    await expect(page.at("#tools-notice .notice")).to_have_count(0)
    await expect(page.at("#tools [data-run]")).to_have_count(1)


async def test_a_question_that_a_proxy_swallowed_comes_back(page: DemoPage) -> None:
    await tools(page)
    await first_fails(page, "tools_ask", lambda route: route.fulfill(status=200, content_type="text/html", body="<h1>502 Bad Gateway</h1>"))
    await page.ask("tools", "hello there")
    await expect(page.at("#tools-notice .notice")).to_be_visible()
    field = page.at("#tools-input textarea")
    await expect(field).to_have_value("hello there")
    await field.press("Enter")
    await expect(page.run("tools").locator(".bubble")).to_have_text("hello there")
    await expect(page.at("#tools-notice .notice")).to_have_count(0)


async def test_what_stands_in_the_fields_survives_a_reload(page: DemoPage) -> None:
    await tools(page)
    await page.at("#tools-input textarea").fill("half a question")
    await page.tab("Chat")
    await page.at("#chat-input textarea").fill("half a message")
    await raw(page)
    await expect(page.at("#raw-input textarea")).to_have_value(GUIDE_PROMPT)
    await page.at("#raw-input textarea").fill("half a prompt")
    await page.load()
    await expect(page.at("#raw-input textarea")).to_have_value("half a prompt")
    await page.page.get_by_role("radio", name="Chat", exact=True).click()
    await expect(page.at("#chat-input textarea")).to_have_value("half a message")
    await tools(page)
    await expect(page.at("#tools-input textarea")).to_have_value("half a question")
    await page.at("#tools-input textarea").press("Enter")
    await expect(page.run("tools").locator(".bubble")).to_have_text("half a question")
    await page.idle("tools")
    await page.load()
    await expect(page.at("#tools-input textarea")).to_have_value("")


async def test_a_late_rendering_does_not_replace_what_was_typed_meanwhile(page: DemoPage) -> None:
    await raw(page)
    field = page.at("#raw-input textarea")
    await field.fill("a question")
    there, go = await held(page, "raw_render")
    await page.at("#raw-render").click()
    await there.wait()
    await field.fill("something else")
    async with page.page.expect_response("**/kimi/act/raw_render"):
        go()
    await page.page.get_by_role("radio", name="Chat", exact=True).click()
    await raw(page)
    await expect(field).to_have_value("something else")
    await page.at("#raw-render").click()
    await expect(field).to_have_value(RENDERED.format("something else"))


async def test_the_last_of_quick_ticks_is_kept(page: DemoPage) -> None:
    await tools(page)
    box = page.at("#tools-approve input")
    there, go = await held(page, "bench_approve")
    await box.check()
    await there.wait()
    await box.uncheck()
    await box.check()
    await box.uncheck()
    go()
    await page.page.wait_for_function("document.documentElement.dataset.leave === undefined")
    assert not await approved(page)
    await expect(box).not_to_be_checked()


async def test_a_tick_that_did_not_arrive_holds_and_is_told_again(page: DemoPage) -> None:
    await tools(page)
    box = page.at("#tools-approve input")
    await first_fails(page, "bench_approve", lambda route: route.fulfill(status=200, content_type="text/html", body="Bad Gateway"))
    await box.check()
    await expect(page.at("#tools-notice .notice")).to_be_visible()
    await page.at("#tool-list > summary").click()  # asks the app what it knows
    await expect(page.at("#tool-list .bench-body")).to_be_visible()
    await page.page.wait_for_function("document.documentElement.dataset.leave === undefined", timeout=30_000)
    assert await approved(page)
    await expect(box).to_be_checked()


async def test_another_tab_shows_the_box_as_it_was_left(page: DemoPage) -> None:
    await tools(page)
    other = DemoPage(await page.page.context.new_page(), page.address)
    await other.load()
    await tools(other)
    await other.at("#tools-approve input").check()
    await other.page.wait_for_function("document.documentElement.dataset.leave === undefined")
    await page.page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    await expect(page.at("#tools-approve input")).to_be_checked()
    await other.page.close()
