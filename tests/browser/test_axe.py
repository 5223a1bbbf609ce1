"""axe-core over every tab, empty and with something in it, light and dark, wide and on a phone: nothing serious in our own markup."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

import pytest
from axe_playwright_python.base import AXE_SCRIPT
from playwright.async_api import Browser, expect

from tests.browser.page import DemoPage
from tests.demo import Demo
from tests.scripted_server import Scripted

pytestmark = pytest.mark.asyncio(loop_scope="session")

WIDE, PHONE = (1280, 860), (390, 800)
ALL: dict[str, Any] = {"resultTypes": ["violations"]}
COLOURS: dict[str, Any] = ALL | {"runOnly": ["color-contrast"]}
Look = tuple[Literal["light", "dark"], tuple[int, int], dict[str, Any]]
LOOKS: tuple[Look, ...] = (("light", WIDE, ALL), ("light", PHONE, COLOURS), ("dark", PHONE, ALL), ("dark", WIDE, COLOURS))
"""What is there depends on the width, its colours also on the scheme; axe takes a second for all its rules."""
GRAVE = ("serious", "critical")

GRADIOS: dict[str, str] = {}
"""Rules that Gradio's own components break, with the reason why that stays: none at the moment."""

RICH = """# Title
A **word**, `code`, a [link](https://example.org) and $x^2$.

> A quotation.

| a | b |
|---|---|
| 1 | 2 |

```python
class Kimi:  # says so
    name: str = "K2.5" + str(1.5)
```
"""

STILL = """Promise.race([
  Promise.all(document.getAnimations().map((each) => each.finished.catch(() => 0))),
  new Promise((done) => setTimeout(done, 2000)), // one that never ends
])"""

NOT_OURS = "gradio-app footer, .toast-wrap"
"""What Gradio puts on the page without being asked."""


@dataclass(frozen=True)
class Finding:
    """rule: axe's id of it; where: a selector; what: axe's sentence."""

    rule: str
    where: str
    what: str
    look: str


async def findings(page: DemoPage, state: str, looks: Iterable[Look] = LOOKS) -> list[Finding]:
    """Serious and critical ones of what can be seen now, in each look; the last is left in place."""
    found: list[Finding] = []
    if not await page.page.evaluate("'axe' in window"):
        await page.page.evaluate(AXE_SCRIPT)
    for scheme, (width, height), options in looks:
        await page.page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        await page.page.set_viewport_size({"width": width, "height": height})
        await expect(page.at("body.dark")).to_have_count(1 if scheme == "dark" else 0)
        # A colour on its way to another is neither of the two.
        await page.page.evaluate(STILL)
        told: dict[str, Any] = await page.page.evaluate("(given) => axe.run(...given)", [{"exclude": [NOT_OURS]}, options])
        for violation in told["violations"]:
            if violation["impact"] in GRAVE and violation["id"] not in GRADIOS:
                for node in violation["nodes"]:
                    said = [check["message"] for check in (*node["any"], *node["all"], *node["none"])]
                    found.append(Finding(violation["id"], str(node["target"]), " ".join(said), f"{state}, {scheme}, {width} px"))
    return found


async def test_axe_finds_what_is_wrong(page: DemoPage) -> None:
    """So that the silence of the test below means something."""
    await page.at("#header").evaluate("header => header.insertAdjacentHTML('beforeend', '<button></button><img src=\"x.png\">')")
    assert {found.rule for found in await findings(page, "broken", LOOKS[:1])} == {"button-name", "image-alt"}
    page.complaints.clear()  # the picture is not there


async def test_nothing_serious_on_the_visitors_tabs(page: DemoPage, scripted: Scripted) -> None:
    found = await findings(page, "chat, empty")
    scripted.scenario("reasoning", answer=RICH)
    await page.ask("chat", "show all that an answer can hold")
    await page.idle("chat")
    scripted.scenario("reasoning")
    await page.run("chat").locator("summary").first.click()
    await page.at("#chat-parameters-open").click()
    found += await findings(page, "chat, with its parameters")
    await page.page.keyboard.press("Escape")
    found += await findings(page, "chat, answered")
    await page.at('[data-chat-mode="raw"]').click()
    await page.at("#raw-run").click()
    await expect(page.at("#raw [data-run]")).to_have_attribute("data-whole", "1")
    found += await findings(page, "raw prompt")
    await page.at('[data-chat-mode="pair"]').click()
    await page.at("#pair-input textarea").fill("one prompt")
    await page.at("#pair-run").click()
    await expect(page.at("#pair [data-run][data-whole]")).to_have_count(2)
    found += await findings(page, "side by side")

    await page.tab("Function calling")
    await expect(page.at("#tools .empty")).to_be_visible()
    await page.at(".bench summary").first.click()
    found += await findings(page, "tools, empty")
    await page.at(".bench summary").first.click()
    await page.ask("tools", "[[two_calls]] two sums")
    await expect(page.run("tools")).to_have_attribute("data-whole", "1")
    found += await findings(page, "tools, answered")

    await page.tab("Batch")
    await expect(page.at("#batch-results .empty")).to_be_visible()
    found += await findings(page, "batch, empty")
    await page.at("#batch-prompts textarea").fill("[[reasoning]] one\n[[cut_in_thought]] two\n[[fails]] three")
    await page.at("#batch-run").click()
    await expect(page.run("batch")).to_have_attribute("data-whole", "1")
    await page.idle("batch")
    found += await findings(page, "batch, done")
    assert not found


async def test_nothing_serious_on_the_operators_tabs(attached: Demo, browser: Browser) -> None:
    page = await DemoPage.open(browser, attached.operator)
    found: list[Finding] = []
    await page.tab("Server")
    await expect(page.at("#srv-head .srv-state")).to_have_text("ready", timeout=60_000)
    for view in await page.at("[data-srv-view]").evaluate_all("buttons => buttons.map((button) => button.dataset.srvView)"):
        await page.at(f'[data-srv-view="{view}"]').click()
        await expect(page.at(f'[data-srv-panel="{view}"]')).to_be_visible()
        found += await findings(page, f"server, {view}")
    await page.tab("QA")
    await page.at('#qa-suites input[value="smoke"]').check()
    found += await findings(page, "qa, before a run")
    await page.at("#qa-start").click()
    await expect(page.at('#qa-head .qa-state[data-run-state="done"]')).to_be_visible(timeout=60_000)
    await page.at(".qa-cases summary").first.click()
    found += await findings(page, "qa, after a run")
    assert not found and not page.complaints
    await page.close()
