"""The app dies in mid answer and is started again: nothing that was written is lost."""

import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.async_api import Browser, expect

from tests import scripted_server
from tests.browser.page import DemoPage
from tests.demo import running
from tests.ports import free_port
from tests.scripted_server import Scripted

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest.fixture
def scripted() -> Iterator[Scripted]:
    with scripted_server.running() as server:
        yield server


async def test_a_run_that_was_going_when_the_app_was_killed_is_shown_as_interrupted(
    scripted: Scripted, browser: Browser, tmp_path: Path
) -> None:
    port = str(free_port())
    with running(tmp_path, "--base-url", scripted.base_url, "--port", port) as demo:
        page = await DemoPage.open(browser, demo.address)
        await page.tab("Function calling")
        await page.at("#tools-approve input").check()
        await page.ask("tools", "[[one_call]] with leave")
        await expect(page.run("tools").locator(".call")).to_have_attribute("data-state", "asking")
        await page.tab("Chat")
        await page.ask("chat", "[[long_thought tokens=2000 rate=40]]")
        await expect(page.run("chat").locator(".thought-text")).to_have_text(re.compile(r"\bw90\b"), timeout=15_000)
        demo.program.signal(signal.SIGKILL)
        demo.program.process.wait(10)
    with running(tmp_path, "--base-url", scripted.base_url, "--port", port):
        await page.load()
        await page.tab("Function calling")
        call = page.run("tools").locator(".call")
        await expect(call).to_have_attribute("data-state", "stopped")
        await page.page.get_by_role("button", name="Go on with these calls").click()
        await call.get_by_role("button", name="Run it", exact=True).click()
        await expect(call.locator(".result pre")).to_have_text("42")
        await expect(page.run("tools").locator(".answer").last).to_contain_text("The result: 42")
        await page.tab("Chat")
        run = page.run("chat")
        await expect(run.locator(".bubble")).to_have_text("[[long_thought tokens=2000 rate=40]]")
        await expect(run.locator(".notice")).to_contain_text("Interrupted")
        await expect(run.locator("details.thought summary")).to_contain_text("Thought")
        await run.locator("details.thought summary").click()
        await expect(run.locator(".thought-text")).to_have_text(re.compile(r"\bw45\b"))  # all but the last second
        await page.ask("chat", "[[reasoning]] again")
        await expect(page.run("chat").locator(".bubble")).to_have_text("[[reasoning]] again")
        await page.idle("chat")
        await page.close()


async def test_a_server_that_was_killed_is_told_of_and_only_the_operator_may_restart_it(browser: Browser, tmp_path: Path) -> None:
    """The folder holds no model, so vLLM refuses it: what is tried is the page around it."""
    with running(tmp_path, "--model", str(tmp_path), KIMI_DEMO_TENSOR_PARALLEL_SIZE="1") as demo:
        page = await DemoPage.open(browser, demo.address)
        badge = page.at("#model-badge")
        await expect(badge.locator(".dot[data-state=failed]")).to_be_attached(timeout=60_000)
        await badge.locator("summary").click()
        await expect(badge.locator("button")).to_have_count(0)
        answer = await page.page.request.post(f"{demo.address}/kimi/act/restart", data={}, headers={"origin": demo.address})
        assert answer.status == 422 and "Only the operator" in (await answer.json())["html"]
        operator = await DemoPage.open(browser, demo.operator)
        again = operator.at("#model-badge button")
        await operator.at("#model-badge summary").click(timeout=60_000)
        await expect(again).to_have_text("Restart the server")
        async with operator.page.expect_response("**/kimi/act/restart") as responding:
            await again.click()
        assert (await responding.value).ok
        await operator.close()
        await page.close()
