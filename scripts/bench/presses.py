"""How soon a press is felt: Enter until the first word is seen, Stop until the request to the model is closed."""

import asyncio
from statistics import median

from scripts.bench.figure import Figure, measured
from scripts.bench.stage import Stage
from scripts.bench.tab import Tab, ask, demo_tab
from scripts.bench.visitor import question

_IDLE = "html[data-chat=idle]"


async def enter_to_first(stage: Stage, tab: Tab) -> float:
    """Milliseconds."""
    await tab.forget()
    await ask(tab.page, question(10, 50))
    first = (await tab.until_shown()).first_ms
    await tab.until_done()
    await tab.page.wait_for_selector(_IDLE, state="attached")
    return first


async def stop(stage: Stage, tab: Tab, prompt: str, *, silent: bool) -> float:
    """Milliseconds; silent: before anything has been said, else once the first word is seen."""
    known = len(await asyncio.to_thread(stage.upstream.seen))
    await tab.forget()
    await ask(tab.page, prompt)
    if not silent:
        await tab.until_shown()
    await asyncio.to_thread(stage.upstream.until_asked, known + 1)
    await tab.page.wait_for_selector("#chat-stop", state="visible")
    await tab.forget()
    await tab.page.click("#chat-stop")
    pressed = (await tab.shown()).pressed
    over = await asyncio.to_thread(stage.upstream.until_over, known + 1)
    await tab.page.wait_for_selector(_IDLE, state="attached")
    if over.aborted_at is None or not pressed:
        raise RuntimeError("Stop was pressed, and the reply went on to its end")
    return 1000 * (over.aborted_at - pressed)


async def measure(stage: Stage) -> list[Figure]:
    presses = range(stage.sizes.presses)
    async with demo_tab(stage.browser, stage.demo.address) as tab:
        first = [await enter_to_first(stage, tab) for _ in presses]
        writing = [await stop(stage, tab, question(3_000, 50), silent=False) for _ in presses]
        silent = [await stop(stage, tab, "[[silent seconds=60]] go", silent=True) for _ in presses]
    return [
        measured("enter_to_first_ms", median(first), each=first),
        measured("stop_ms", median(writing), each=writing),
        measured("stop_prefill_ms", median(silent), each=silent),
    ]
