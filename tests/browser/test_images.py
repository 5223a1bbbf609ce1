"""Images in the chat, end to end: chosen, pasted, dropped, shown, sent, refused, deleted."""

import base64
import io
import json
import re
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from PIL import Image
from playwright.async_api import Browser, expect

from tests import scripted_server
from tests.browser.page import DemoPage
from tests.demo import Demo, running
from tests.scripted_server import Scripted

pytestmark = pytest.mark.asyncio(loop_scope="session")
DEMO_FLAGS = ("--max-images", "3", "--max-image-side", "200")


@pytest_asyncio.fixture(loop_scope="session")
async def page(attached: Demo, browser: Browser) -> AsyncIterator[DemoPage]:
    found = await DemoPage.open(browser, attached.address)
    await found.page.wait_for_load_state("networkidle")
    yield found
    # A refusal is an answer of 422, which the browser's console repeats.
    assert not [complaint for complaint in found.complaints if "422" not in complaint and "404" not in complaint]
    await found.close()


def png(colour: str, size: tuple[int, int] = (40, 30)) -> bytes:
    written = io.BytesIO()
    Image.new("RGB", size, colour).save(written, "PNG")
    return written.getvalue()


async def choose(page: DemoPage, *files: tuple[str, str, bytes]) -> None:
    payloads: Any = [{"name": name, "mimeType": kind, "buffer": data} for name, kind, data in files]
    async with page.page.expect_file_chooser() as chooser:
        await page.at("[data-pick-image]").click()
    await (await chooser.value).set_files(payloads)


HAND_OVER = """([how, encoded, name, type]) => {
    const bytes = Uint8Array.from(atob(encoded), (letter) => letter.charCodeAt(0));
    const data = new DataTransfer();
    data.items.add(new File([bytes], name, { type }));
    const target = document.querySelector("#chat-input textarea");
    target.dispatchEvent(how === "paste"
        ? new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true })
        : new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true }));
}"""


async def hand_over(page: DemoPage, how: str, data: bytes, name: str = "x.png", kind: str = "image/png") -> None:
    await page.page.evaluate(HAND_OVER, [how, base64.b64encode(data).decode(), name, kind])


async def sent(page: DemoPage, scripted: Scripted, text: str) -> list[dict[str, Any]]:
    before = len(scripted.chats)
    await page.ask("chat", text)
    await scripted.arrived(before + 1)
    await page.idle("chat")
    messages: list[dict[str, Any]] = scripted.chats[-1].body["messages"]
    return messages


def size_of(part: dict[str, Any]) -> tuple[int, int]:
    return Image.open(io.BytesIO(base64.b64decode(part["image_url"]["url"].partition(",")[2]))).size


async def test_chosen_pasted_and_dropped_images_are_shown_removed_sent_and_kept(
    page: DemoPage, scripted: Scripted, attached: Demo, browser: Browser
) -> None:
    thumbnails = page.at("#chat-attachments .thumbnail")
    await choose(page, ("a.png", "image/png", png("red")))
    await expect(thumbnails).to_have_count(1)
    await hand_over(page, "paste", png("green", (800, 400)))
    await expect(thumbnails).to_have_count(2)
    await hand_over(page, "drop", png("blue"))
    await expect(thumbnails).to_have_count(3)
    await hand_over(page, "paste", png("white"))
    await expect(page.at("#chat-notice")).to_contain_text("A message takes 3 images.")
    await page.load()
    await expect(thumbnails).to_have_count(3)
    await thumbnails.nth(2).locator("button").click()
    await expect(thumbnails).to_have_count(2)

    (message,) = await sent(page, scripted, "What is this?")
    first, second, text = message["content"]
    assert text == {"type": "text", "text": "What is this?"} and first["type"] == second["type"] == "image_url"
    assert first["image_url"]["url"].startswith("data:image/png;base64,")
    assert (size_of(first), size_of(second)) == ((40, 30), (200, 100))
    await expect(thumbnails).to_have_count(0)
    images = page.run("chat").locator(".shown-images img")
    await expect(images).to_have_count(2)
    assert await images.first.evaluate("async (image) => { await image.decode(); return image.naturalWidth; }") == 40

    # The next message sends them again, as a part of the conversation.
    messages = await sent(page, scripted, "And now?")
    assert messages[0] == message and messages[-1]["content"] == "And now?"

    # What is kept and shown of the request is short; what is copied is whole.
    run = page.run("chat", 0)
    where = await run.locator("details.request").get_attribute("data-load")
    shown = await (await page.page.request.get(f"{attached.address}/{where}")).text()
    assert "base64,… (" in shown and len(shown) < 20_000
    whole = await (await page.page.request.get(f"{attached.address}/{where}/sent")).json()
    assert whole["messages"] == [message]
    curl = await (await page.page.request.get(f"{attached.address}/{where}/curl")).text()
    assert first["image_url"]["url"] in curl
    stored = json.dumps([event.read_bytes().decode("latin-1") for event in attached.data.glob("runs.sqlite3*")])
    assert first["image_url"]["url"][30:90] not in stored

    # Only their owner sees them, as images and as nothing else.
    address = await page.run("chat", 0).locator(".shown-images img").first.get_attribute("src")
    answer = await page.page.request.get(f"{attached.address}/{address}")
    assert answer.status == 200 and answer.headers["content-type"] == "image/png" and answer.headers["x-content-type-options"] == "nosniff"
    other = await DemoPage.open(browser, attached.address)
    assert (await other.page.request.get(f"{attached.address}/{address}")).status == 404
    await other.close()


async def test_images_go_without_words_wait_in_line_and_come_back_with_their_message(page: DemoPage, scripted: Scripted) -> None:
    thumbnails = page.at("#chat-attachments .thumbnail")
    await hand_over(page, "paste", png("orange", (20, 20)))
    await expect(thumbnails).to_have_count(1)
    (message,) = await sent(page, scripted, "")
    assert [part["type"] for part in message["content"]] == ["image_url"]
    await expect(thumbnails).to_have_count(0)
    await expect(page.at("#chat-list .chat-title")).to_have_text(["Images without words"])
    await expect(page.run("chat").locator(".bubble")).to_be_hidden()

    await page.ask("chat", "[[long_thought tokens=4000 rate=40]] slow")
    await expect(page.run("chat").locator(".thought-text")).to_contain_text("w9 ")
    await expect(page.at("#chat-list .chat-title")).to_have_text(["[[long_thought tokens=4000 rate=40]] slow"])  # its first words
    await hand_over(page, "paste", png("teal", (20, 21)))
    await expect(thumbnails).to_have_count(1)
    await page.ask("chat", "and this?")
    waiting = page.at("#chat .queued")
    await expect(waiting.locator(".shown-images img")).to_have_count(1)
    await expect(thumbnails).to_have_count(0)
    await page.at("#chat-input textarea").fill("typed meanwhile")
    await waiting.get_by_role("button", name="Take back").click()
    await expect(waiting).to_have_count(0)
    await expect(thumbnails).to_have_count(1)
    await expect(page.at("#chat-input textarea")).to_have_value("and this?\ntyped meanwhile")
    await thumbnails.locator("button").click()
    await page.at("#chat-stop").click()
    await page.idle("chat")


async def test_exports_hold_the_images_and_an_import_brings_them_back(page: DemoPage, scripted: Scripted, attached: Demo) -> None:
    await hand_over(page, "paste", png("olive", (50, 20)))
    await expect(page.at("#chat-attachments .thumbnail")).to_have_count(1)
    (message,) = await sent(page, scripted, "Which colour?")
    url = message["content"][0]["image_url"]["url"]
    await expect(page.run("chat")).to_have_attribute("data-whole", "1")
    chat = await page.at("#chat .live").get_attribute("data-group")
    get = page.page.request.get
    exported = await (await get(f"{attached.address}/kimi/chats/{chat}/export.json")).text()
    assert json.loads(exported)["messages"][0] == message
    assert f"![]({url})" in await (await get(f"{attached.address}/kimi/chats/{chat}/export.md")).text()

    # The page needs no server: it is opened as a file's content, without a network.
    html = await (await get(f"{attached.address}/kimi/chats/{chat}/export.html")).text()
    assert "kimi/images" not in html
    alone = await page.page.context.new_page()
    await alone.set_content(html)
    assert await alone.locator(".shown-images img").evaluate("async (image) => { await image.decode(); return image.naturalWidth; }") == 50
    await alone.close()

    answer = await page.page.request.post(f"{attached.address}/kimi/chats/import", data=exported)
    await page.page.evaluate("(chat) => window.kimi.show(chat)", (await answer.json())["chat"])
    await expect(page.run("chat").locator(".imported")).to_be_visible()
    await expect(page.run("chat").locator(".shown-images img")).to_have_count(1)
    messages = await sent(page, scripted, "And now?")
    assert messages[0] == message

    await page.page.get_by_role("radio", name="Raw prompt").click()
    await page.at("#raw-render").click()
    await expect(page.at("#raw-input textarea")).to_have_value(re.compile("Which colour\\?.*And now\\?", re.S))
    await expect(page.at("#raw-notice")).to_have_text("Images left out: 1. A raw prompt is text; only a chat can show the model an image.")
    broken = json.dumps([{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}]}])
    answer = await page.page.request.post(f"{attached.address}/kimi/chats/import", data=broken)
    assert answer.status == 422 and "no image that can be read" in (await answer.json())["html"]


async def test_a_video_is_refused_early_and_so_is_what_only_says_that_it_is_an_image(page: DemoPage) -> None:
    await hand_over(page, "drop", b"\0" * 100, "film.mp4", "video/mp4")
    await expect(page.at("#chat-notice")).to_contain_text("Videos are not taken")
    await hand_over(page, "paste", b"\x00\x00\x00\x18ftypmp42" + b"\0" * 100, "film.png", "image/png")
    await expect(page.at("#chat-notice")).to_contain_text("Videos are not taken")
    for data in (b"<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'/>", b"<script>alert(1)</script>", png("red")[:50]):
        await hand_over(page, "paste", data)
        await expect(page.at("#chat-notice")).to_contain_text("This file is no image that can be read.")
        await hand_over(page, "drop", b"", "film.mp4", "video/mp4")
        await expect(page.at("#chat-notice")).to_contain_text("Videos are not taken")
    await expect(page.at("#chat-attachments .thumbnail")).to_have_count(0)


async def test_pasted_text_stays_text(page: DemoPage) -> None:
    await page.page.evaluate(
        """() => {
            const data = new DataTransfer();
            data.setData("text/plain", "a table");
            data.items.add(new File([new Uint8Array(9)], "x.png", { type: "image/png" }));
            window.kept = document.querySelector("#chat-input textarea").dispatchEvent(
                new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true }));
        }"""
    )
    await expect(page.at("#chat-attachments .thumbnail")).to_have_count(0)


async def test_a_model_that_does_not_see_is_named_and_the_message_goes_without(browser: Browser, tmp_path: Any) -> None:
    with scripted_server.running(sees=False) as scripted, running(tmp_path, "--base-url", scripted.base_url) as demo:
        page = await DemoPage.open(browser, demo.address)
        await page.page.wait_for_load_state("networkidle")
        assert not scripted.chats, "nobody is asked before somebody wants to know"
        await page.at("[data-pick-image]").click()
        await expect(page.at("#chat-notice")).to_contain_text("Kimi-K2.5 cannot see: it takes text only.")
        await expect(page.at("[data-pick-image]")).to_have_attribute("data-off", "")
        await hand_over(page, "paste", png("red"))
        await expect(page.at("#chat-attachments .thumbnail")).to_have_count(0)
        (message,) = await sent(page, scripted, "hello")
        assert message["content"] == "hello"
        assert sum("image_url" in str(request.body) for request in scripted.chats) == 1, "the model was asked once"
        await page.close()


async def test_an_image_goes_with_its_conversation(page: DemoPage, scripted: Scripted, attached: Demo) -> None:
    await hand_over(page, "paste", png("purple", (33, 44)))
    await expect(page.at("#chat-attachments .thumbnail")).to_have_count(1)
    image = (await page.at("#chat-attachments img").get_attribute("src") or "").rpartition("/")[2]
    files = list(attached.data.glob(f"images/*/{image}.png"))
    assert len(files) == 1
    await page.at("[data-remove-image]").click()
    await expect(page.at("#chat-attachments .thumbnail")).to_have_count(0)
    assert not files[0].exists(), "what was never sent is not kept"
