"""What showing a live thought costs the browser: escaped text in Gradio's Chatbot, our own element, and a bare page.

python scripts/measure_live_thought.py [--tokens 2000] [--rate 200] [--history 20] [--runs 3]

All three get the same tokens at the same pace, one after the other in the same headless Chromium. Printed per token: main-thread
time (Chromium's TaskDuration), bytes received, and how long after the last token was made it could be seen.
"""

import argparse
import asyncio
import json
import os
import socket
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ["GRADIO_ANALYTICS_ENABLED"] = "False"
sys.path.insert(0, str(Path(__file__).parents[1]))

import gradio as gr  # noqa: E402
import uvicorn  # noqa: E402
from fastapi import FastAPI, Request  # noqa: E402
from fastapi.responses import HTMLResponse, StreamingResponse  # noqa: E402
from fastapi.staticfiles import StaticFiles  # noqa: E402
from playwright.async_api import Browser, Page, async_playwright  # noqa: E402

from kimi_demo.chats import Asking, Chats  # noqa: E402
from kimi_demo.dialect.conversation import ChatRequest  # noqa: E402
from kimi_demo.dialect.events import AnswerDelta, Finished, RoundStarted, ThoughtDelta  # noqa: E402
from kimi_demo.dialect.sampling import Sampling  # noqa: E402
from kimi_demo.runs.registry import Registry  # noqa: E402
from kimi_demo.runs.run import Run  # noqa: E402
from kimi_demo.runs.store import Store  # noqa: E402
from kimi_demo.ui import page  # noqa: E402
from kimi_demo.ui.desk import Desk  # noqa: E402
from kimi_demo.ui.live import Kind, Live, Pace  # noqa: E402
from kimi_demo.ui.routes import ASSETS  # noqa: E402
from kimi_demo.ui.texts import texts  # noqa: E402
from scripts.installer.browser import system_chromium  # noqa: E402

OWNER = "somebody"
CONVERSATION = "0" * 32
WORDS = "the model looks at the question again and weighs what it knows, line by line.\n".split(" ")


@dataclass(frozen=True)
class Load:
    """tokens of thought, made at `rate` tokens/s, below `history` earlier messages."""

    tokens: int
    rate: float
    history: int


@dataclass(frozen=True)
class Cost:
    """Per token: microseconds of the browser's main thread, bytes received. lag_ms: last token made → seen."""

    task_us: float
    bytes: float
    lag_ms: float


async def source(load: Load, made: Callable[[], None]) -> AsyncIterator[str]:
    """Tokens by deadline; `made` is called at the last one, which is "END"."""
    began = time.monotonic()
    for index in range(load.tokens):
        await asyncio.sleep(max(0.0, began + index / load.rate - time.monotonic()))
        if index == load.tokens - 1:
            made()
            yield "END"
        else:
            yield WORDS[index % len(WORDS)] + " "


def chatbot_page(app: FastAPI, load: Load, made: Callable[[], None]) -> None:
    """Gradio's own way, with the pace that helps it most: one yield per 50 ms, escaped text in a thought's message."""
    earlier = [{"role": role, "content": [{"type": "text", "text": "An earlier message. " * 20}]} for role in ("user", "assistant")]

    async def run() -> AsyncIterator[Any]:
        history = earlier * (load.history // 2)
        thought, spoken = "", 0.0
        async for token in source(load, made):
            thought += token
            if time.monotonic() - spoken >= 0.05 or token == "END":
                spoken = time.monotonic()
                message = {
                    "role": "assistant",
                    "content": [{"type": "text", "text": thought}],
                    "metadata": {"title": "Thinking", "status": "pending"},
                }
                yield [*history, message]

    with gr.Blocks() as blocks:
        box = gr.Chatbot(elem_id="box", render_markdown=False, height=500)
        gr.Button("go", elem_id="go").click(run, None, box)
    gr.mount_gradio_app(app, blocks, path="/", run_history=False)


def own_page(app: FastAPI, load: Load, made: Callable[[], None], folder: Path) -> None:
    """The element of this project, with its real registry, store, views, stream and script."""
    registry = Registry(Store(folder / "runs.sqlite3"), 10)
    streaming = False

    async def work(run: Run, _: ChatRequest) -> None:
        run.append(RoundStarted(0))
        if not streaming:
            run.append(AnswerDelta("An earlier message. " * 20))
            run.append(Finished("stop"))
            return
        async for token in source(load, made):
            run.append(ThoughtDelta(token))
        await asyncio.sleep(3600)  # still thinking: what is measured is the live panel

    chats = Chats(registry, work, max_prompt_chars=10_000)
    live = Live(Desk(registry), chats, texts("en"), Pace())

    async def send(text: str) -> Run:
        run = await chats.send(OWNER, CONVERSATION, Asking(text, Sampling()))
        assert run is not None
        return run

    async def prepare() -> None:
        nonlocal streaming
        for _ in range(load.history // 2):
            await (await send("An earlier message. " * 20)).wait()
        streaming = True

    async def start() -> None:
        await send("go")

    app.state.prepare = prepare

    @app.get("/kimi/live/{kind}")
    async def follow(kind: Kind, opened: str = "", group: str = "", after: str = "") -> StreamingResponse:
        messages = live.stream(OWNER, kind, opened=opened, group=group, after=after)
        return StreamingResponse(messages, media_type="text/event-stream")

    @app.get("/kimi/badge")
    async def badge() -> dict[str, object]:
        return {"html": "", "settled": True}

    app.mount("/kimi/static", StaticFiles(directory=ASSETS))
    with gr.Blocks() as blocks:
        gr.HTML('<div class="live" id="box"></div>', elem_id="chat", apply_default_css=False)
        gr.Button("go", elem_id="go").click(start, None, None, queue=False).then(fn=None, js="() => window.kimi.follow('chat')")
    gr.mount_gradio_app(app, blocks, path="/", run_history=False, head=page.head(texts("en")))


def bare_page(app: FastAPI, load: Load, made: Callable[[], None]) -> None:
    """The least that a page can do: read the stream, append the text."""

    @app.get("/tokens")
    async def tokens(request: Request) -> StreamingResponse:
        async def lines() -> AsyncIterator[str]:
            async for token in source(load, made):
                yield f"data: {json.dumps({'choices': [{'index': 0, 'delta': {'reasoning': token}, 'finish_reason': None}]})}\n\n"

        return StreamingResponse(lines(), media_type="text/event-stream")

    @app.get("/")
    async def start() -> HTMLResponse:
        return HTMLResponse(
            "<!doctype html><button id=go>go</button><pre id=box style='white-space:pre-wrap;height:500px;overflow:auto'></pre><script>"
            "go.onclick=()=>{const s=new EventSource('tokens');s.onmessage=m=>{box.append(JSON.parse(m.data).choices[0].delta.reasoning);"
            "box.scrollTop=box.scrollHeight};s.onerror=()=>s.close()}</script>"
        )


async def measure(browser: Browser, build: Callable[[FastAPI, Callable[[], None]], None], load: Load) -> Cost:
    app, moments = FastAPI(), []
    build(app, lambda: moments.append(time.monotonic()))
    if hasattr(app.state, "prepare"):
        await app.state.prepare()
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        server = uvicorn.Server(uvicorn.Config(app, log_level="error", timeout_graceful_shutdown=1))
        serving = asyncio.create_task(server.serve(sockets=[sock]))
        context = await browser.new_context()
        tab = await context.new_page()
        try:
            return await _watch(tab, f"http://127.0.0.1:{sock.getsockname()[1]}/", moments, load)
        finally:
            await context.close()
            server.should_exit = True
            await serving


async def _watch(page: Page, address: str, moments: list[float], load: Load) -> Cost:
    client = await page.context.new_cdp_session(page)
    received = 0

    def on_data(event: dict[str, Any]) -> None:
        nonlocal received
        received += event["dataLength"]

    client.on("Network.dataReceived", on_data)
    await client.send("Performance.enable")
    await client.send("Network.enable")
    await page.goto(address)
    await page.wait_for_selector("#go")
    await page.wait_for_timeout(1500)  # what loading still does is not part of the cost
    before, received = await _task_seconds(client), 0
    await page.click("#go")
    await page.wait_for_function("document.querySelector('#box').textContent.includes('END')", timeout=300_000, polling=20)
    seen = time.monotonic()
    spent = await _task_seconds(client) - before
    return Cost(1e6 * spent / load.tokens, received / load.tokens, 1000 * (seen - moments[0]))


async def _task_seconds(client: Any) -> float:
    metrics = (await client.send("Performance.getMetrics"))["metrics"]
    return next(float(metric["value"]) for metric in metrics if metric["name"] == "TaskDuration")


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tokens", type=int, default=2000)
    parser.add_argument("--rate", type=float, default=200)
    parser.add_argument("--history", type=int, default=20)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--browser", default=system_chromium(), help="its path; by default the system's Chromium, else Playwright's own")
    given = parser.parse_args()
    load = Load(given.tokens, given.rate, given.history)
    costs: dict[str, list[Cost]] = {"bare page": [], "own element": [], "gr.Chatbot": []}
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=given.browser, args=["--no-sandbox", "--disable-gpu"])
        for _ in range(given.runs):
            with tempfile.TemporaryDirectory() as folder:
                pages: dict[str, Callable[[FastAPI, Callable[[], None]], None]] = {
                    "bare page": lambda app, made: bare_page(app, load, made),
                    "own element": lambda app, made: own_page(app, load, made, Path(folder)),  # noqa: B023 (called before the next turn)
                    "gr.Chatbot": lambda app, made: chatbot_page(app, load, made),
                }
                for name, build in pages.items():
                    costs[name].append(await measure(browser, build, load))
        await browser.close()
    print(f"{load.tokens} tokens at {load.rate:g}/s below {load.history} messages; medians of {given.runs}")
    print(f"{'':12} {'main thread':>14} {'bytes':>12} {'last token seen':>18}")
    for name, found in costs.items():
        median = Cost(*(statistics.median(getattr(cost, field) for cost in found) for field in ("task_us", "bytes", "lag_ms")))
        print(f"{name:12} {median.task_us:9.0f} us/tok {median.bytes:8.0f} /tok {median.lag_ms:13.0f} ms")


if __name__ == "__main__":
    asyncio.run(main())
