"""The switches in the header: light and dark, the language, presentation. None of them loses what is typed, running or scrolled to."""

import re

import pytest
from playwright.async_api import Browser, expect

from kimi_demo.ui.texts import texts
from tests.browser.page import LOADED_MS, DemoPage
from tests.demo import Demo
from tests.scripted_server import Scripted

pytestmark = pytest.mark.asyncio(loop_scope="session")

SHOWN = """
window.shown = new Set();
const look = () => { if (document.body) window.shown.add(getComputedStyle(document.body).backgroundColor); requestAnimationFrame(look); };
look();
"""
"""Remembers every colour that the page was drawn in."""


async def speaks(page: DemoPage, language: str) -> None:
    """Until the page is there in `language`, and what the browser remembers is in its fields."""
    say = texts(language).say
    await expect(page.at("html")).to_have_attribute("lang", re.compile(f"^{language}"), timeout=LOADED_MS)
    await expect(page.page.get_by_role("tab", name=say("tools.tab"))).to_be_visible(timeout=LOADED_MS)
    await expect(page.at("html")).to_have_attribute("data-restored", "1", timeout=LOADED_MS)


async def test_dark_is_chosen_remembered_and_there_from_the_first_picture_on(attached: Demo, browser: Browser) -> None:
    page = await DemoPage.open(browser, attached.address, color_scheme="light")
    dark, system = page.at('[data-theme="dark"]'), page.at('[data-theme="system"]')
    await expect(system).to_have_attribute("aria-checked", "true")
    await expect(page.at("body")).not_to_have_class(re.compile(r"\bdark\b"))
    await system.press("ArrowLeft")  # around the corner, with the keyboard
    await expect(dark).to_be_focused()
    await expect(page.at("body")).to_have_class(re.compile(r"\bdark\b"))
    await page.page.add_init_script(SHOWN)
    await page.load()
    await expect(dark).to_have_attribute("aria-checked", "true")
    colours = await page.page.evaluate("[...window.shown]")
    assert len(colours) > 0 and all(max(map(int, re.findall(r"\d+", colour)[:3])) < 60 for colour in colours), colours

    await system.click()  # from now on as the system has it, at once
    await expect(page.at("body")).not_to_have_class(re.compile(r"\bdark\b"))
    await page.page.emulate_media(color_scheme="dark")
    await expect(page.at("body")).to_have_class(re.compile(r"\bdark\b"))
    await page.at('[data-theme="light"]').click()
    await expect(page.at("body")).not_to_have_class(re.compile(r"\bdark\b"))
    assert not page.complaints
    await page.close()


async def test_the_page_speaks_the_browsers_language_until_another_is_chosen(attached: Demo, browser: Browser) -> None:
    context = await browser.new_context(locale="zh-CN")
    page = DemoPage(await context.new_page(), attached.address)
    await page.page.goto(page.address)
    await speaks(page, "zh")
    assert await page.page.title() == texts("zh").say("page.title")
    await expect(page.at("#chat-input textarea")).to_have_attribute("placeholder", texts("zh").say("chat.placeholder"))
    await page.page.get_by_role("button", name="English", exact=True).click()
    await speaks(page, "en")
    assert await page.page.title() == texts("en").say("page.title")
    await page.load()  # remembered
    await speaks(page, "en")
    await page.page.get_by_role("button", name="中文", exact=True).click()
    await speaks(page, "zh")
    # Sentences made on the server, and the words of Gradio's own page.
    await page.ask("chat", "[[rejected]] no")
    await page.idle("chat")
    await expect(page.run("chat").locator(".notice")).to_contain_text(re.compile(r"[\u4e00-\u9fff]"))
    assert await page.page.evaluate("navigator.language") == "zh-CN"
    assert [each for each in page.complaints if "status of 400" not in each] == []
    await page.close()


async def test_a_change_of_language_loses_nothing(attached: Demo, browser: Browser, scripted: Scripted) -> None:
    page = await DemoPage.open(browser, attached.operator)
    scripted.scenario("reasoning", answer="line\n\n" * 80)
    await page.ask("chat", "at length")
    await expect(page.run("chat")).to_have_attribute("data-whole", "1")
    scripted.scenario("reasoning")
    reply = "[[long_thought tokens=6000 rate=40]] go on"
    await page.ask("chat", reply)
    await expect(page.run("chat").locator(".thought-text")).to_have_text(re.compile(r"w9\b"))
    await page.at("#chat-input textarea").fill("half a thought")
    await page.at("#chat-max-tokens input").fill("777")
    await expect(page.at("#chat-parameters-open")).to_contain_text("1 changed")
    await page.at("#chat-seed :is(textarea, input)").evaluate("box => window.kimi.write(box, '42')")
    await page.at("#chat .live").evaluate("box => { box.scrollTop = 300 }")

    await page.tab("Batch")
    await page.at("#batch-prompts textarea").fill("one\ntwo")
    await page.at("#batch-seed textarea").fill("7")
    await page.at("#batch-preset input").click()
    await page.page.get_by_role("option", name="Moonshot, instant").click()
    await expect(page.at("#batch-thinking input")).not_to_be_checked()
    await page.at("#batch-max-tokens input").fill("99")
    await page.tab("Server")
    await page.at('[data-srv-view="launch"]').click()
    await page.at('#srv-form [name="served_model_name"]').fill("kimi")
    await page.tab("QA")
    await page.at('#qa-suites input[value="dialect"]').check()
    await page.at("#qa-repeats").fill("3")

    await page.page.get_by_role("button", name="中文", exact=True).click()
    await speaks(page, "zh")
    say = texts("zh").say
    await expect(page.page.get_by_role("tab", name=say("qa_page.tab"))).to_have_attribute("aria-selected", "true")
    await expect(page.at('#qa-suites input[value="dialect"]')).to_be_checked()
    await expect(page.at("#qa-repeats")).to_have_value("3")
    await page.tab(say("server_page.tab"))
    await expect(page.at('#srv-form [name="served_model_name"]')).to_have_value("kimi")
    await expect(page.at("#srv-line-shell")).to_contain_text("--served-model-name kimi")
    await page.tab(say("batch.tab"))
    await expect(page.at("#batch-prompts textarea")).to_have_value("one\ntwo")
    await expect(page.at("#batch-seed textarea")).to_have_value("7")
    await expect(page.at("#batch-max-tokens input")).to_have_value("99")
    await expect(page.at("#batch-preset input")).to_have_value(say("preset.moonshot_instant.label"))
    await expect(page.at("#batch-preset-source")).to_contain_text(say("preset.moonshot_instant.source"))
    await expect(page.at("#batch-thinking input")).not_to_be_checked()
    await page.tab(say("chat.tab"))
    await expect(page.at("#chat-input textarea")).to_have_value("half a thought")
    await expect(page.at("#chat-max-tokens input")).to_have_value("777")
    await expect(page.at("#chat-seed :is(textarea, input)")).to_have_value("42")
    await expect(page.run("chat").locator(".bubble")).to_have_text(reply)
    await expect(page.at("html")).to_have_attribute("data-chat", "running")
    thought = page.run("chat").locator(".thought-text")
    await expect(thought).to_contain_text("w0 w1 w2")
    seen = await thought.inner_text()
    await expect(thought).not_to_have_text(seen)
    assert 250 < await page.at("#chat .live").evaluate("box => box.scrollTop") < 350
    await page.at("#chat-stop").click()
    await page.idle("chat")

    # A message that is being changed is still being changed.
    await page.run("chat").locator("[data-edit]").click()
    await page.at("#chat .editor textarea").fill("said better")
    await page.page.get_by_role("button", name="English", exact=True).click()
    await speaks(page, "en")
    await expect(page.at("#chat .editor textarea")).to_have_value("said better")
    assert not page.complaints
    await page.close()


async def test_presentation_shows_the_conversation_alone_until_escape(page: DemoPage) -> None:
    await page.page.set_viewport_size({"width": 2560, "height": 1440})
    await page.ask("chat", "[[reasoning]] for all to see")
    await page.idle("chat")
    size = "element => parseFloat(getComputedStyle(element).fontSize)"
    before = await page.at("#chat .answer p").first.evaluate(size)
    await page.at("button[data-present]").click()
    for hidden in ("#header", "#chat-input", "#chat-list", "#chat-send", ".turn-foot", "#chat .numbers", "[role=tab]"):
        await expect(page.at(hidden).first).to_be_hidden()
    box = await page.at("#chat .live").bounding_box()
    assert box is not None and (box["width"], box["height"]) == (2560, 1440)
    assert await page.at("#chat .answer p").first.evaluate(size) > 1.8 * before
    assert page.page.url.endswith("?present=1")  # the address can be kept for a wall
    await page.load_again()
    await expect(page.at("#chat-input")).to_be_hidden()
    await expect(page.run("chat").locator(".bubble")).to_be_visible()
    await page.page.keyboard.press("Escape")
    await expect(page.at("#chat-input")).to_be_visible()
    assert "present" not in page.page.url


async def test_nothing_moves_by_itself_where_that_is_not_wanted(page: DemoPage) -> None:
    await page.page.emulate_media(reduced_motion="reduce")
    await page.ask("chat", "[[silent seconds=60]]")
    await expect(page.run("chat").locator(".spinner")).to_be_visible()
    assert await page.page.evaluate("document.getAnimations().filter((each) => each.playState === 'running').length") == 0
    await page.at("#chat-stop").click()
    await page.idle("chat")


async def test_the_header_fits_a_phone(attached: Demo, browser: Browser) -> None:
    page = await DemoPage.open(browser, attached.address, viewport={"width": 360, "height": 800})
    for each in ("#model-badge", '[data-theme="dark"]', "#switches [data-language]", "#chat-send", "#chat-thinking"):
        box = await page.at(each).bounding_box()
        assert box is not None and box["x"] >= 0 and box["x"] + box["width"] <= 360 and box["y"] + box["height"] <= 800, (each, box)
    drawer = page.at(".chat-list .drawer")  # its name and its arrow are in one line
    assert await drawer.evaluate("box => box.scrollHeight <= box.clientHeight && box.scrollWidth <= box.clientWidth")
    badge, title = await page.at("#model-badge").bounding_box(), await page.at("#header h1").bounding_box()
    assert badge is not None and title is not None and badge["width"] > 320 and badge["y"] > title["y"] + title["height"]
    await page.close()
