"""States that no small model shows on demand: the page in a browser against the scripted server."""

import asyncio
import os
import re
import sysconfig
import time
from pathlib import Path

import pytest
from playwright.async_api import Browser, expect

from tests.browser.page import DemoPage
from tests.demo import Demo, running
from tests.programs import ROOT
from tests.scripted_server import Scripted

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def begun(page: DemoPage, kind: str, question: str) -> None:
    await page.ask(kind, question)
    await expect(page.run(kind).locator(".bubble")).to_have_text(question)


async def test_the_panel_is_open_while_it_thinks_and_its_clock_runs(page: DemoPage) -> None:
    await begun(page, "chat", "[[long_thought tokens=400 rate=40]]")
    thought = page.run("chat").locator("details.thought")
    await expect(thought).to_have_attribute("open", "")
    summary = thought.locator("summary")
    await expect(summary).to_contain_text("Thinking")
    first = await summary.locator(".clock").inner_text()
    await expect(summary.locator(".clock")).not_to_have_text(first)
    await expect(page.at("#chat-stop")).to_be_visible()
    await expect(page.at("#chat-send")).to_be_hidden()
    await page.at("#chat-stop").click()
    await expect(page.run("chat").locator(".notice")).to_contain_text("Stopped. What was written stays.")
    await expect(summary.locator(".clock[data-elapsed]")).to_have_count(0)
    await expect(page.at("#chat-send")).to_be_visible()


async def test_a_persons_own_opening_and_closing_wins(page: DemoPage) -> None:
    await begun(page, "chat", "[[long_thought tokens=120 rate=40]]")
    thought = page.run("chat").locator("details.thought")
    await expect(thought.locator("summary")).to_contain_text("Thinking")
    await thought.locator("summary").click()
    await expect(thought).not_to_have_attribute("open", "")
    await expect(thought.locator(".thought-text")).to_have_text(re.compile(r"(\w+\s+){30}"))  # it goes on, closed
    await expect(thought).not_to_have_attribute("open", "")
    await thought.locator("summary").click()
    await page.idle("chat")
    await expect(thought.locator("summary")).to_contain_text("Thought")
    await expect(thought).to_have_attribute("open", "")  # opened by the person: the answer does not close it


async def test_stop_closes_the_request_within_a_moment(page: DemoPage, scripted: Scripted) -> None:
    await begun(page, "chat", "[[silent seconds=60]]")
    await expect(page.run("chat").locator(".phase")).to_contain_text("Reading the prompt")
    pressed = time.monotonic()
    await page.at("#chat-stop").click()
    await expect(page.run("chat").locator(".notice")).to_contain_text("Stopped.")
    aborted = scripted.requests[-1].aborted_at
    assert aborted is not None and aborted - pressed < 1


@pytest.mark.parametrize(("kind", "tab"), [("chat", "Chat"), ("tools", "Function calling")])
async def test_a_reload_in_mid_thought_finds_it_still_being_written_in_the_right_tab(page: DemoPage, kind: str, tab: str) -> None:
    await page.tab(tab)
    question = "[[long_thought tokens=4000 rate=40]]"  # it must not be over before the page is there again, however busy the machine
    await begun(page, kind, question)
    await expect(page.run(kind).locator(".thought-text")).to_have_text(re.compile(r"\w+"))
    await page.load()
    await expect(page.page.get_by_role("tab", name=tab)).to_have_attribute("aria-selected", "true")
    await expect(page.run(kind).locator(".bubble")).to_have_text(question)
    await expect(page.at("html")).to_have_attribute(f"data-{kind}", "running")
    thought = page.run(kind).locator(".thought-text")
    await expect(thought).to_contain_text("w0 w1 w2")
    seen = await thought.inner_text()
    await expect(thought).not_to_have_text(seen)  # it goes on
    await page.at(f"#{kind}-stop").click()
    await expect(page.run(kind).locator(".notice")).to_contain_text("Stopped.")


async def test_a_reload_in_mid_answer_goes_on_in_the_answer_with_the_parameters_as_they_were(page: DemoPage, scripted: Scripted) -> None:
    words = [f"a{number}" for number in range(400)]
    scripted.scenario("reasoning", thought="Short.", answer=" ".join(words), rate=25)
    try:
        await page.at("#chat-max-tokens input").fill("777")
        await expect(page.at("#chat-parameters-open")).to_contain_text("1 changed")
        await begun(page, "chat", "at length")
        await expect(page.run("chat").locator(".answer")).to_contain_text("a20 ")
        await page.load()
        answer = page.run("chat").locator(".answer")
        await expect(answer).to_contain_text("a0 a1 a2")
        await expect(page.at("html")).to_have_attribute("data-chat", "running")
        await expect(page.run("chat").locator("details.thought")).not_to_have_attribute("open", "")
        await expect(page.at("#chat-max-tokens input")).to_have_value("777")
        await page.idle("chat")
        assert (await answer.inner_text()).split() == words
        await expect(page.run("chat").locator(".numbers")).to_contain_text("finish reason stop")
    finally:
        scripted.scenario("reasoning")


async def test_what_stands_in_the_field_is_there_after_a_reload_until_it_is_sent(page: DemoPage) -> None:
    field = page.at("#chat-input textarea")
    await field.fill("half a\n  thought")
    await page.load()
    await expect(field).to_have_value("half a\n  thought")
    await field.press("Enter")
    await expect(page.run("chat").locator(".bubble")).to_have_text("half a\n  thought")
    await page.idle("chat")
    await page.load()
    await expect(page.run("chat").locator(".bubble")).to_have_text("half a\n  thought")
    await expect(field).to_have_value("")


async def test_a_reload_while_the_server_reads_the_prompt_waits_on(page: DemoPage, scripted: Scripted) -> None:
    before = len(scripted.chats)
    await begun(page, "chat", "[[silent seconds=12 headers=true]]")
    await scripted.arrived(before + 1)
    await page.load()
    await expect(page.run("chat").locator(".phase")).to_contain_text("Reading the prompt")
    await expect(page.at("html")).to_have_attribute("data-chat", "running")
    await expect(page.run("chat").locator(".answer")).to_have_text(re.compile(r"\w+"))
    await page.idle("chat")
    assert len(scripted.chats) == before + 1, "nothing was asked twice"


async def test_another_visitor_sees_nothing_of_it(page: DemoPage, attached: Demo, browser: Browser) -> None:
    await begun(page, "chat", "[[reasoning]] my secret")
    await page.idle("chat")
    other = await DemoPage.open(browser, attached.address)
    await expect(other.at("#chat .empty")).to_be_visible()
    await expect(other.at("#chat [data-run]")).to_have_count(0)
    run_id = await page.run("chat").get_attribute("data-run")
    text = f"{attached.address}/kimi/chats/copy/{run_id}?what=answer"
    assert (await other.page.request.get(text)).status == 404
    assert (await page.page.request.get(text)).status == 200
    await other.close()


async def test_a_server_that_dies_in_mid_thought_leaves_what_was_written(page: DemoPage) -> None:
    await begun(page, "chat", "[[dies after=3]]")
    run = page.run("chat")
    await expect(run.locator(".notice[data-kind=error]")).to_be_visible()
    await expect(run.locator(".thought-text")).to_have_text(re.compile(r"\w+"))
    await expect(page.at("#chat-send")).to_be_visible()
    await begun(page, "chat", "[[reasoning]]")  # and one can go on
    await page.idle("chat")
    await expect(page.run("chat").locator(".answer")).to_have_text(re.compile(r"\w+"))


async def test_bad_input_is_named_where_it_was_entered_and_the_text_stays(page: DemoPage) -> None:
    await page.ask("chat", "   ")
    await expect(page.at("#chat-notice")).to_have_text("There is nothing to send yet. Write something first.")
    await page.at("#chat-max-tokens input").fill("")
    await page.ask("chat", "hello")
    await expect(page.at("#chat-notice")).to_contain_text("max_tokens")
    await expect(page.at("#chat-input textarea")).to_have_value("hello")
    await page.at("#chat-max-tokens input").fill("100")
    await page.at("#chat-input textarea").press("Enter")
    await expect(page.at("#chat-notice")).to_have_text("")
    await page.idle("chat")
    await page.tab("Batch")
    await page.at("#batch-run").click()
    await expect(page.at("#batch-notice")).to_contain_text("There are no prompts.")
    await page.at("#batch-prompts textarea").fill("hello")
    for value in ("0", "-1", ""):
        await page.at("#batch-max-tokens input").fill(value)
        await page.at("#batch-run").click()
        await expect(page.at("#batch-notice")).to_contain_text(f'max_tokens: "{value}" cannot be used')


async def test_hostile_text_from_the_model_does_nothing(page: DemoPage, scripted: Scripted) -> None:
    hostile = (
        "<img src=x onerror=window.hurt=1><script>window.hurt=2</script> [x](javascript:window.hurt=3) "
        "![i](http://e.invalid/?secret)\n\n<style>body{display:none}</style>"
    )
    await page.page.evaluate("window.hurt = 0")
    scripted.scenario("reasoning", thought=hostile, answer=hostile)
    try:
        await begun(page, "chat", "hostile")
        await page.idle("chat")
    finally:
        scripted.scenario("reasoning")
    run = page.run("chat")
    await run.locator("details.thought summary").click()
    for place in (run.locator(".answer"), run.locator(".thought-text")):
        await expect(place).to_contain_text("<img src=x onerror=window.hurt=1><script>window.hurt=2</script>")  # shown as what it is
        await expect(place.locator("script, style, img, iframe, form, [onerror], a[href^=javascript]")).to_have_count(0)
    assert await page.page.evaluate("window.hurt") == 0


async def test_tools_several_rounds_and_calls(page: DemoPage) -> None:
    await page.tab("Function calling")
    await begun(page, "tools", "[[parallel_calls]] q")
    await expect(page.run("tools")).to_have_attribute("data-whole", "1")
    await expect(page.run("tools").locator(".call")).to_have_count(2)
    await expect(page.run("tools").locator(".round").last.locator(".answer")).to_have_text(re.compile(r"\w+"))


async def test_a_new_chat_is_empty_and_the_next_message_starts_over(page: DemoPage, scripted: Scripted) -> None:
    await begun(page, "chat", "[[reasoning]] first")
    await page.idle("chat")
    await begun(page, "chat", "[[reasoning]] second")
    await page.idle("chat")
    assert [message["role"] for message in scripted.requests[-1].body["messages"]] == ["user", "assistant", "user"]
    await page.at("#chat-new").click()
    await expect(page.at("#chat .empty")).to_be_visible()
    await page.at("#chat .try").first.click()
    await expect(page.at("#chat-input textarea")).to_have_value("什么是大模型？")
    await begun(page, "chat", "[[reasoning]] third")
    await page.idle("chat")
    assert [message["role"] for message in scripted.requests[-1].body["messages"]] == ["user"]


async def test_many_sends_at_once_start_one_run(attached: Demo, browser: Browser, scripted: Scripted) -> None:
    context = await browser.new_context()
    pages = [DemoPage(await context.new_page(), attached.address) for _ in range(5)]
    for page in pages:
        await page.load()
        await page.tab("Function calling")
        await page.at("#tools-input textarea").fill("[[silent seconds=60]] only once")
    before = len(scripted.chats)
    await asyncio.gather(*(page.at("#tools-input textarea").press("Enter") for page in pages))
    for page in pages:
        await expect(page.at("html")).to_have_attribute("data-tools", "running")
    notices = [await page.at("#tools-notice").inner_text() for page in pages]
    assert sum("still being written" in notice for notice in notices) == 4, notices
    assert len(scripted.chats) - before <= 1
    await pages[0].at("#tools-stop").click()
    await expect(pages[0].run("tools").locator(".notice")).to_contain_text("Stopped")
    await context.close()


async def test_eight_idle_tabs_of_one_browser_all_load_and_work(attached: Demo, browser: Browser) -> None:
    context = await browser.new_context()
    pages = []
    for _ in range(8):
        page = DemoPage(await context.new_page(), attached.address)
        await page.load()
        pages.append(page)
    await begun(pages[-1], "chat", "[[reasoning]]")
    await pages[-1].idle("chat")
    await pages[0].page.bring_to_front()
    await context.close()


async def test_without_vllm_only_the_batch_tab_says_what_it_misses(scripted: Scripted, browser: Browser, tmp_path: Path) -> None:
    """In an environment that lacks vllm and torch: ours, seen without them."""
    path = f"{ROOT}{os.pathsep}{packages_without_engines(tmp_path / 'packages')}"
    with running(tmp_path / "data", "--base-url", scripted.base_url, python=["-S"], PYTHONPATH=path) as demo:
        page = await DemoPage.open(browser, demo.address)
        await begun(page, "chat", "[[reasoning]]")
        await page.idle("chat")
        await begun_tools(page)
        await page.tab("Batch")
        await page.at("#batch-prompts textarea").fill("[[reasoning]] hello")
        await page.at("#batch-engine input[value=offline]").check()
        await expect(page.at("#batch-engine-note")).to_contain_text("vLLM is not installed")
        await page.at("#batch-run").click()
        await expect(page.at("#batch-notice")).to_contain_text("vLLM is not installed")
        await page.at("#batch-engine input[value=server]").check()
        await page.at("#batch-run").click()
        await expect(page.at("#batch-results")).to_contain_text("1 of 1 rows")
        await page.close()


def packages_without_engines(folder: Path) -> Path:
    folder.mkdir()
    for entry in Path(sysconfig.get_path("purelib")).iterdir():
        if not entry.name.lower().startswith(("vllm", "torch")):
            (folder / entry.name).symlink_to(entry)
    return folder


async def begun_tools(page: DemoPage) -> None:
    await page.tab("Function calling")
    await begun(page, "tools", "[[one_call]] q")
    await expect(page.run("tools").locator(".round").last.locator(".answer")).to_have_text(re.compile(r"42"))
