"""Other chat pages on the same scripted server, measured like ours: what they cost the browser, and how soon their text is there."""

import asyncio
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from scripts.bench.stage import Stage
from scripts.bench.tab import opened
from scripts.bench.visitor import question
from scripts.bench.writing import Cost, write
from tests.programs import ROOT, running

CHAT_INTERFACE = "gr.ChatInterface"

LEFT_OUT = {
    "gr.load_chat": "shows no thought, only the answer, so that the long thought measured here would not be drawn at all",
    "vllm-playground": "not started by this benchmark yet: it would have to be installed into an environment of its own",
    "open-webui": "not started by this benchmark yet: it would have to be installed into an environment of its own",
}


async def chat_interface(stage: Stage) -> Cost:
    sizes = stage.sizes
    arguments = ("-m", "scripts.bench.peer_chat_interface", stage.upstream.base_url, str(sizes.floor_messages))
    with running(*arguments, cwd=ROOT, PYTHONUNBUFFERED="1") as program:
        address = (await asyncio.to_thread(program.wait_for, r"http://\S+", 120)).group()
        async with opened(stage.browser, "[role=log] .bot-row") as tab:
            await tab.page.goto(address)
            field = tab.page.locator("#peer-input textarea")
            await field.wait_for(timeout=60_000)
            await asyncio.sleep(1 if sizes.quick else 2)  # what loading still does is not part of the cost

            async def begin() -> None:
                await field.fill(question(sizes.floor_tokens, sizes.floor_rate))
                await field.press("Enter")

            return await write(tab, stage.upstream, sizes, begin)


async def measure(stage: Stage, ours: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """By name: the figures, or why there are none. ours: the raw figures of `floor_ratio`."""
    found: dict[str, dict[str, Any]] = {}
    if ours:
        found |= {"a bare page": ours["bare"][-1], "kimi_demo": ours["page"][-1]}
    try:
        found[CHAT_INTERFACE] = asdict(await chat_interface(stage))
    except Exception as error:  # a peer's trouble is no reason to lose our figures
        found[CHAT_INTERFACE] = {"not_run": f"{type(error).__name__}: {error}".splitlines()[0]}
    return found | {name: {"not_run": reason} for name, reason in LEFT_OUT.items()}
