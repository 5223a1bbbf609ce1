"""A person on a machine without a GPU: all three tabs, answered by real vLLM with the stand-in, in a real browser."""

import re
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from playwright.async_api import Browser, expect

from tests.browser.page import ENGINE_MS, DemoPage
from tests.demo import Demo

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest_asyncio.fixture(loop_scope="session")
async def page(demo: Demo, browser: Browser) -> AsyncIterator[DemoPage]:
    found = await DemoPage.open(browser, demo.address)
    yield found
    assert not found.complaints
    await found.close()


async def test_the_badge_says_that_a_stand_in_answers(page: DemoPage) -> None:
    badge = page.at("#model-badge")
    await expect(badge).to_contain_text("Rehearsal model")
    await expect(badge).to_contain_text("not Kimi K2.5")
    await expect(badge.locator(".dot[data-state=ready]")).to_be_attached(timeout=ENGINE_MS)


async def test_chat_streams_a_thought_and_an_answer(page: DemoPage) -> None:
    await page.ask("chat", "Why is the sky blue?")
    turn = page.run("chat")
    await expect(turn.locator(".bubble")).to_have_text("Why is the sky blue?", timeout=ENGINE_MS)
    await expect(turn.locator(".answer")).to_have_text(re.compile(r"\w{3,}"), timeout=ENGINE_MS)
    await page.idle("chat")
    thought = turn.locator("details.thought")
    await expect(thought.locator("summary")).to_have_text(re.compile(r"^Thought\d+\.\d s\d+ tokens$"))
    await expect(thought).not_to_have_attribute("open", "")
    await expect(turn.locator(".numbers")).to_have_text(
        re.compile(r"\d+ tokens in.*thought \d+ tokens.*answer \d+ tokens.*finish reason stop")
    )
    await thought.locator("summary").click()
    await expect(thought.locator(".thought-text")).to_have_text(re.compile(r"\w{3,}"))


async def test_without_thinking_there_is_no_thought(page: DemoPage) -> None:
    await page.at("#chat-thinking input").uncheck()
    await page.ask("chat", "Name a primary colour.")
    await expect(page.run("chat").locator(".answer")).to_have_text(re.compile(r"\w{3,}"), timeout=ENGINE_MS)
    await page.idle("chat")
    await expect(page.run("chat").locator("details.thought")).to_be_hidden()


async def test_a_small_limit_is_spent_on_thinking_and_the_page_says_so(page: DemoPage) -> None:
    await page.at("#chat-max-tokens input").fill("4")
    await page.ask("chat", "Why is the sky blue?")
    await expect(page.run("chat").locator(".notice")).to_contain_text(
        "All 4 tokens went into thinking; there is no answer.", timeout=ENGINE_MS
    )


@pytest.mark.parametrize(
    ("question", "tool", "arguments", "result", "answer"),
    [
        ("用中文回答：strawberry中有多少个r?", "count_letter_in_string", ["strawberry", "r"], "occurs 3 times", r"3|三"),
        ("用中文回答：9.11和9.9，哪个小?", "compare", ["9.11", "9.9"], "9.11 is less than 9.9", r"9\.11"),
        ("How many r are in strawberry?", "count_letter_in_string", ["strawberry", "r"], "occurs 3 times", r"3|three"),
        ("Which is smaller, 9.11 or 9.9?", "compare", ["9.11", "9.9"], "9.11 is less than 9.9", r"9\.11"),
    ],
)
async def test_the_guides_questions_through_tools(
    page: DemoPage, question: str, tool: str, arguments: list[str], result: str, answer: str
) -> None:
    await page.tab("Function calling")
    await page.ask("tools", question)
    run = page.run("tools")
    await expect(run.locator(".bubble")).to_have_text(question, timeout=ENGINE_MS)
    await expect(run).to_have_attribute("data-whole", "1", timeout=ENGINE_MS)
    call = run.locator(".call").first
    await expect(call.locator(".tool-name")).to_have_text(tool)
    await expect(call.locator(".call-id")).to_have_text(f"functions.{tool}:0")
    for argument in arguments:
        await expect(call.locator(".arguments")).to_contain_text(argument)
    await expect(call.locator(".result pre")).to_contain_text(result)
    await expect(call.locator(".badge")).to_have_text("done")
    await expect(run.locator(".round").last.locator(".answer")).to_have_text(re.compile(answer))


async def test_batch_rows_appear_and_can_be_taken_out(page: DemoPage) -> None:
    await page.tab("Batch")
    await page.at("#batch-max-tokens input").fill("48")
    await page.at("#batch-prompts textarea").fill("给我一个关于大模型的简短介绍。\n\nWhy is the sky blue?\nName a primary colour.")
    await page.at("[data-batch-preview]").click()
    first = page.at(".batch-first details").first
    await expect(first.locator(".badge")).to_have_text(re.compile(r"^\d+ tokens$"), timeout=ENGINE_MS)
    await expect(first.locator("pre")).to_contain_text("<|im_user|>")
    await page.at("#batch-run").click()
    await expect(page.at("#batch-results")).to_contain_text("3 of 3 rows", timeout=ENGINE_MS)
    await page.idle("batch")
    await expect(page.at("#batch-results tbody tr[data-state=waiting]")).to_have_count(0)
    await expect(page.at("#batch-results tbody tr")).to_have_count(3)
    await expect(page.at("#batch-engine-note")).to_contain_text("The batch engine is loaded.")
    async with page.page.expect_download() as downloading:
        await page.at("#batch-results .export").click()
    download = await downloading.value
    assert re.fullmatch(r"kimi-demo-batch-\d{8}-\d{6}\.jsonl", download.suggested_filename)
    lines = (await download.path()).read_text(encoding="utf-8").splitlines()
    assert len(lines) == 3 and "给我一个关于大模型的简短介绍。" in lines[0]
