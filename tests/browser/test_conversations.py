"""Conversations in a browser: versions, the list, messages in line, two tabs, files; against the scripted server."""

import json
import re
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, BrowserContext, Locator, expect

from tests.browser.page import DemoPage
from tests.demo import Demo
from tests.scripted_server import Scripted

pytestmark = pytest.mark.asyncio(loop_scope="session")

SLOW = "[[long_thought tokens=4000 rate=40]] slow"


@pytest_asyncio.fixture(loop_scope="session")
async def page(attached: Demo, browser: Browser) -> AsyncIterator[DemoPage]:
    found = await DemoPage.open(browser, attached.address)
    await expect(found.at("#chat .empty")).to_be_visible()
    yield found
    assert not found.complaints
    await found.close()


async def begun(page: DemoPage, question: str) -> None:
    await page.ask("chat", question)
    await expect(page.run("chat").locator(".bubble")).to_have_text(question)


async def said(page: DemoPage, *questions: str) -> None:
    for question in questions:
        await begun(page, question)
        await page.idle("chat")
        await expect(page.run("chat").locator(".actions .act").first).to_be_visible()


async def questions(page: DemoPage, *expected: str) -> None:
    await expect(page.at("#chat [data-run] .bubble")).to_have_text(list(expected))


def act(page: DemoPage, name: str, run: int = -1) -> Locator:
    return page.run("chat", run).locator(f"[data-act={name}]")


async def more(page: DemoPage, name: str, run: int = -1) -> None:
    """Presses a button in the menu of a turn."""
    await page.run("chat", run).locator(".menu summary").click()
    await act(page, name, run).last.click()


def messages(scripted: Scripted) -> list[tuple[str, str]]:
    return [(message["role"], message["content"]) for message in scripted.chats[-1].body["messages"]]


async def second_tab(page: DemoPage) -> DemoPage:
    """Another tab of the same browser."""
    tab = DemoPage(await page.page.context.new_page(), page.address)
    await tab.load()
    return tab


# Versions


async def test_try_again_shows_the_new_version_and_arrows_lead_back(page: DemoPage, scripted: Scripted) -> None:
    await said(page, "one", "two")
    await act(page, "chat_again").first.click()
    await expect(page.run("chat").locator(".version")).to_have_text("2/2")
    await page.idle("chat")
    await questions(page, "one", "two")
    assert [text for _, text in messages(scripted)][-1] == "two"
    await page.run("chat").get_by_role("button", name="Previous version").click()
    await expect(page.run("chat").locator(".version")).to_have_text("1/2")
    await page.load()
    await expect(page.run("chat").locator(".version")).to_have_text("1/2")
    await page.run("chat").get_by_role("button", name="Next version").click()
    await expect(page.run("chat").locator(".version")).to_have_text("2/2")
    await expect(page.at("#chat .version")).to_have_count(1)


async def test_the_other_mode_answers_beside_the_first(page: DemoPage, scripted: Scripted) -> None:
    await said(page, "one")
    await more(page, "chat_again")
    await expect(page.run("chat").locator(".version")).to_have_text("2/2")
    await page.idle("chat")
    await expect(page.run("chat").locator(".thought")).to_be_hidden()
    assert scripted.chats[-1].body["chat_template_kwargs"]["thinking"] is False
    await more(page, "chat_again")
    await expect(page.run("chat").locator(".version")).to_have_text("3/3")
    await page.idle("chat")
    await expect(page.run("chat").locator(".thought")).to_be_visible()


async def test_two_versions_are_read_side_by_side(page: DemoPage, scripted: Scripted, attached: Demo, browser: Browser) -> None:
    await said(page, "one")
    scripted.scenario("reasoning", answer="Instant.")
    try:
        await more(page, "chat_again")
        await expect(page.run("chat").locator(".version")).to_have_text("2/2")
        await expect(page.run("chat")).to_have_attribute("data-whole", "1")
    finally:
        scripted.scenario("reasoning")
    await page.run("chat").get_by_role("button", name="Side by side").click()
    other = page.run("chat").locator(".beside")
    await expect(other).to_contain_text("Version 1")
    await expect(other.locator(".answer")).to_contain_text("language model")
    await expect(other.locator(".question")).to_be_hidden()
    await expect(other.get_by_role("button")).to_have_count(0)
    left, right = await other.bounding_box(), await page.run("chat").locator(".run > .reply").last.bounding_box()
    assert left is not None and right is not None and left["x"] + left["width"] <= right["x"], "the earlier one to the left"
    await other.locator("details.thought summary").click()
    await expect(other.locator(".thought-text")).to_contain_text("The user wants a short answer.")
    await page.run("chat").get_by_role("button", name="Side by side").click()
    await expect(other).to_have_count(0)
    # Only versions of one's own turn.
    run = await page.run("chat").get_attribute("data-run")
    first = await page.run("chat").locator("[data-beside]").get_attribute("data-beside")
    where = f"{attached.address}/kimi/chats/beside/{first}?of={run}"
    assert (await page.page.request.get(where)).status == 200
    stranger = await DemoPage.open(browser, attached.address)
    assert (await stranger.page.request.get(where)).status == 404
    await stranger.close()
    await said(page, "two")
    second = await page.run("chat").get_attribute("data-run")
    assert (await page.page.request.get(f"{attached.address}/kimi/chats/beside/{second}?of={run}")).status == 404


async def test_an_earlier_message_is_edited_and_the_conversation_goes_on_from_there(page: DemoPage, scripted: Scripted) -> None:
    await said(page, "one", "two", "three")
    await page.run("chat", 1).get_by_role("button", name="Edit message").click()
    editor = page.at("#chat .editor textarea")
    await expect(editor).to_have_value("two")
    await editor.press("Escape")
    await expect(editor).to_have_count(0)
    await page.run("chat", 1).get_by_role("button", name="Edit message").click()
    await editor.fill("zwei\nund mehr")
    await editor.press("Enter")
    await questions(page, "one", "zwei\nund mehr")
    await page.idle("chat")
    assert [text for role, text in messages(scripted) if role == "user"] == ["one", "zwei\nund mehr"]
    await page.run("chat", 1).get_by_role("button", name="Previous version").click()
    await questions(page, "one", "two", "three")


async def test_arrow_up_in_the_empty_field_edits_the_last_message(page: DemoPage) -> None:
    await said(page, "one", "two")
    field = page.at("#chat-input textarea")
    await field.fill("not empty")
    await field.press("ArrowUp")
    await expect(page.at("#chat .editor")).to_have_count(0)
    await field.fill("")
    await field.press("ArrowUp")
    await expect(page.at("#chat .editor textarea")).to_have_value("two")
    await expect(page.at("#chat .editor textarea")).to_be_focused()
    await page.at("#chat .editor textarea").fill("  ")
    await page.at("#chat .editor textarea").press("Enter")
    await expect(page.at("#chat-notice")).to_contain_text("nothing to send")
    page.complaints.clear()  # the browser's own line about the refusal
    await page.at("#chat .editor textarea").fill("due")
    await page.at("#chat .editor").get_by_role("button", name="Send").click()
    await questions(page, "one", "due")
    await page.idle("chat")


async def test_what_is_taken_back_can_be_brought_back(page: DemoPage, scripted: Scripted) -> None:
    await said(page, "one", "two")
    await expect(act(page, "chat_take_back", 0)).to_be_hidden()  # only the last turn can be
    await more(page, "chat_take_back")
    await questions(page, "one")
    await page.at("#chat-tail").get_by_role("button", name="Bring it back").click()
    await questions(page, "one", "two")
    await more(page, "chat_take_back")
    await questions(page, "one")
    await said(page, "zwei")
    assert [text for role, text in messages(scripted) if role == "user"] == ["one", "zwei"]
    await page.run("chat").get_by_role("button", name="Previous version").click()
    await questions(page, "one", "two")


async def test_copying_gives_what_the_model_wrote(attached: Demo, browser: Browser) -> None:
    page = await DemoPage.open(browser, attached.address, permissions=["clipboard-read", "clipboard-write"])
    await said(page, "[[reasoning]] one")
    await page.run("chat").get_by_role("button", name="Copy answer").click()
    await expect(page.run("chat").locator("[data-what=answer][data-done]")).to_have_count(1)
    copied = await page.page.evaluate("navigator.clipboard.readText()")
    assert copied.startswith("A **language model** predicts text.\n\n```python\n    print('hi')\n```")
    await page.run("chat").locator(".menu summary").click()
    await page.run("chat").get_by_role("button", name="Copy both").click()
    await expect(page.run("chat").locator("[data-what=both][data-done]")).to_have_count(1)
    assert (await page.page.evaluate("navigator.clipboard.readText()")).startswith("<think>The user wants a short answer.")
    await page.close()


# Messages in line


async def test_messages_wait_visibly_and_are_sent_in_order_also_when_the_tab_is_closed(page: DemoPage, scripted: Scripted) -> None:
    await begun(page, "[[long_thought tokens=120 rate=40]] first")
    await page.ask("chat", "second")
    await page.ask("chat", "third")
    await expect(page.at("#chat .queued .bubble")).to_have_text(["second", "third"])
    await expect(page.at("#chat .queued").first).to_contain_text("Waiting for the reply above")
    await page.page.close()
    later = DemoPage(await page.page.context.new_page(), page.address)
    later.page.set_default_timeout(20_000)
    await later.load()
    await expect(later.at("#chat [data-run] .bubble")).to_have_text(
        ["[[long_thought tokens=120 rate=40]] first", "second", "third"], timeout=20_000
    )
    await later.idle("chat")
    await expect(later.at("#chat .queued")).to_have_count(0)
    assert [text for role, text in messages(scripted) if role == "user"][1:] == ["second", "third"]


async def test_a_waiting_message_is_taken_back_into_the_field(page: DemoPage) -> None:
    await begun(page, SLOW)
    for text in ("second", "third"):
        await page.ask("chat", text)
    await expect(page.at("#chat .queued")).to_have_count(2)
    await page.load()  # they are the application's, not the page's
    await expect(page.at("#chat .queued .bubble")).to_have_text(["second", "third"])
    await page.at("#chat .queued").first.get_by_role("button", name="Take back").click()
    await expect(page.at("#chat .queued .bubble")).to_have_text(["third"])
    await expect(page.at("#chat-input textarea")).to_have_value("second")
    await expect(page.at("#chat-send")).to_be_visible()
    await page.at("#chat-stop").click()
    await page.idle("chat")
    await expect(page.at("#chat .queued")).to_contain_text("Not sent")
    await page.at("#chat .queued").get_by_role("button", name="Send now").click()
    await expect(page.run("chat").locator(".bubble")).to_have_text("third")
    await page.idle("chat")
    await expect(page.at("#chat .queued")).to_have_count(0)


async def test_a_text_that_replaces_one_still_on_its_way_stays_in_the_field(page: DemoPage) -> None:
    await begun(page, SLOW)
    # In one go, so that the first is certainly still on its way when the field holds the second.
    await page.page.evaluate(
        """() => {
          const field = document.querySelector("#chat-input textarea");
          const write = (text) => { field.value = text; field.dispatchEvent(new Event("input", { bubbles: true })); };
          write("second");
          for (const type of ["keydown", "keypress", "keyup"])
            field.dispatchEvent(new KeyboardEvent(type, { key: "Enter", code: "Enter", bubbles: true, cancelable: true }));
          write("third");
        }"""
    )
    await expect(page.at("#chat .queued .bubble")).to_have_text(["second"])
    await expect(page.at("#chat-input textarea")).to_have_value("third")
    await page.at("#chat-input textarea").press("Enter")
    await expect(page.at("#chat .queued .bubble")).to_have_text(["second", "third"])
    await expect(page.at("#chat-input textarea")).to_have_value("")


async def test_what_is_typed_while_a_message_goes_out_is_not_lost(page: DemoPage) -> None:
    await page.ask("chat", "one")
    await page.at("#chat-input textarea").press_sequentially("the next thought", delay=5)
    await expect(page.run("chat").locator(".bubble")).to_have_text("one")
    await page.idle("chat")
    await expect(page.at("#chat-input textarea")).to_have_value("the next thought")


# The list


async def listed(page: DemoPage, *titles: str) -> None:
    await expect(page.at("#chat-list .chat-title")).to_have_text(list(titles))


async def new_chat(page: DemoPage) -> None:
    await page.at("#chat-new").click()
    await expect(page.at("#chat .empty")).to_be_visible()


async def test_conversations_are_listed_searched_renamed_deleted_and_restored(page: DemoPage) -> None:
    await said(page, "[[reasoning]] apples and pears")
    await new_chat(page)
    await said(page, "[[thought_in_content answer=zebra]] animals")
    await listed(page, "[[thought_in_content answer=zebra]] animals", "[[reasoning]] apples and pears")
    search = page.at("#chat-list input[type=search]")
    await search.fill("ZEBRA")
    await listed(page, "[[thought_in_content answer=zebra]] animals")
    await search.fill("nowhere")
    await expect(page.at("#chat-list .none")).to_have_text("No conversation mentions this.")
    await search.fill("")
    await page.at("#chat-list .chat-open").nth(1).click()
    await questions(page, "[[reasoning]] apples and pears")
    item = page.at("#chat-list .chat").nth(1)
    await item.hover()
    await item.get_by_role("button", name="Rename").click()
    await page.at("#chat-list .chat input").fill("Fruit <b>")
    await page.at("#chat-list .chat input").press("Enter")
    await listed(page, "[[thought_in_content answer=zebra]] animals", "Fruit <b>")
    await item.hover()
    await item.get_by_role("button", name="Delete").click()
    await listed(page, "[[thought_in_content answer=zebra]] animals")
    await expect(page.at("#chat .empty")).to_be_visible()
    await page.at(".chat-deleted").get_by_role("button", name="Undo").click()
    await questions(page, "[[reasoning]] apples and pears")
    await listed(page, "[[thought_in_content answer=zebra]] animals", "Fruit <b>")


async def test_on_a_phone_the_list_is_a_drawer_that_closes_when_one_is_opened(attached: Demo, browser: Browser) -> None:
    page = await DemoPage.open(browser, attached.address, viewport={"width": 360, "height": 740}, has_touch=True, is_mobile=True)
    await said(page, "one")
    await new_chat(page)
    await expect(page.at("#chat-list .chats")).to_be_hidden()
    await page.at("#chat-list .drawer").tap()
    await page.at("#chat-list .chat-open").tap()
    await questions(page, "one")
    await expect(page.at("#chat-list .chats")).to_be_hidden()
    assert await page.page.evaluate("document.documentElement.scrollWidth") <= 360
    await expect(page.run("chat").locator(".actions")).to_have_css("opacity", "1")
    await page.close()


async def test_the_system_prompt_is_the_conversations_own(page: DemoPage, scripted: Scripted) -> None:
    await page.at("#chat-system summary").click()
    await page.at("#chat-system textarea").fill("Answer in\n  one word.")
    await page.at("#chat-input textarea").focus()
    await expect(page.at("#chat-system summary")).to_have_text("System prompt (set)")
    await said(page, "one")
    assert messages(scripted)[0] == ("system", "Answer in\n  one word.")
    await page.load()
    await expect(page.at("#chat-system textarea")).to_have_value("Answer in\n  one word.")
    await new_chat(page)
    await expect(page.at("#chat-system summary")).to_have_text("System prompt")
    await said(page, "two")
    assert messages(scripted) == [("user", "two")]


# Tabs


async def test_two_tabs_show_two_conversations_and_each_its_own_after_a_reload(page: DemoPage) -> None:
    await said(page, "one")
    other = await second_tab(page)
    await questions(other, "one")  # a new tab shows the latest
    await new_chat(other)
    await said(other, "two")
    await questions(page, "one")
    for tab, question in ((page, "one"), (other, "two")):
        await tab.load()
        await questions(tab, question)
    await page.ask("chat", "and on")
    await questions(page, "one", "and on")
    await questions(other, "two")


async def test_two_tabs_on_one_conversation_see_the_same(page: DemoPage) -> None:
    await said(page, "one")
    other = await second_tab(page)
    await questions(other, "one")
    await begun(page, SLOW)
    await expect(other.run("chat").locator(".bubble")).to_have_text(SLOW)
    await expect(other.run("chat").locator(".thought-text")).to_contain_text("w9 ")
    await other.ask("chat", "from the other")
    await expect(page.at("#chat .queued .bubble")).to_have_text("from the other")
    await expect(page.at("#chat-list .chat .dot")).to_have_count(1)
    await other.at("#chat-stop").click()
    await page.idle("chat")
    await expect(page.run("chat").locator(".notice")).to_contain_text("Stopped.")
    await expect(page.at("#chat-list .chat .dot")).to_have_count(0)
    await more(other, "chat_take_back")
    await questions(page, "one")


async def test_a_deleted_conversation_says_so_in_the_other_tab(page: DemoPage) -> None:
    await said(page, "one")
    other = await second_tab(page)
    await questions(other, "one")
    await page.at("#chat-list .chat").hover()
    await page.at("#chat-list").get_by_role("button", name="Delete").click()
    await expect(other.at("#chat .empty")).to_contain_text("was deleted")
    await other.at("#chat .empty").get_by_role("button", name="Restore").click()
    await questions(other, "one")


async def test_looking_at_another_version_leaves_the_one_that_is_written_alone(page: DemoPage) -> None:
    await said(page, "one")
    await page.run("chat").get_by_role("button", name="Edit message").click()
    await page.at("#chat .editor textarea").fill(SLOW)
    await page.at("#chat .editor textarea").press("Enter")
    await questions(page, SLOW)
    await expect(page.run("chat").locator(".thought-text")).to_contain_text("w3 ")
    await page.run("chat").get_by_role("button", name="Previous version").click()
    await questions(page, "one")
    await expect(page.at("html")).to_have_attribute("data-chat", "running")
    await page.run("chat").get_by_role("button", name="Next version").click()
    await expect(page.run("chat").locator(".thought-text")).to_contain_text("w9 ")
    await page.at("#chat-stop").click()
    await page.idle("chat")


# Files


async def test_what_is_exported_can_be_imported_and_gone_on_with(page: DemoPage, scripted: Scripted, tmp_path: Path) -> None:
    await said(page, "[[reasoning]] one", "[[reasoning]] two")
    files: dict[str, Path] = {}
    for name in ("JSON", "Markdown", "Web page"):
        await page.at(".export-menu summary").click()
        async with page.page.expect_download() as download:
            await page.at(".export-menu").get_by_text(name, exact=True).click()
        files[name] = tmp_path / (await download.value).suggested_filename
        await (await download.value).save_as(files[name])
        await page.at("#chat-input textarea").click()
    value = json.loads(files["JSON"].read_text(encoding="utf-8"))
    assert [message["role"] for message in value["messages"]] == ["user", "assistant"] * 2
    assert value["messages"][1]["reasoning"].startswith("The user wants")
    assert "## You\n\n[[reasoning]] two" in files["Markdown"].read_text(encoding="utf-8")
    await page.at(".import-menu summary").click()
    await page.at(".import-menu input[type=file]").set_input_files(files["JSON"])
    await expect(page.at("#chat .imported")).to_have_count(2)
    await expect(page.at("#chat-list .chat")).to_have_count(2)
    await said(page, "three")
    assert [text for role, text in messages(scripted) if role == "user"] == ["[[reasoning]] one", "[[reasoning]] two", "three"]
    alone = await (await page.page.context.browser.new_context(offline=True)).new_page()  # type: ignore[union-attr]
    await alone.goto(files["Web page"].as_uri())
    await expect(alone.locator(".bubble")).to_have_text(["[[reasoning]] one", "[[reasoning]] two"])
    await alone.locator("details.thought summary").first.click()
    await expect(alone.locator(".thought-text").first).to_contain_text("The user wants a short answer.")
    await alone.context.close()


async def test_a_mistake_in_an_import_is_named_and_nothing_is_made(page: DemoPage, attached: Demo) -> None:
    await page.at(".import-menu summary").click()
    field = page.at(".import-menu textarea")
    await field.fill('[{"role": "user", "content": "x"}, {"role": "bot", "content": "y"}]')
    await page.at("[data-import]").click()
    await expect(page.at(".import-notice")).to_contain_text("Message 1 cannot be used: role: it must be system, user or assistant.")
    await field.fill('{"messages": [}')
    await page.at("[data-import]").click()
    await expect(page.at(".import-notice")).to_contain_text("This is not JSON")
    page.complaints.clear()  # the browser's own lines about the refusals
    await expect(page.at("#chat-list .chat")).to_have_count(0)
    answer = await page.page.request.post(f"{attached.address}/kimi/chats/import", data=b"x" * (9 * 1024 * 1024 + 1))
    assert answer.status == 422 and "9 MB" in (await answer.json())["html"]


async def test_nothing_of_it_is_another_visitors(page: DemoPage, attached: Demo, browser: Browser) -> None:
    await said(page, "my secret")
    chat = await page.at("#chat .live").get_attribute("data-group")
    run = await page.run("chat").get_attribute("data-run")
    assert chat and run
    other = await DemoPage.open(browser, attached.address)
    await expect(other.at("#chat-list .none")).to_be_visible()
    get, post = other.page.request.get, other.page.request.post
    for path in (f"chats/{chat}/export.json", f"chats/{chat}/export.html", f"chats/copy/{run}?what=both"):
        assert (await get(f"{attached.address}/kimi/{path}")).status == 404
        assert (await page.page.request.get(f"{attached.address}/kimi/{path}")).status == 200
    bodies: dict[str, dict[str, str]] = {
        "chat_again": {"run": run, "mode": "same"},
        "chat_edit": {"run": run, "text": "x"},
        "chat_version": {"run": run},
        "chat_take_back": {"run": run},
        "chat_bring_back": {"chat": chat},
        "chat_unqueue": {"chat": chat, "message": "x"},
        "chat_send_waiting": {"chat": chat},
        "chat_rename": {"chat": chat, "title": "x"},
        "chat_delete": {"chat": chat},
        "chat_restore": {"chat": chat},
        "chat_system": {"chat": chat, "text": "x"},
    }
    for name, body in bodies.items():
        answer = await post(f"{attached.address}/kimi/act/{name}", data=body)
        assert answer.status == 422 and re.search("There is no such|not here", (await answer.json())["html"]), name
    live = await get(f"{attached.address}/kimi/live/chat?opened={chat}")
    assert "my secret" not in await live.text()
    await questions(page, "my secret")
    await other.close()


# Size


def conversation_of(turns: int) -> str:
    answer = "A paragraph with **bold** text and `code`.\n\n```python\nprint('x' * 20)\n```\n\n" + "Plain words. " * 20
    messages: list[dict[str, str]] = []
    for number in range(turns):
        messages.append({"role": "user", "content": f"Question {number}"})
        messages.append({"role": "assistant", "content": answer, "reasoning": "I think. " * 80})
    return json.dumps(messages)


async def imported(page: DemoPage, text: str) -> str:
    answer = await page.page.request.post(f"{page.address}/kimi/chats/import", data=text)
    return str((await answer.json())["chat"])


async def test_a_conversation_of_a_hundred_messages_loads_and_streams_as_fast_as_a_short_one(page: DemoPage) -> None:
    await imported(page, conversation_of(50))
    await page.page.evaluate("sessionStorage.clear()")
    began = time.monotonic()
    await page.load()
    await page.idle("chat")
    await expect(page.at("#chat [data-run]")).to_have_count(50)
    await expect(page.at("#chat [data-run][data-whole]")).to_have_count(50)
    loaded = time.monotonic() - began
    at_end = "e => e.scrollHeight - e.scrollTop - e.clientHeight < 60"
    assert await page.at("#chat .live").evaluate(at_end)
    began = time.monotonic()
    await begun(page, "[[long_thought tokens=800 rate=200]] go")
    await page.idle("chat")
    streamed = time.monotonic() - began
    await expect(page.at("#chat [data-run]")).to_have_count(51)
    await expect(page.run("chat").locator(".answer")).to_have_text("Done.")
    print(f"100 messages: page and conversation {loaded:.1f} s, 800 tokens at 200/s {streamed:.1f} s")
    assert loaded < 15 and streamed < 8


async def test_hundreds_of_conversations_are_listed_fast(attached: Demo, browser: Browser) -> None:
    page = await DemoPage.open(browser, attached.address)
    for number in range(300):
        await imported(
            page, json.dumps([{"role": "user", "content": f"Conversation {number}"}, {"role": "assistant", "content": "word " * 400}])
        )
    began = time.monotonic()
    answer = await page.page.request.get(f"{attached.address}/kimi/chats?search=conversation 7")
    seconds = time.monotonic() - began
    assert (await answer.json())["html"].count('class="chat"') == 11 and seconds < 1
    await page.load()
    await expect(page.at("#chat-list .chat")).to_have_count(50)
    await page.at("#chat-list .more button").click()
    await expect(page.at("#chat-list .chat")).to_have_count(100)
    await page.close()


async def test_idle_tabs_hold_no_connection(attached: Demo, browser: Browser) -> None:
    context: BrowserContext = await browser.new_context()
    tabs = []
    for _ in range(8):
        tab = DemoPage(await context.new_page(), attached.address)
        await tab.load()
        tabs.append(tab)
    await said(tabs[0], "one")
    for tab in tabs:
        await expect(tab.at("#chat-list .chat")).to_have_count(1)
    await tabs[3].at("#chat-list .chat-open").click()
    await questions(tabs[3], "one")
    await said(tabs[3], "two")
    await questions(tabs[0], "one", "two")
    assert re.fullmatch(r"idle", await tabs[0].at("html").get_attribute("data-chat") or "")
    await context.close()
