"""The QA tab in a browser: a suite runs, its failure is read, repeated, judged and downloaded; a reload loses nothing."""

import json
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Browser, expect

from tests.browser.page import DemoPage
from tests.demo import Demo

pytestmark = pytest.mark.asyncio(loop_scope="session")

SUITE = """
name: mine
title: <b>Mine</b>
cases:
  - {id: good, ask: "[[reasoning]] one", checks: {thought: present}}
  - {id: bad, ask: "[[reasoning]] two", checks: {answer: {contains: no-such-word}}}
  - {id: manual, ask: "[[reasoning]] three", manual: "Is it friendly?"}
"""
SLOW = """
name: slow
title: Slow
at_once: 1
cases:
  - {id: first, ask: "[[reasoning]] one"}
  - {id: second, ask: "[[silent seconds=600]] two"}
"""


async def start(page: DemoPage, suite: str) -> None:
    await page.at(f'#qa-suites input[value="{suite}"]').check()
    await page.at("#qa-start").click()


@pytest.fixture
def suites(attached: Demo) -> None:
    """Put into the data folder while the demo runs."""
    folder = attached.data / "suites"
    folder.mkdir()
    (folder / "mine.yaml").write_text(SUITE)
    (folder / "slow.yaml").write_text(SLOW)
    (folder / "broken.yaml").write_text("name: broken\ntitle: x\ncases: 3\n")


def read(path: Path) -> Any:
    return json.loads(path.read_bytes())


async def test_a_suite_from_its_start_to_its_report(attached: Demo, suites: None, browser: Browser) -> None:
    page = await DemoPage.open(browser, attached.operator)
    await page.tab("QA")
    await expect(page.at('.qa-broken[data-suite="broken"]')).to_contain_text("broken.yaml, line 3")

    # What is wrong in the form is said, and nothing begins.
    await page.at("#qa-repeats").fill("many")
    await start(page, "mine")
    await expect(page.at("#qa-notice")).to_contain_text("Repeats: must be a whole number")
    await page.at("#qa-repeats").fill("")

    # Cases come as they finish; the failed one stands first, with what was expected and got.
    await start(page, "mine")
    await expect(page.at('#qa-head .qa-state[data-run-state="done"]')).to_be_visible()
    await expect(page.at("#qa-notice")).to_be_empty()
    await expect(page.at("#qa-head h2")).to_have_text("<b>Mine</b>")
    await expect(page.at(".qa-cases > li > details").first).to_have_attribute("data-case", "bad")
    bad, manual = page.at('[data-case="bad"]'), page.at('details[data-case="manual"]')
    await expect(bad.locator(".qa-why")).to_contain_text("no-such-word")
    await bad.locator("summary").first.click()
    await expect(bad.locator(".qa-checks")).to_contain_text("no-such-word")
    await bad.locator("summary", has_text="To repeat it").click()
    await expect(bad.locator(".code pre")).to_contain_text("curl -sS")

    # By hand: the note is kept, and the filter shows what is left.
    await manual.locator("summary").first.click()
    await manual.locator("textarea").fill("kind & short")
    await manual.locator('[data-good="1"]').click()
    await expect(manual).to_have_attribute("data-state", "pass")
    await expect(manual.locator("textarea")).to_have_value("kind & short")
    await page.at('[data-qa-filter="fail"]').click()
    await expect(manual).to_be_hidden()
    await expect(bad).to_be_visible()

    # Held against itself, nothing is worse; the report is a file.
    await page.at('[data-act="qa_baseline"]').click()
    await expect(page.at("#qa-runs .qa-mark")).to_be_visible()
    await expect(page.at("#qa-against")).to_be_visible()
    await page.at("#qa-against").select_option("baseline")
    await expect(page.at('.qa-verdict[data-verdict="same"]')).to_be_visible()
    async with page.page.expect_download() as downloading:
        await page.at('[data-qa-download="json"]').click()
    report = read(await (await downloading.value).path())
    assert {case["id"]: case["state"] for case in report["cases"]} == {"good": "pass", "bad": "fail", "manual": "pass"}

    # As a link, which is read without a script.
    await page.at("#qa-head [data-publish=qa]").click()
    await expect(page.at("#publish-dialog input[name=title]")).to_have_value("<b>Mine</b>")
    await page.at("#publish-dialog [data-publish-form] button").click()
    link = await page.at("#publish-dialog [data-new] input").input_value()
    await page.page.keyboard.press("Escape")
    context = await browser.new_context(java_script_enabled=False)
    shown = await context.new_page()
    refused: list[str] = []
    shown.on("console", lambda message: refused.append(message.text))
    await shown.goto(link)
    await expect(shown.locator("h1")).to_have_text("<b>Mine</b>")
    await expect(shown.locator(".case.fail")).to_contain_text("no-such-word")
    assert not refused and not await context.cookies()
    await context.close()

    # One that goes on survives a reload.
    await page.at('[data-qa-filter="all"]').click()
    await start(page, "slow")
    first, second = page.at('[data-case="first"]'), page.at('[data-case="second"]')
    await expect(first).to_have_attribute("data-state", "pass")
    await expect(second).to_have_attribute("data-state", "running")
    await page.load()
    await page.tab("QA")
    await expect(second).to_have_attribute("data-state", "running")
    await expect(page.at('[data-act="qa_stop"]')).to_be_visible()
    await page.at('[data-act="qa_stop"]').click()
    await expect(page.at('#qa-head .qa-state[data-run-state="stopped"]')).to_be_visible()
    await expect(second).to_have_attribute("data-state", "waiting")

    # The earlier one is there as it was; deleted, it is gone for good.
    await page.at("[data-qa-open]").nth(1).click()
    await expect(bad).to_be_visible()
    await page.at("#qa-head .qa-menu summary").click()
    await page.at('[data-act="qa_delete"]').click()
    await expect(page.at("[data-qa-open]")).to_have_count(1)
    await expect(first).to_be_visible()
    assert not page.complaints
    await page.close()


async def test_a_thumb_makes_a_case_that_is_asked_again_and_judged(attached: Demo, browser: Browser) -> None:
    page = await DemoPage.open(browser, attached.operator)
    await page.ask("chat", "[[reasoning]] Why is the sky <b>blue</b>?")
    good = page.run("chat").locator('[data-rate][data-good="1"]')
    await good.click()
    kept = page.run("chat").locator(".rated")
    await expect(kept).to_contain_text("Captured replies")
    await expect(good).to_have_attribute("aria-pressed", "true")
    await kept.locator("input").fill("It is short.")
    await kept.locator("button").click()
    await expect(kept).to_contain_text("with your note")

    await page.tab("Function calling")
    await page.ask("tools", "[[one_call]] 17 plus 25")
    await page.at('#tools .tool-foot [data-rate][data-good=""]').click()
    await expect(page.at("#tools .rated")).to_contain_text("Captured replies")

    await page.tab("QA")
    await expect(page.at("#qa-suites .qa-suite").filter(has_text="Captured replies")).to_contain_text("cases: 2,")
    await start(page, "captured")
    await expect(page.at('#qa-head .qa-state[data-run-state="done"]')).to_be_visible()
    judged = page.at("#qa-cases details[data-case]").filter(has_text="sky")
    await expect(judged).to_have_attribute("data-state", "open")
    await judged.locator("summary").first.click()
    await expect(judged).to_contain_text("It is short. Is this one as good?")
    await expect(judged).to_contain_text("The reply of ")
    await judged.locator('[data-good=""]').click()
    await expect(judged).to_have_attribute("data-state", "fail")
    assert not page.complaints
    await page.close()
