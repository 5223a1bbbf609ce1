"""The batch tab from a file to a download, with a scripted server as the engine."""

import csv
import io
import json
import re
from collections import Counter
from pathlib import Path

import psutil
import pytest
from playwright.async_api import Browser, expect

from tests.browser.page import ENGINE_MS, DemoPage
from tests.demo import Demo

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def choose(page: DemoPage, path: Path) -> None:
    await page.tab("Batch")
    await page.at("#batch-file input[type=file]").set_input_files(path)
    await expect(page.at(".batch-facts")).to_be_visible()


async def ran(page: DemoPage, done: str) -> None:
    """Until the opened batch is over with so many rows."""
    await expect(page.at(".batch-figures")).to_contain_text(done, timeout=ENGINE_MS)
    await expect(page.run("batch")).to_have_attribute("data-whole", "1", timeout=ENGINE_MS)
    await page.idle("batch")


async def run_typed(page: DemoPage, text: str, done: str) -> None:
    await page.tab("Batch")
    await page.at("#batch-prompts textarea").fill(text)
    await page.at("#batch-run").click()
    await ran(page, done)


async def downloaded(page: DemoPage, selector: str) -> tuple[str, bytes]:
    async with page.page.expect_download() as downloading:
        await page.at(selector).click()
    download = await downloading.value
    return download.suggested_filename, (await download.path()).read_bytes()


async def test_the_whole_way_from_a_file_to_a_download(page: DemoPage, tmp_path: Path) -> None:
    table = io.StringIO()
    writer = csv.writer(table)
    writer.writerow(["id", "问题", "=note"])
    for number in range(70):
        writer.writerow([number, f"[[reasoning]] 第{number}个 <b>问题</b>", "=1+1"])
    writer.writerow([70, "[[cut_in_thought]] cut", ""])
    path = tmp_path / "问题.csv"
    path.write_bytes((table.getvalue() + "71,one,two,three,four\r\n,,\r\n").encode("gb18030"))
    await choose(page, path)
    card = page.at(".batch-draft")
    await expect(card).to_contain_text("Rows to run: 71")
    await expect(card).to_contain_text("blank: 1")
    await expect(card).to_contain_text("CSV, gb18030 · travelling along: id, =note")
    await expect(card.locator(".batch-bad")).to_contain_text("Line 73: The row has 5 cells; the table has 3 columns.")
    await expect(card.locator(".batch-first")).to_contain_text("第0个 <b>问题</b>")
    await expect(page.at("#batch-prompts")).to_be_hidden()

    await page.at("#batch-run").click()
    await expect(page.at("#batch-notice")).to_contain_text("Rows that cannot be run: 1. The first is on line 73.")
    await expect(page.at("#batch-results .batch")).to_have_count(0)
    await page.at("#batch-skip input").check()
    await page.at("#batch-run").click()
    await ran(page, "71 of 71 rows")
    await expect(card).to_be_empty()
    await expect(page.at("#batch-prompts")).to_be_visible()
    await expect(page.at(".batch-figures")).to_contain_text("1 cut off")
    await expect(page.at("#batch-results tbody tr")).to_have_count(50)
    await expect(page.at(".pager")).to_contain_text("1–50 of 71")
    await (
        page.at(
            ".pager button",
        )
        .get_by_text("Next")
        .click()
    )
    await expect(page.at("#batch-results tbody tr")).to_have_count(21)

    await page.at("[data-batch-show]").select_option("in_thought")
    await expect(page.at("#batch-results tbody tr")).to_have_count(1)
    await expect(page.at("#batch-results tbody tr")).to_contain_text("Cut off while thinking: no answer.")
    await page.at("[data-batch-show]").select_option("all")
    await page.at("[data-batch-search]").fill("第42个")
    await expect(page.at("#batch-results tbody tr[data-row]")).to_have_count(1)
    await page.at("#batch-results tbody tr[data-row='42'] [data-batch-row]").click()
    full = page.at("#batch-results tr.full")
    await expect(full).to_contain_text("第42个 <b>问题</b>")
    await expect(full).to_contain_text("The user wants a short answer.")
    await expect(full).to_contain_text("=1+1")
    await expect(full.locator("b")).to_have_count(0)

    name, data = await downloaded(page, "#batch-results .export")
    assert re.fullmatch(r"kimi-demo-batch-\d{8}-\d{6}\.jsonl", name)
    rows = [json.loads(line) for line in data.decode().splitlines()]
    assert [row["index"] for row in rows] == list(range(71)) and rows[0]["columns"] == {"id": "0", "=note": "=1+1"}
    assert rows[0]["reasoning"] and rows[0]["answer"] and rows[0]["parameters"]["temperature"] == 0.6
    await page.at(".batch-actions .menu summary").first.click()
    name, data = await downloaded(page, "#batch-results a[href$='.csv']")
    read = list(csv.reader(io.StringIO(data.decode("utf-8-sig"))))
    assert data.startswith(b"\xef\xbb\xbf") and read[0][:2] == ["id", "'=note"] and read[1][1] == "'=1+1" and len(read) == 72
    name, data = await downloaded(page, "#batch-results a[href$='.openai']")
    assert json.loads(data.splitlines()[3])["response"]["status_code"] == 200
    name, data = await downloaded(page, "#batch-results a[href$='.raw']")
    assert data.decode().splitlines()[0].startswith("Prompt: '") and "Response:" in data.decode()

    await page.at("[data-batch-view=charts]").click()
    await expect(page.at(".batch-charts svg")).to_have_count(3)


async def test_versions_are_compared_side_by_side(page: DemoPage) -> None:
    await run_typed(page, "[[reasoning]] one\n[[reasoning]] two\n[[cut_in_thought]] three", "3 of 3 rows")
    await page.at("[data-batch-view=compare]").click()
    await expect(page.at(".batch-body")).to_contain_text("There is no other version to compare with.")
    await page.at(".batch-again-form summary").click()
    form = page.at("form[data-batch-again]")
    await expect(form.locator("[name=which] option")).to_have_text(["cut off (1)", "all (3)"])
    await form.locator("[name=which]").select_option("all")
    await form.locator("[name=max_tokens]").fill("0")
    await form.locator("button").click()
    await expect(page.at("#batch-notice")).to_contain_text('max_tokens: "0" cannot be used')
    await form.locator("[name=max_tokens]").fill("100")
    await form.locator("[name=temperature]").fill("warm")
    await form.locator("button").click()
    await expect(page.at("#batch-notice")).to_contain_text('temperature: "warm" cannot be used')
    await form.locator("[name=temperature]").fill("0.2")
    await expect(form.locator("[name=engine]")).to_have_value("server")
    await form.locator("[name=preset]").select_option("moonshot_instant")
    await form.locator("[name=thinking]").uncheck()
    await form.locator("button").click()
    await expect(page.at(".batch-title")).to_contain_text("Version 2")
    await ran(page, "3 of 3 rows")
    await page.at("#batch-results [data-batch-row]").first.click()
    await expect(page.at("#batch-results tr.full")).to_contain_text('"temperature": 0.2')
    await page.at("[data-batch-view=compare]").click()
    await expect(page.at(".batch-pairs tbody tr")).to_have_count(3)
    await expect(page.at(".batch-chips")).to_contain_text("Same answer 2")
    await page.at("[data-batch-agreement=incomparable]").click()
    await expect(page.at(".batch-pairs tbody tr")).to_have_count(1)
    await expect(page.at(".batch-pairs thead")).to_contain_text("Moonshot, instant")
    await page.at(".batch-versions button").first.click()
    await expect(page.at(".batch-title .fine")).to_contain_text("at most 4,096 tokens")


async def test_pause_resume_stop_go_on_and_a_closed_page(page: DemoPage, attached: Demo) -> None:
    await page.tab("Batch")
    await page.at("#batch-prompts textarea").fill("\n".join(f"[[long_thought tokens=40 rate=40]] {number}" for number in range(300)))
    await page.at("#batch-run").click()
    figures = page.at(".batch-figures")
    await expect(figures).to_contain_text(re.compile(r"[1-9]\d* of 300 rows"))
    await expect(figures).to_contain_text(re.compile(r"tokens/s"))
    await expect(figures).to_contain_text(re.compile(r"\d+ (s|min \d+ s) left"))
    await page.at("[data-act=batch_pause]").click()
    await expect(page.at(".batch-ending")).to_contain_text("Paused. No new rows begin; 0 rows are finishing.")
    paused = await figures.locator("progress").get_attribute("value")
    await page.load()  # it is all still there
    await expect(page.at(".batch-ending")).to_contain_text("Paused. No new rows begin; 0 rows are finishing.")
    await expect(figures.locator("progress")).to_have_attribute("value", paused or "")
    await page.at("[data-act=batch_resume]").click()
    await expect(figures.locator("progress")).not_to_have_attribute("value", paused or "")
    await page.at("#batch-stop").click()
    await expect(page.at(".batch-ending")).to_contain_text(re.compile(r"Stopped\. \d+ of 300 rows had finished and are kept\."))
    await page.idle("batch")
    await page.at("[data-act=batch_go_on]").click()
    await expect(page.at("html")).to_have_attribute("data-batch", "running")
    where = page.page.url
    await page.page.goto("about:blank")  # nobody looks
    await page.page.goto(where)
    await ran(page, "300 of 300 rows")


async def test_several_batches_wait_in_line_and_can_be_renamed_and_deleted(page: DemoPage) -> None:
    await page.tab("Batch")
    for name in ("first", "second", "third"):
        await page.at("#batch-prompts textarea").fill(f"[[long_thought tokens=60 rate=40]] {name}\nmore")
        await page.at("#batch-run").click()
        await expect(page.at(".batch-items li").first).to_contain_text(name)
    await expect(page.at(".batch-items li")).to_have_count(3)
    await expect(page.at(".batch-figures")).to_contain_text("Waiting")
    await ran(page, "2 of 2 rows")
    await expect(page.at(".batch-items .dot[data-state=ready]")).to_have_count(3)
    title = page.at(".batch-title input")
    await title.fill("<i>mine</i>")
    await title.press("Enter")
    await expect(page.at(".batch-items li").first).to_contain_text("<i>mine</i>")
    await (
        page.at(
            ".batch-actions summary",
        )
        .get_by_text("Delete")
        .click()
    )
    await page.at("[data-act=batch_delete]").click()
    await expect(page.at(".batch-items li")).to_have_count(2)
    await expect(page.at(".batch-title input")).not_to_have_value("<i>mine</i>")


async def test_another_visitor_gets_nothing_of_a_batch(page: DemoPage, attached: Demo, browser: Browser) -> None:
    await run_typed(page, "[[reasoning]] my secret", "1 of 1 rows")
    batch = await page.at("article.batch").get_attribute("data-batch")
    other = await DemoPage.open(browser, attached.address)
    await other.tab("Batch")
    await expect(other.at("#batch-results .empty")).to_be_visible()
    for what in ("rows", "row/0", "charts", "compare", "download.jsonl"):
        address = f"{attached.address}/kimi/batches/{batch}/{what}"
        assert (await other.page.request.get(address)).status == 404, what
        assert (await page.page.request.get(address)).status == 200, what
    for act, more in (("stop", {}), ("pause", {}), ("delete", {}), ("go_on", {}), ("rename", {"title": "x"})):
        answer = await other.page.request.post(f"{attached.address}/kimi/act/batch_{act}", data={"batch": batch, **more})
        assert answer.status == 422 and "There is no such batch." in await answer.text()
    await other.close()


async def test_ten_thousand_rows_stay_smooth(page: DemoPage, tmp_path: Path) -> None:
    """The page holds one window of them, and a click is answered while they run."""
    path = tmp_path / "many.txt"
    path.write_text("".join(f"[[answer_only answer=ok]] {number}\n" for number in range(10_000)))
    await choose(page, path)
    await expect(page.at(".batch-facts")).to_contain_text("Rows to run: 10,000")
    await page.at("#batch-run").click()
    await expect(page.at(".batch-figures")).to_contain_text(re.compile(r"[1-9]\d* of 10,000 rows"))
    await expect(page.at("#batch-results tbody tr")).to_have_count(50)
    await page.at(".pager button").last.click()
    await expect(page.at("#batch-results tbody tr[data-row='9999']")).to_be_visible()
    assert await page.page.evaluate("document.querySelectorAll('#batch-results *').length") < 2_000
    await page.at("#batch-stop").click()
    await expect(page.at(".batch-ending")).to_contain_text("Stopped.")


async def test_a_file_that_cannot_be_read_says_why_and_can_be_read_otherwise(page: DemoPage, tmp_path: Path) -> None:
    path = tmp_path / "two.csv"
    path.write_text("alpha,beta\n[[reasoning]] one,x\n")
    await page.tab("Batch")
    await page.at("#batch-file input[type=file]").set_input_files(path)
    await expect(page.at(".batch-draft .notice")).to_contain_text("The table has several columns: alpha, beta.")
    await page.at("#batch-run").click()
    await expect(page.at("#batch-notice")).to_contain_text("The table has several columns: alpha, beta.")
    await page.at(".batch-choices [name=column]").select_option("alpha")
    await expect(page.at(".batch-facts")).to_contain_text("Rows to run: 1")
    await page.load()
    await expect(page.at(".batch-file")).to_contain_text("two.csv")
    await page.at("[data-batch-remove]").click()
    await expect(page.at(".batch-draft")).to_be_empty()
    await expect(page.at("#batch-prompts")).to_be_visible()
    empty = tmp_path / "empty.txt"
    empty.write_text("")
    await page.at("#batch-file input[type=file]").set_input_files(empty)
    await expect(page.at("#batch-notice")).to_contain_text("empty.txt is empty.")


async def test_half_a_token_is_refused_where_it_was_typed(page: DemoPage) -> None:
    await page.tab("Batch")
    await page.at("#batch-prompts textarea").fill("hello")
    await page.at("#batch-max-tokens input").fill("1.5")
    await page.at("#batch-run").click()
    await expect(page.at("#batch-notice")).to_contain_text('max_tokens: "1.5" cannot be used (a whole number is needed).')
    await expect(page.at("#batch-prompts textarea")).to_have_value("hello")


async def drag(page: DemoPage, kind: str, *paths: Path) -> None:
    """As a file manager does it, over the middle of the tab's list of batches. kind: of the browser's protocol."""
    box = await page.at("#batch-results").bounding_box()
    assert box is not None
    session = await page.page.context.new_cdp_session(page.page)
    data = {"items": [], "files": [str(path) for path in paths], "dragOperationsMask": 1}
    where = {"x": box["x"] + box["width"] / 2, "y": box["y"] + min(box["height"] / 2, 20)}
    await session.send("Input.dispatchDragEvent", {"type": kind, "data": data, **where})
    await session.detach()


async def test_a_file_is_dropped_anywhere_on_the_tab(page: DemoPage, tmp_path: Path) -> None:
    path = tmp_path / "dropped.txt"
    path.write_text("[[reasoning]] one\n[[reasoning]] two\n")
    await page.tab("Batch")
    tab, told = page.at("#tab-batch"), "() => getComputedStyle(document.querySelector('.batch-picker'), '::after').content"
    await drag(page, "dragEnter", path)
    await expect(tab).to_have_class(re.compile("dropping"))
    assert await page.page.evaluate(told) == '"Drop the file to read it"'
    # Out of the window again. The protocol's dragCancel tells the page nothing, other than a real hand does.
    await page.page.evaluate("document.body.dispatchEvent(new DragEvent('dragleave', { bubbles: true }))")
    await expect(tab).not_to_have_class(re.compile("dropping"))
    assert await page.page.evaluate(told) == "none"
    for wrong in ((path, path), (tmp_path,)):
        for kind in ("dragEnter", "dragOver", "drop"):
            await drag(page, kind, *wrong)
        await expect(page.at("#batch-notice")).to_contain_text("One file makes a batch: drop a single file, and no folder.")
        await expect(page.at(".batch-draft")).to_be_empty()
    for kind in ("dragEnter", "dragOver", "drop"):
        await drag(page, kind, path)
    await expect(page.at(".batch-file")).to_contain_text("dropped.txt")
    await expect(page.at(".batch-facts")).to_contain_text("Rows to run: 2")
    await expect(page.at("#batch-notice")).to_be_empty()
    await expect(tab).not_to_have_class(re.compile("dropping"))
    await page.at("[data-batch-remove]").click()


async def test_a_full_disk_pauses_the_batch_and_nothing_is_lost(page: DemoPage, attached: Demo) -> None:
    """Full for the demo's process alone: the system lets none of its files grow any more."""
    demo = psutil.Process(attached.program.process.pid)
    unlimited = demo.rlimit(psutil.RLIMIT_FSIZE)
    await page.tab("Batch")
    await page.at("#batch-prompts textarea").fill("\n".join(f"[[long_thought tokens=60 rate=60]] {number}" for number in range(200)))
    await page.at("#batch-run").click()
    figures, ending = page.at(".batch-figures"), page.at(".batch-ending")
    await expect(figures).to_contain_text(re.compile(r"[1-9]\d* of 200 rows"))
    demo.rlimit(psutil.RLIMIT_FSIZE, (1, unlimited[1]))
    try:
        await expect(ending).to_contain_text("The disk is full: ")
        await expect(ending).to_contain_text("Free some space and go on; nothing that has finished is lost.")
    finally:
        demo.rlimit(psutil.RLIMIT_FSIZE, unlimited)
    await page.at("[data-act=batch_resume]").click()
    await ran(page, "200 of 200 rows")
    await expect(figures).not_to_contain_text("failed")
    name, data = await downloaded(page, "#batch-results .export")
    assert Counter(json.loads(line)["index"] for line in data.splitlines()) == Counter(range(200))
