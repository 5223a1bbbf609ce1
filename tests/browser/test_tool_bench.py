"""Choosing tools and making one's own, in a browser, against a scripted server."""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.async_api import Browser, Locator, expect

from tests.browser.page import ENGINE_MS, DemoPage
from tests.demo import Demo
from tests.scripted_server import Scripted

pytestmark = pytest.mark.asyncio(loop_scope="session")

CALL = '[[one_call name=get_weather arguments="{\\"city\\":\\"Beijing\\"}"]]'


async def opened(page: DemoPage) -> None:
    """The tab with its picker open."""
    await page.tab("Function calling")
    await expect(page.at("html")).to_have_attribute("data-bench", "shown")
    await page.at("#tool-list > summary").click()
    await expect(row(page, "add")).to_be_visible()


def row(page: DemoPage, name: str) -> Locator:
    return page.at(f'.bench-tool[data-tool="{name}"]')


async def offered(page: DemoPage, words: str) -> None:
    await expect(page.at(".bench-summary")).to_contain_text(words)


async def asked(page: DemoPage, scripted: Scripted, text: str) -> dict[str, Any]:
    """The body of the first request that a question makes; its run is over then."""
    before = len(scripted.chats)
    await page.ask("tools", text)
    await expect(page.run("tools").locator(".bubble")).to_have_text(text, timeout=ENGINE_MS)
    await expect(page.run("tools")).to_have_attribute("data-whole", "1", timeout=ENGINE_MS)
    body: dict[str, Any] = scripted.chats[before].body
    return body


async def saved(page: DemoPage) -> None:
    await page.at("#tool-editor button[type=submit]").click()
    await expect(page.at("#tool-editor")).to_be_hidden()


async def give(page: DemoPage, content: bytes) -> None:
    """A file to import."""
    await page.at("[data-bench-import]").set_input_files({"name": "tools.json", "mimeType": "application/json", "buffer": content})


async def from_template(page: DemoPage, key: str) -> None:
    await page.at("[data-bench-new]").click()
    await page.at("#tool-editor select[name=start]").select_option(key)


async def test_switches_reach_the_request_and_stay_and_are_one_visitors_own(
    page: DemoPage, scripted: Scripted, browser: Browser, attached: Demo
) -> None:
    await opened(page)
    await offered(page, "4 of 8 tools are offered")
    await row(page, "calculate").locator("input").check()
    await offered(page, "5 of 8")
    await row(page, "add").locator("input").uncheck()
    await offered(page, "4 of 8")
    body = await asked(page, scripted, "Which tools? [[answer_only]]")
    assert [tool["function"]["name"] for tool in body["tools"]] == ["mul", "compare", "count_letter_in_string", "calculate"]
    assert "tool_choice" not in body and "parallel_tool_calls" not in body
    await page.load()
    await opened(page)
    await expect(row(page, "calculate").locator("input")).to_be_checked()
    await expect(row(page, "add").locator("input")).not_to_be_checked()
    other = await DemoPage.open(browser, attached.address)
    await opened(other)
    await expect(row(other, "calculate").locator("input")).not_to_be_checked()
    await other.close()


async def test_a_named_tool_and_one_call_at_a_time(page: DemoPage, scripted: Scripted) -> None:
    await opened(page)
    await page.at("[data-bench-choice]").select_option("tool:mul")
    await offered(page, "the model must call mul")
    await page.at("[data-bench-parallel]").uncheck()
    await offered(page, "one call at a time")
    body = await asked(page, scripted, "Now [[answer_only]]")
    assert body["tool_choice"] == {"type": "function", "function": {"name": "mul"}} and body["parallel_tool_calls"] is False
    await row(page, "mul").locator("input").uncheck()
    await offered(page, "3 of 8")
    await page.ask("tools", "And now?")
    await expect(page.at("#tools-notice")).to_contain_text("The model is to call mul, but that tool is switched off or gone.")
    await expect(page.at("#tools-input textarea")).to_have_value("And now?")


async def test_an_own_tool_is_made_called_renamed_deleted_and_brought_back(page: DemoPage, scripted: Scripted) -> None:
    await opened(page)
    await from_template(page, "weather")
    schema = page.at("#tool-editor textarea[name=parameters]")
    right = await schema.input_value()
    await schema.fill(right.replace('"integer"', '"int"'))
    await page.at("#tool-editor button[type=submit]").click()
    wrong = page.at('#tool-editor [data-field="parameters"] .field-wrong')
    await expect(wrong).to_contain_text(re.compile(r"Line 9 .*'int' is not one of"))
    assert (await schema.evaluate("field => field.value.slice(field.selectionStart, field.selectionEnd)")).strip() == '"type": "int",'
    await schema.fill(right)
    await saved(page)
    await offered(page, "5 of 9")

    body = await asked(page, scripted, f"Weather? {CALL}")
    assert body["tools"][-1]["function"]["name"] == "get_weather"
    assert body["tools"][-1]["function"]["parameters"] == json.loads(right)
    answer = page.run("tools").locator(".round").last.locator(".answer")
    await expect(answer).to_contain_text('The result: {"city": "Beijing", "days": null, "forecast": "sunny", "temperature_c": 21}')

    await row(page, "get_weather").locator("[data-bench-edit]").click()
    await expect(page.at("#tool-editor h2")).to_have_text("Change get_weather")
    await page.at("#tool-editor input[name=name]").fill("climate")
    await saved(page)
    await expect(row(page, "get_weather")).to_have_count(0)
    await row(page, "climate").locator("[data-bench-delete]").click()
    await expect(row(page, "climate")).to_have_count(0)
    await expect(page.at(".bench-told")).to_contain_text("climate is deleted.")
    await page.at("[data-bench-undo]").click()
    await expect(row(page, "climate")).to_be_visible()
    await offered(page, "5 of 9")


async def test_a_tool_that_asks_waits_for_what_is_typed(page: DemoPage) -> None:
    await opened(page)
    await from_template(page, "search")
    await expect(page.at('#tool-editor [data-field="answer"]')).to_be_hidden()
    await saved(page)
    await page.ask("tools", 'Search [[one_call name=web_search arguments="{\\"query\\":\\"x\\"}"]]')
    form = page.run("tools").locator("form.ask")
    await form.locator("textarea").fill("Nothing <b>found</b>.")
    await form.locator("button[type=submit]").first.click()
    await expect(page.run("tools").locator(".round").last.locator(".answer")).to_contain_text(
        "The result: Nothing <b>found</b>.", timeout=ENGINE_MS
    )


async def test_arguments_that_do_not_fit_never_reach_the_tool(page: DemoPage) -> None:
    await opened(page)
    await from_template(page, "weather")
    await saved(page)
    await page.ask("tools", 'Weather [[one_call name=get_weather arguments="{\\"city\\":5,\\"days\\":9}"]]')
    answer = page.run("tools").locator(".round").last.locator(".answer")
    await expect(answer).to_contain_text("city: must be a string (got 5)", timeout=ENGINE_MS)
    await expect(answer).to_contain_text("days: must be at most 7 (got 9)")


async def test_out_and_in_again_and_nothing_in_a_tool_becomes_html(page: DemoPage, tmp_path: Path) -> None:
    await opened(page)
    evil = '<img src=x onerror="document.title=1">'
    tools = [
        {"type": "function", "function": {"name": "evil", "description": evil, "parameters": {"type": "object", "properties": {evil: {}}}}},
        {"type": "function", "function": {"name": "add", "parameters": {"type": "object"}}},
    ]
    await give(page, json.dumps(tools).encode())
    await expect(page.at(".bench-told")).to_contain_text("Added: 2 (evil, add_2)")
    await expect(row(page, "evil").locator(".bench-description")).to_have_text(evil)
    assert await page.at(".bench img").count() == 0
    async with page.page.expect_download() as downloading:
        await page.at('.bench-foot a[href$="export.json"]').click()
    content = await asyncio.to_thread(Path(await (await downloading.value).path()).read_text, "utf-8")
    exported = json.loads(content)
    assert [tool["function"]["name"] for tool in exported] == ["evil", "add_2"]
    assert exported[0]["function"]["description"] == evil
    await give(page, b'[\n{"name": ]')
    await expect(page.at(".bench-told")).to_contain_text("The file is no JSON: line 2")


async def test_escape_and_unsaved_changes(page: DemoPage) -> None:
    await opened(page)
    asked: list[str] = []

    async def refuse(dialog: Any) -> None:
        asked.append(dialog.message)
        await dialog.dismiss()

    page.page.on("dialog", refuse)
    await page.at("[data-bench-new]").click()
    await page.page.keyboard.press("Escape")
    await expect(page.at("#tool-editor")).to_be_hidden()
    assert not asked
    await page.at("[data-bench-new]").click()
    await page.at("#tool-editor input[name=name]").fill("half_written")
    await page.at("[data-editor-cancel]").click()
    await expect(page.at("#tool-editor")).to_be_visible()
    assert len(asked) == 1
    await expect(page.at("#tool-editor input[name=name]")).to_have_value("half_written")


TOOL = {"was": None, "name": "mine", "description": "", "parameters": '{"type": "object"}', "answering": "fixed", "text": "secret"}


@asynccontextmanager
async def visitor(attached: Demo) -> AsyncIterator[httpx.AsyncClient]:
    """Someone with a cookie of their own, without a browser."""
    async with httpx.AsyncClient(base_url=attached.address, timeout=60) as client:
        await client.get("/")
        yield client


async def test_a_visitor_neither_sees_nor_changes_anothers_tools(attached: Demo) -> None:
    async with visitor(attached) as one, visitor(attached) as other:
        assert (await one.post("/kimi/tools/own", json=TOOL)).json() == {"name": "mine"}
        assert "mine" in (await one.get("/kimi/tools")).json()["html"]
        assert "mine" not in (await other.get("/kimi/tools")).json()["html"]
        assert (await other.get("/kimi/tools/own", params={"name": "mine"})).status_code == 404
        assert (await other.get("/kimi/tools/export.json")).json() == []
        assert (await other.post("/kimi/tools/own", json={**TOOL, "was": "mine", "text": "mine now"})).status_code == 422
        assert (await other.post("/kimi/act/bench_delete", json={"name": "mine"})).json() == {"tool": None}
        assert (await other.post("/kimi/act/bench_switch", json={"name": "mine", "on": False})).status_code == 422
        assert (await one.get("/kimi/tools/own", params={"name": "mine"})).json()["text"] == "secret"


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/kimi/tools/own", b"", 400),
        ("/kimi/tools/own", json.dumps({**TOOL, "answering": "code"}).encode(), 400),
        ("/kimi/tools/own", json.dumps({**TOOL, "extra": 1}).encode(), 400),
        ("/kimi/tools/own", json.dumps({**TOOL, "name": "../../x"}).encode(), 422),
        ("/kimi/tools/own", json.dumps({**TOOL, "was": "never"}).encode(), 422),
        ("/kimi/tools/own", json.dumps({**TOOL, "parameters": "[" * 70_000}).encode(), 422),
        ("/kimi/tools/import", b"\xff\xfe", 422),
        ("/kimi/tools/import", b"[" * 6_000_000, 422),
        ("/kimi/act/bench_switch", b'{"name": "add", "on": "maybe"}', 400),
        ("/kimi/act/bench_choose", b'{"choice": "tool:rm"}', 422),
    ],
)
async def test_what_is_malformed_is_refused_in_words(attached: Demo, path: str, body: bytes, status: int) -> None:
    async with visitor(attached) as client:
        answer = await client.post(path, content=body)
        assert answer.status_code == status and "Traceback" not in answer.text
        assert "mine" not in (await client.get("/kimi/tools")).json()["html"]


async def test_a_pattern_that_explodes_is_one_failed_call(page: DemoPage) -> None:
    await opened(page)
    schema = json.dumps({"type": "object", "properties": {"a": {"type": "string", "pattern": "^(a+)+$"}}})
    await page.at("[data-bench-new]").click()
    await page.at("#tool-editor input[name=name]").fill("explodes")
    await page.at("#tool-editor textarea[name=parameters]").fill(schema)
    await page.at("#tool-editor input[value=fixed]").check()
    await page.at("#tool-editor textarea[name=text]").fill("never")
    await saved(page)
    await page.ask("tools", f'Now [[one_call name=explodes arguments="{{\\"a\\":\\"{"a" * 40}b\\"}}"]]')
    answer = page.run("tools").locator(".round").last.locator(".answer")
    await expect(answer).to_contain_text("could not be checked: it took too long", timeout=ENGINE_MS)
