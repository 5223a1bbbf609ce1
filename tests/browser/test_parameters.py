"""The chat's parameters in a browser: what a person sets reaches the request, stays over a reload, and can be taken back."""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Route, expect

from tests.browser.page import DemoPage
from tests.demo import Demo, running
from tests.scripted_server import Scripted

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest_asyncio.fixture(loop_scope="session")
async def page(attached: Demo, browser: Browser) -> AsyncIterator[DemoPage]:
    found = await DemoPage.open(browser, attached.address)
    await settled(found)
    yield found
    assert not found.complaints
    await found.close()


async def settled(page: DemoPage) -> None:
    """Until the values that the browser kept are in their fields: the page's load event has been answered."""
    await page.page.wait_for_load_state("networkidle")


async def opened(page: DemoPage) -> None:
    await page.at("#chat-parameters-open").click()
    await expect(page.at("#chat-parameters")).to_be_visible()


async def sent(page: DemoPage, scripted: Scripted, text: str = "hello") -> dict[str, Any]:
    """The body of the request that a message makes."""
    before = len(scripted.chats)
    await page.ask("chat", text)
    await scripted.arrived(before + 1)
    await page.idle("chat")
    body: dict[str, Any] = scripted.chats[-1].body
    return body


async def test_the_default_is_the_guides_preset_and_the_drawer_is_shut(page: DemoPage, scripted: Scripted) -> None:
    await expect(page.at("#chat-parameters")).to_be_hidden()
    await expect(page.at("#chat-parameters-open")).to_have_text("Parameters")
    body = await sent(page, scripted)
    assert {name: body[name] for name in ("temperature", "top_p", "top_k", "min_p", "max_tokens")} == {
        "temperature": 0.6,
        "top_p": 0.95,
        "top_k": 20,
        "min_p": 0,
        "max_tokens": 4096,
    }
    assert not {"seed", "stop", "presence_penalty", "frequency_penalty", "repetition_penalty", "structured_outputs"} & set(body)


async def test_what_is_set_is_sent_marked_kept_and_reset(page: DemoPage, scripted: Scripted) -> None:
    await opened(page)
    for name, value in (
        ("temperature", "0.9"),
        ("top-p", "0.8"),
        ("top-k", ""),
        ("min-p", "0.05"),
        ("seed", "7"),
        ("presence-penalty", "0.5"),
        ("frequency-penalty", "-0.5"),
        ("repetition-penalty", "1.1"),
    ):
        await page.at(f"#chat-{name} input").fill(value)
    await page.at("#chat-stop-strings textarea").fill("END\n\\n\\n")
    await page.at("#chat-json-schema textarea").fill('{"type": "object", "properties": {"a": {"type": "integer"}}}')
    await expect(page.at("#chat-parameters-open")).to_have_text("Parameters · 10 changed")
    await expect(page.at("#chat-temperature-mark .changed")).to_have_text("Temperature: changed from 0.6")
    await page.page.keyboard.press("Escape")
    await expect(page.at("#chat-parameters")).to_be_hidden()

    expected = {
        "temperature": 0.9,
        "top_p": 0.8,
        "min_p": 0.05,
        "seed": 7,
        "presence_penalty": 0.5,
        "frequency_penalty": -0.5,
        "repetition_penalty": 1.1,
        "stop": ["END", "\n\n"],
        "structured_outputs": {"json": {"type": "object", "properties": {"a": {"type": "integer"}}}},
    }
    body = await sent(page, scripted)
    assert {name: body.get(name) for name in expected} == expected and "top_k" not in body

    await page.load()
    await expect(page.at("#chat-parameters-open")).to_have_text("Parameters · 10 changed")
    body = await sent(page, scripted)
    assert {name: body.get(name) for name in expected} == expected

    await opened(page)
    await page.at("#chat-temperature-mark .act").click()
    await expect(page.at("#chat-temperature input")).to_have_value("0.6")
    await expect(page.at("#chat-temperature-mark .changed")).to_have_count(0)
    await expect(page.at("#chat-parameters-open")).to_have_text("Parameters · 9 changed")
    await page.at("#chat-parameters-reset").click()
    await expect(page.at("#chat-parameters-open")).to_have_text("Parameters")
    await expect(page.at("#chat-json-schema textarea")).to_have_value("")
    body = await sent(page, scripted)
    assert (body["temperature"], body["top_k"]) == (0.6, 20) and "structured_outputs" not in body


async def test_what_is_changed_while_the_server_still_answers_about_another_field_is_kept_too(page: DemoPage, attached: Demo) -> None:
    await opened(page)
    asked, answer = asyncio.Event(), asyncio.Event()

    async def slowly(route: Route) -> None:
        asked.set()
        await answer.wait()
        await route.continue_()

    await page.page.route("**/run/predict*", slowly)
    await page.page.evaluate(
        "document.getElementById('chat-parameters-sync').addEventListener('click', () => { window.pressed = (window.pressed || 0) + 1; })"
    )
    await page.at("#chat-top-p input").fill("0.7")
    await asked.wait()
    await page.at("#chat-min-p input").fill("0.2")
    await page.page.wait_for_function("window.pressed >= 2")
    answer.set()
    await expect(page.at("#chat-top-p-mark")).to_contain_text("0.95")
    await expect(page.at("#chat-min-p-mark .changed")).to_be_visible()
    await page.page.unroute("**/run/predict*")
    await page.load()
    await settled(page)
    await expect(page.at("#chat-min-p input")).to_have_value("0.2")


async def test_another_visitor_has_the_defaults(page: DemoPage, attached: Demo, browser: Browser) -> None:
    await opened(page)
    await page.at("#chat-temperature input").fill("1.5")
    await expect(page.at("#chat-parameters-open")).to_have_text("Parameters · 1 changed")
    other = await DemoPage.open(browser, attached.address)
    await settled(other)
    await expect(other.at("#chat-parameters-open")).to_have_text("Parameters")
    await other.close()


async def test_a_bad_value_is_named_in_place_and_the_message_is_not_lost(page: DemoPage, scripted: Scripted) -> None:
    before = len(scripted.chats)
    await opened(page)
    await page.at("#chat-top-p input").fill("3")
    await expect(page.at("#chat-top-p-mark .wrong")).to_contain_text("top_p")
    await page.at("#chat-json-schema textarea").fill('{\n "type": "objct"\n}')
    await expect(page.at("#chat-json-schema-mark .wrong")).to_contain_text("Line 2 of the JSON Schema")
    await page.page.keyboard.press("Escape")
    await page.ask("chat", "precious")
    await expect(page.at("#chat-notice")).to_contain_text("Line 2")
    await expect(page.at("#chat-input textarea")).to_have_value("precious")
    await opened(page)
    await page.at("#chat-json-schema-mark .act").click()
    await page.page.keyboard.press("Escape")
    await page.at("#chat-input textarea").press("Enter")
    await expect(page.at("#chat-notice")).to_contain_text("top_p")
    await expect(page.at("#chat-input textarea")).to_have_value("precious")
    assert len(scripted.chats) == before


async def test_preset_and_thinking_go_together(page: DemoPage, scripted: Scripted) -> None:
    await page.at("#chat-thinking input").uncheck()
    offer = page.at("#chat-preset-offer")
    await expect(offer).to_contain_text("Moonshot, instant")
    await offer.click()
    await expect(offer).to_be_hidden()
    body = await sent(page, scripted)
    assert body["chat_template_kwargs"] == {"thinking": False} and "top_k" not in body and body["temperature"] == 0.6
    await opened(page)
    await page.at("#chat-preset input").click()
    await page.page.get_by_role("option", name="Moonshot, thinking").click()
    await expect(page.at("#chat-thinking input")).to_be_checked()
    await expect(page.at("#chat-temperature input")).to_have_value("1")
    await page.page.keyboard.press("Escape")
    body = await sent(page, scripted)
    assert body["chat_template_kwargs"] == {"thinking": True} and body["temperature"] == 1


async def test_what_is_typed_right_after_a_preset_is_chosen_stays(page: DemoPage, scripted: Scripted) -> None:
    await opened(page)
    answer = asyncio.Event()

    async def slowly(route: Route) -> None:
        await answer.wait()
        await route.continue_()

    await page.page.route("**/run/predict*", slowly)
    await page.at("#chat-preset input").click()
    await page.page.get_by_role("option", name="Moonshot, thinking").click()
    await expect(page.at("#chat-temperature input")).to_have_value("1")
    await page.at("#chat-temperature input").fill("0.3")
    answer.set()
    await expect(page.at("#chat-temperature-mark .changed")).to_be_visible()
    await expect(page.at("#chat-temperature input")).to_have_value("0.3")
    await expect(page.at("#chat-preset")).to_contain_text("Moonshot")
    await page.page.keyboard.press("Escape")
    assert (await sent(page, scripted))["temperature"] == 0.3


async def test_escape_in_the_drawer_does_not_stop_the_reply(page: DemoPage) -> None:
    await page.ask("chat", "[[long_thought tokens=400 rate=40]]")
    await expect(page.at("html")).to_have_attribute("data-chat", "running")
    await opened(page)
    await page.page.keyboard.press("Escape")
    await expect(page.at("#chat-parameters")).to_be_hidden()
    await expect(page.at("html")).to_have_attribute("data-chat", "running")
    await page.page.keyboard.press("Escape")
    await page.idle("chat")


@pytest.mark.parametrize("kind", ["openai", "moonshot"])
async def test_what_the_server_does_not_take_is_off_and_says_why(kind: str, scripted: Scripted, browser: Browser, tmp_path: Any) -> None:
    with running(tmp_path, "--base-url", scripted.base_url, "--endpoint-kind", kind) as demo:
        page = await DemoPage.open(browser, demo.address)
        await settled(page)
        await opened(page)
        await expect(page.at("#chat-top-k input")).to_be_disabled()
        await expect(page.at("#chat-top-k")).to_contain_text(f"Off: this kind of server ({kind}) does not take it.")
        if kind == "openai":
            await expect(page.at("#chat-temperature input")).to_be_enabled()
            await page.at("#chat-json-schema textarea").fill('{"type": "object"}')
            await expect(page.at("#chat-parameters-open")).to_contain_text("1 changed")
        else:
            await expect(page.at("#chat-temperature input")).to_be_disabled()
        await page.page.keyboard.press("Escape")
        body = await sent(page, scripted)
        assert "top_k" not in body and ("temperature" in body) == (kind == "openai")
        if kind == "openai":
            assert body["response_format"] == {"type": "json_schema", "json_schema": {"name": "answer", "schema": {"type": "object"}}}
        await page.close()


async def test_on_a_phone_the_drawer_fills_the_screen_and_nothing_runs_over(attached: Demo, browser: Browser) -> None:
    page = await DemoPage.open(browser, attached.address, viewport={"width": 360, "height": 740})
    await settled(page)
    await opened(page)
    box = await page.at("#chat-parameters").bounding_box()
    assert box is not None and (box["x"], box["y"], box["width"], box["height"]) == (0, 0, 360, 740)
    assert await page.page.evaluate(
        "document.documentElement.scrollWidth <= 360 && document.querySelector('#chat-parameters').scrollWidth <= 360"
    )
    await page.at("[data-parameters-close]").click()
    await expect(page.at("#chat-parameters")).to_be_hidden()
    await page.close()


@pytest.mark.parametrize("size", [(360, 740), (390, 844), (1280, 800)])
async def test_the_field_and_all_options_are_in_sight(size: tuple[int, int], attached: Demo, browser: Browser) -> None:
    width, height = size
    page = await DemoPage.open(browser, attached.address, viewport={"width": width, "height": height})
    await settled(page)
    for name in ("chat-input", "chat-send", "chat-thinking", "chat-max-tokens", "chat-system", "chat-parameters-open", "chat-new"):
        box = await page.at(f"#{name}").bounding_box()
        assert box is not None and box["y"] + box["height"] <= height and 0 <= box["x"] <= box["x"] + box["width"] <= width, (name, box)
    tops = await page.page.get_by_role("tab").evaluate_all("(tabs) => tabs.map((tab) => Math.round(tab.getBoundingClientRect().top))")
    assert len(set(tops)) == 1, "the tabs stand in one line"
    await expect(page.at("footer .divider").last).to_be_hidden()
    # A notice takes its place from the conversation, not from the field.
    await page.ask("chat", " ")
    await expect(page.at("#chat-notice .notice")).to_be_visible()
    field = await page.at("#chat-input").bounding_box()
    assert field is not None and field["y"] + field["height"] <= height
    await page.close()


async def test_the_room_is_shown_and_what_does_not_fit_is_lowered(page: DemoPage, scripted: Scripted) -> None:
    await page.at("#chat-input textarea").fill("How much room is there?")
    await expect(page.at("#chat-room")).to_have_text(re.compile(r"^8,1\d\d of 8,192 tokens left$"))
    await page.at("#chat-max-tokens input").fill("9000")
    await expect(page.at("#chat-room")).to_have_text(re.compile(r"max tokens 9,000 will be lowered to that$"))
    body = await sent(page, scripted, "How much room is there?")
    counted = [request for request in scripted.requests if request.path == "/tokenize"]
    assert counted and 8000 < body["max_tokens"] < 8192
    sent_limit = f"{body['max_tokens']:,}"
    await expect(page.run("chat").locator(".notes")).to_contain_text(f"Max tokens was lowered from 9,000 to {sent_limit}")


async def test_half_a_token_is_refused_not_rounded(page: DemoPage, scripted: Scripted) -> None:
    before = len(scripted.chats)
    await page.at("#chat-max-tokens input").fill("4.5")
    await page.ask("chat", "hello")
    await expect(page.at("#chat-notice")).to_contain_text('max_tokens: "4.5" cannot be used (a whole number is needed).')
    await expect(page.at("#chat-input textarea")).to_have_value("hello")
    assert len(scripted.chats) == before


async def test_a_thinking_budget_is_sent_where_the_server_takes_it(page: DemoPage, scripted: Scripted) -> None:
    await opened(page)
    field = page.at("#chat-thinking-token-budget input")
    await field.fill("-1")
    await expect(page.at("#chat-thinking-token-budget-mark .wrong")).to_contain_text("it must be at least 0")
    await field.fill("40")
    await expect(page.at("#chat-thinking-token-budget-mark .changed")).to_be_visible()
    await page.page.keyboard.press("Escape")
    assert (await sent(page, scripted))["thinking_token_budget"] == 40
    await expect(page.run("chat")).to_have_attribute("data-whole", "1")
    await expect(page.run("chat").locator(".notes")).to_be_empty()
    scripted.scenario("reasoning", answer="still thinking</think>The answer.")  # cut, it thinks on in its answer
    try:
        await page.ask("chat", "go on")
        run = page.run("chat")
        await expect(run.locator(".bubble")).to_have_text("go on")
        await expect(run).to_have_attribute("data-whole", "1")
    finally:
        scripted.scenario("reasoning")
    await expect(run.locator(".answer > div > p")).to_have_text("The answer.")
    await run.get_by_text("Thought that went on after its budget").click()
    await expect(run.locator(".answer .thought-text")).to_have_text("still thinking")


async def test_a_server_that_refuses_a_thinking_budget_is_asked_without_and_the_field_says_why_it_is_off(
    scripted: Scripted, browser: Browser, tmp_path: Any
) -> None:
    with running(tmp_path, "--base-url", scripted.base_url) as demo:
        page = await DemoPage.open(browser, demo.address)
        await settled(page)
        await opened(page)
        await expect(page.at("#chat-thinking-token-budget input")).to_be_enabled()
        await page.at("#chat-thinking-token-budget input").fill("40")
        await expect(page.at("#chat-parameters-open")).to_contain_text("1 changed")
        await page.page.keyboard.press("Escape")
        await page.ask("chat", "[[no_budget]] hello")
        await expect(page.run("chat")).to_have_attribute("data-whole", "1")
        assert [chat.body.get("thinking_token_budget") for chat in scripted.chats[-2:]] == [40, None]
        await expect(page.run("chat").locator(".notes")).to_contain_text("it was asked without the budget")
        await page.load()
        await settled(page)
        await opened(page)
        field = page.at("#chat-thinking-token-budget")
        await expect(field.locator("input")).to_be_disabled()
        await expect(field).to_contain_text("Off: this server has no means to limit the thought.")
        await page.close()


async def test_a_turn_shows_its_request_and_what_came_of_it(page: DemoPage, attached: Demo, scripted: Scripted, browser: Browser) -> None:
    body = await sent(page, scripted, "[[reasoning]] it's <b>hard</b>")
    run = page.run("chat")
    numbers = run.locator(".numbers")
    await expect(numbers).to_have_text(
        re.compile(r"\d+ tokens in.*thought \d+ tokens.*answer \d+ tokens.*first token .*finish reason stop.*Kimi-K2\.5")
    )
    await page.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    asked: list[str] = []
    page.page.on("request", lambda request: asked.append(request.url))
    await numbers.get_by_text("Show request").click()
    forms = numbers.locator(".forms > details")
    await expect(forms).to_have_count(4)
    assert sum("/kimi/request/" in url for url in asked) == 1
    assert json.loads(await forms.nth(0).locator("pre").inner_text()) == body
    copied = []
    for number in range(4):
        if number:
            await forms.nth(number).locator("summary").click()
        await forms.nth(number).locator(".copy").click()
        await expect(forms.nth(number).locator(".copy")).to_have_attribute("data-done", "1")
        copied.append(await page.page.evaluate("navigator.clipboard.readText()"))
    assert json.loads(copied[0]) == body and copied[1].startswith(f"curl -sS -N {scripted.base_url}/chat/completions")
    assert "OpenAI(" in copied[2] and json.loads(copied[3])["choices"][0]["finish_reason"] == "stop"

    where = next(url for url in asked if "/kimi/request/" in url)
    assert (await page.page.request.get(where)).status == 200
    other = await DemoPage.open(browser, attached.address)
    for path in ("", "/curl"):
        assert (await other.page.request.get(where + path)).status == 404
    await other.close()
    for wrong in (where[:-1] + "7", where[:-1] + "x", where + "/nothing"):
        assert (await page.page.request.get(wrong)).status in (404, 422)
