"""The app is killed in the middle of a batch and started again: the tab offers to go on, and nothing is lost or run twice."""

import json
import re
import signal
from collections import Counter
from pathlib import Path

import pytest
from playwright.async_api import Browser, expect

from tests.browser.page import ENGINE_MS, DemoPage
from tests.demo import running
from tests.ports import free_port
from tests.scripted_server import Scripted

pytestmark = pytest.mark.asyncio(loop_scope="session")


def the_results(data: Path) -> Path:
    (path,) = data.glob("batches/*/*/results.jsonl")
    return path


async def test_a_batch_goes_on_after_a_kill(scripted: Scripted, browser: Browser, tmp_path: Path) -> None:
    port = str(free_port())
    with running(tmp_path, "--base-url", scripted.base_url, "--port", port) as demo:
        page = await DemoPage.open(browser, demo.address)
        await page.tab("Batch")
        prompts = "\n".join(f"[[long_thought tokens=20 rate=40]] {number}" for number in range(400))
        await page.at("#batch-prompts textarea").fill(prompts)
        await page.at("#batch-run").click()
        await expect(page.at("#batch-results tbody tr[data-state=done]").first).to_be_visible()
        demo.program.signal(signal.SIGKILL)
        demo.program.process.wait(10)
    results = the_results(tmp_path)
    before = results.read_bytes()
    before = before[: before.rfind(b"\n") + 1]
    done = before.count(b"\n")
    assert 0 < done < 400
    with running(tmp_path, "--base-url", scripted.base_url, "--port", port) as demo:
        await page.load()
        told = f"Interrupted: the demo ended meanwhile. {done} of 400 rows had finished and are kept."
        await expect(page.at(".batch-ending")).to_contain_text(told)
        await expect(page.at("#batch-results tbody tr[data-state=done]").first).to_be_visible()
        await page.at("[data-act=batch_go_on]").click()
        await expect(page.at(".batch-figures")).to_contain_text("400 of 400 rows", timeout=ENGINE_MS)
        await page.idle("batch")
        after = results.read_bytes()
        assert after.startswith(before)
        assert Counter(json.loads(line)["index"] for line in after.splitlines()) == Counter(range(400))
        await expect(page.at(".batch-items li")).to_contain_text(re.compile("done · 400 / 400"))
        await page.close()
