"""The chat tab's second mode, in a browser against the scripted server."""

import re

import pytest
from playwright.async_api import expect

from kimi_demo.ui.raw_pane import GUIDE_PROMPT
from tests.browser.page import DemoPage
from tests.scripted_server import Scripted

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def raw(page: DemoPage) -> None:
    await page.page.get_by_role("radio", name="Raw prompt").click()
    await expect(page.at("#raw-input textarea")).to_be_visible()
    await expect(page.at("#chat-input textarea")).to_be_hidden()


async def test_the_guides_example_as_it_is(page: DemoPage, scripted: Scripted) -> None:
    scripted.scenario("thought_in_content", thought="Deep", answer="Learning")
    await raw(page)
    await expect(page.at("#raw-input textarea")).to_have_value(GUIDE_PROMPT)
    await page.at("#raw-run").click()
    run = page.run("raw")
    await expect(run).to_have_attribute("data-whole", "1")
    body = scripted.chats[-1].body
    assert (scripted.chats[-1].path, body["prompt"]) == ("/v1/completions", GUIDE_PROMPT)
    assert (body["temperature"], body["max_tokens"], body["model"]) == (0, 1024, scripted.model_ids[0])
    await expect(run.locator(".tokens .special")).to_have_text("<think>")
    await expect(run.locator(".tokens .special")).to_be_visible()
    await expect(run.locator("[id$=-count]")).to_have_text(re.compile(r"^\d+ tokens$"))
    await expect(run.locator(".raw-output")).to_have_text("Deep</think>\n\nLearning")
    await expect(run.locator(".raw-output .special")).to_have_text("</think>")
    await expect(run.locator(".numbers")).to_contain_text("finish reason stop")
    await expect(page.at("#raw-input textarea")).to_have_value(GUIDE_PROMPT)  # to be changed and run again
    await page.load()
    await expect(page.at("#raw-input textarea")).to_be_visible()  # the mode is remembered
    await expect(page.run("raw").locator(".raw-output")).to_contain_text("Learning")


async def test_it_streams_survives_a_reload_and_stops(page: DemoPage, scripted: Scripted) -> None:
    scripted.scenario("long_thought", tokens=2_000, rate=40)
    await raw(page)
    await page.at("#raw-run").click()
    output = page.run("raw").locator(".raw-output")
    await expect(output).to_contain_text("w5")
    await page.load()
    await expect(output).to_contain_text("w20")
    await page.at("#raw-stop").click()
    await expect(page.run("raw").locator(".notice")).to_contain_text("Stopped.")
    await scripted.aborted()
    await expect(page.at("#raw-run")).to_be_visible()


async def test_a_conversation_rendered_as_its_prompt_edited_and_sent(page: DemoPage, scripted: Scripted) -> None:
    scripted.scenario("reasoning")
    await page.ask("chat", "first question")
    await expect(page.run("chat")).to_have_attribute("data-whole", "1")
    await raw(page)
    await page.at("#raw-render").click()
    field = page.at("#raw-input textarea")
    rendered = "<|im_user|>user<|im_middle|>first question<|im_end|><|im_assistant|>assistant<|im_middle|><think>"
    await expect(field).to_have_value(rendered)
    await field.fill(rendered + "I know")
    await page.at("#raw-run").click()
    await expect(page.run("raw")).to_have_attribute("data-whole", "1")
    assert scripted.chats[-1].body["prompt"] == rendered + "I know"
    await expect(page.run("raw").locator(".tokens .special").first).to_have_text("<|im_user|>")


async def test_bad_input_is_named(page: DemoPage, scripted: Scripted) -> None:
    await raw(page)
    await page.at("#raw-input textarea").fill(" ")
    await page.at("#raw-run").click()
    await expect(page.at("#raw-notice")).to_contain_text("There is nothing to send yet.")
    await page.at("#raw-guide").click()
    await page.at("#raw-temperature input").fill("")
    await page.at("#raw-run").click()
    await expect(page.at("#raw-notice")).to_contain_text("temperature")
    scripted.max_model_len = 8192
    await page.at("#raw-guide").click()
    await expect(page.at("#raw-temperature input")).to_have_value("0")
    scripted.scenario("rejected", message="no such thing")
    await page.at("#raw-run").click()
    await expect(page.run("raw").locator(".notice")).to_contain_text("no such thing")
    scripted.scenario("reasoning")
