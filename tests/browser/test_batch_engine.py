"""The batch tab on the real in-process engine, where it and the chat server want the same GPUs: it is taken over, paused, unloaded."""

import asyncio
import re
from pathlib import Path

import psutil
import pytest
from playwright.async_api import Browser, expect

from tests.browser.page import ENGINE_MS, DemoPage
from tests.demo import running

pytestmark = pytest.mark.asyncio(loop_scope="session")

ROWS = 200


def engines(pid: int) -> list[psutil.Process]:
    """vLLM's processes under the demo's."""
    return [child for child in psutil.Process(pid).children(recursive=True) if "EngineCore" in child.name()]


async def test_taken_over_paused_stopped_and_unloaded(standin_model: Path, browser: Browser, tmp_path: Path) -> None:
    """The stand-in under its path is a model like any other: nothing is shared. The chat server is still starting when it has to go."""
    options = ("--model", str(standin_model), "--tensor-parallel-size", "1", "--max-model-len", "512")
    with running(tmp_path, *options) as demo:
        visitor = await DemoPage.open(browser, demo.address)
        await visitor.tab("Batch")
        note = "Running this stops the chat server, which holds the GPUs now."
        await expect(visitor.at("#batch-engine-note")).to_contain_text(f"{note} Only the operator may do that.")
        await visitor.close()

        page = await DemoPage.open(browser, demo.operator)
        await page.tab("Batch")
        await expect(page.at("#batch-engine-note")).to_contain_text(note)
        await page.at("#batch-max-tokens input").fill("16")
        await page.at("#batch-prompts textarea").fill("\n".join(f"Say the number {number}." for number in range(ROWS)))
        await page.at("#batch-run").click()  # without a word about the chat server: refused, and it goes on
        ending, figures = page.at(".batch-ending"), page.at(".batch-figures")
        await expect(ending).to_contain_text("The GPUs are in use by the chat server.")
        await expect(page.at("[data-act=batch_unload]")).to_have_count(0)
        await page.at('[data-act=batch_go_on][data-value-takeover="true"]').click()
        await expect(figures).to_contain_text(re.compile(rf"[1-9]\d* of {ROWS} rows"), timeout=ENGINE_MS)
        assert len(engines(demo.program.process.pid)) == 1
        await expect(page.at("#model-badge")).to_contain_text("off")

        await page.at("[data-act=batch_pause]").click()
        await expect(ending).to_contain_text("Paused. No new rows begin; 0 rows are finishing.", timeout=ENGINE_MS)
        paused = await figures.locator("progress").get_attribute("value")
        await page.at("[data-act=batch_resume]").click()
        await expect(figures.locator("progress")).not_to_have_attribute("value", paused or "", timeout=ENGINE_MS)
        await page.at("#batch-stop").click()
        await expect(ending).to_contain_text(re.compile(rf"Stopped\. \d+ of {ROWS} rows had finished and are kept\."))

        await page.at("[data-act=batch_go_on]").click()
        await expect(page.at("[data-act=batch_pause]")).to_be_visible(timeout=ENGINE_MS)
        [engine] = engines(demo.program.process.pid)
        await page.at("[data-act=batch_unload]").click()
        await expect(ending).to_contain_text("The batch engine was unloaded while the batch was going.", timeout=ENGINE_MS)
        await asyncio.to_thread(engine.wait, 30)
        await expect(page.at("#batch-engine-note")).to_contain_text("The batch engine is loaded when the first batch runs")
        await page.close()
