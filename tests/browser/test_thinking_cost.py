"""What a live thought costs the browser, measured without a server's pace in between: the test hands the page its patches itself.

The cost is that of an update (style, layout, paint), not of a token: a server that brings 250 tokens with one update seems fifteen
times cheaper per token than one that brings 20. So updates of the same size are compared, and in the main thread's own processor
time (`threadTicks`), which a busy machine does not lengthen.
"""

import json
from typing import Any

import pytest
from playwright.async_api import Browser, CDPSession, Page

from kimi_demo.dialect.events import Asked, Event, RoundStarted, ThoughtDelta, Timed, Usage
from kimi_demo.ui.texts import texts
from kimi_demo.ui.view.run_view import RunView
from tests.browser.page import DemoPage
from tests.demo import Demo

pytestmark = pytest.mark.asyncio(loop_scope="session")

TOKENS_PER_UPDATE = 50
UPDATES = 60
LAST = 50_000

OWN_STREAM = """
    const Real = window.EventSource;
    window.streams = {};
    class Own extends EventTarget {
        constructor(url) { super(); window.streams[/live\\/(\\w+)/.exec(url)[1]] = this; }
        close() {}
        say(name, data) { this.dispatchEvent(new MessageEvent(name, { data: JSON.stringify(data) })); }
    }
    window.EventSource = function (url) { return String(url).includes("kimi/live/") ? new Own(url) : new Real(url); };
"""
UPDATE = """async (updates) => {
    for (const update of updates) {
        await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));  // each is seen before the next comes
        window.streams.chat.say("message", update);
    }
}"""


class Thought:
    """A thought that grows in the page, and what it has cost."""

    def __init__(self, page: Page, session: CDPSession, line: int) -> None:
        self.page = page
        self.written = 0
        self._session = session
        self._line = line
        self._view = RunView("x", texts("en"))

    async def begin(self) -> None:
        await self._session.send("Performance.enable", {"timeDomain": "threadTicks"})
        html = f'<div id="holder-x" data-run="x">{self._view.skeleton()}</div>'
        started = {"group": "g", "kept": 0, "running": True, "html": html, "system": ""}
        await self.page.evaluate("(started) => window.streams.chat.say('start', started)", started)
        await self.page.evaluate(UPDATE, [self._view.take([Timed(0.0, Asked("q")), Timed(0.0, RoundStarted(0))])])

    def word(self, number: int) -> str:
        return f" w{number}" + ("\n" if self._line and number % self._line == self._line - 1 else "")

    async def grow(self, tokens: int, *, updates: int) -> float:
        """Seconds of the main thread for `tokens` more, in that many updates."""
        made: list[Any] = []
        for _ in range(updates):
            end = self.written + tokens // updates
            said = [Timed(end / 100, ThoughtDelta(self.word(number))) for number in range(self.written, end)]
            made.append(self._view.take([*said, Timed(end / 100, Usage(9, end, end, final=False))]))
            self.written = end
        before = await self._busy()
        await self.page.evaluate(UPDATE, made)
        return await self._busy() - before

    async def _busy(self) -> float:
        metrics = (await self._session.send("Performance.getMetrics"))["metrics"]
        return next(float(metric["value"]) for metric in metrics if metric["name"] == "TaskDuration")


@pytest.mark.parametrize("line", [0, 15], ids=["one endless line", "lines of 15 words"])
async def test_a_token_costs_the_browser_the_same_at_50_000_as_at_1_000(
    attached: Demo, browser: Browser, line: int, record_property: pytest.FixtureRequest
) -> None:
    context = await browser.new_context()
    await context.add_init_script(f"(() => {{ {OWN_STREAM} }})();")
    page = DemoPage(await context.new_page(), attached.address)
    await page.load()
    await page.page.wait_for_function("window.streams.chat")
    thought = Thought(page.page, await context.new_cdp_session(page.page), line)
    await thought.begin()
    measured = TOKENS_PER_UPDATE * UPDATES
    await thought.grow(1_000, updates=20)
    early = await thought.grow(measured, updates=UPDATES)
    await thought.grow(LAST - measured - thought.written, updates=43)
    late = await thought.grow(measured, updates=UPDATES)
    costs = {"1,000": early / measured * 1e6, "50,000": late / measured * 1e6}
    record_property("browser_us_per_token", json.dumps(costs))  # type: ignore[operator]
    print(f"main thread, µs per token in updates of {TOKENS_PER_UPDATE}: {costs}")
    assert late < 3 * early, costs
    # Nothing got lost on the way, wherever segments were cut.
    shown = await page.page.evaluate("[...document.querySelectorAll('#run-x-0-thought-text .segment')].map((each) => each.textContent)")
    assert shown and "".join(shown).split() == [f"w{number}" for number in range(LAST)]
    assert max(map(len, shown)) <= 8 * 1024 + TOKENS_PER_UPDATE * 8
    assert not page.complaints
    await context.close()


async def test_where_a_segment_is_cut_no_character_is_lost_or_halved(attached: Demo, browser: Browser) -> None:
    context = await browser.new_context()
    await context.add_init_script(f"(() => {{ {OWN_STREAM} }})();")
    page = DemoPage(await context.new_page(), attached.address)
    await page.load()
    await page.page.wait_for_function("window.streams.chat")
    pieces = ["思考" * 3_001, "🎉" * 9_001, "x" * 30_000, " ", "a\n" * 5_000, "\n\n", "end" * 10_000 + "\nlast"]
    view = RunView("x", texts("en"))
    started = {"group": "g", "kept": 0, "running": True, "html": f'<div data-run="x">{view.skeleton()}</div>', "system": ""}
    await page.page.evaluate("(started) => window.streams.chat.say('start', started)", started)
    events: list[Event] = [Asked("q"), RoundStarted(0), *map(ThoughtDelta, pieces)]
    await page.page.evaluate(UPDATE, [view.take([Timed(0.0, event)]) for event in events])
    shown: list[str] = await page.page.evaluate(
        "[...document.querySelectorAll('#run-x-0-thought-text .segment')].map((each) => each.textContent)"
    )
    whole = "".join(pieces)
    assert "".join(shown).replace("\n", "") == whole.replace("\n", "")
    assert not any("\ud800" <= each[0] <= "\udfff" or "\ud800" <= each[-1] <= "\udfff" for each in shown if each)
    # A break that is missing in the text is a border between two segments, and stands nowhere else.
    rest = whole
    for each in shown:
        assert rest.startswith(each) or rest.startswith("\n" + each)
        rest = rest.removeprefix("\n") if not rest.startswith(each) else rest
        rest = rest[len(each) :]
    assert rest == ""
    await context.close()
