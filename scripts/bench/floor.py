"""Our page against the least that a page can do: fetch the same stream and append its text."""

import asyncio
import json
from dataclasses import asdict
from functools import partial
from statistics import median

from scripts.bench import raw
from scripts.bench.figure import Figure, measured
from scripts.bench.sizes import Sizes
from scripts.bench.stage import Stage, in_turn
from scripts.bench.tab import ask, opened, serve_html, tab_below
from scripts.bench.visitor import question
from scripts.bench.writing import Cost, write

_BARE = """<!doctype html><meta charset=utf-8><button id=go>go</button>
<pre id=box style="white-space:pre-wrap;height:500px;overflow:auto"></pre><script>
const box = document.getElementById("box");
document.getElementById("go").onclick = async () => {
  const answer = await fetch("/v1/chat/completions", { method: "POST", headers: { "content-type": "application/json" }, body: __BODY__ });
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const lines = (rest + value).split("\\n");
    rest = lines.pop();
    for (const line of lines) {
      if (!line.startsWith("data: {")) continue;
      const delta = JSON.parse(line.slice(6)).choices[0]?.delta;
      const text = delta?.reasoning ?? delta?.content;
      if (text) { box.append(text); box.scrollTop = box.scrollHeight; }
    }
  }
};
</script>"""


def bare_html(sizes: Sizes) -> str:
    body = json.dumps(raw.body(sizes.floor_tokens, sizes.floor_rate))
    return _BARE.replace("__BODY__", json.dumps(body))


async def bare(stage: Stage) -> Cost:
    async with opened(stage.browser, "#box") as tab:
        await serve_html(tab.page, f"{stage.upstream.root}/bench/bare", bare_html(stage.sizes))
        return await write(tab, stage.upstream, stage.sizes, lambda: tab.page.click("#go"))


async def ours(stage: Stage) -> Cost:
    """Below `floor_messages` earlier messages, which are there before the browser comes."""
    sizes = stage.sizes
    async with tab_below(stage.browser, stage.demo.address, sizes.floor_messages) as tab:
        await asyncio.sleep(0 if sizes.quick else 2)  # what loading still does is not part of the cost
        return await write(tab, stage.upstream, sizes, lambda: ask(tab.page, question(sizes.floor_tokens, sizes.floor_rate)))


async def measure(stage: Stage) -> list[Figure]:
    pairs = await in_turn(stage.sizes.repeats, partial(bare, stage), partial(ours, stage))
    costs = {"bare": [asdict(one) for one, _ in pairs], "page": [asdict(one) for _, one in pairs]}
    pages = [one for _, one in pairs]
    return [
        measured("floor_ratio", median(mine.thread_ms_per_token / one.thread_ms_per_token for one, mine in pairs), **costs),
        measured("lag_ms", median(one.lag_ms for one in pages), each=[one.lag_ms for one in pages]),
        measured("freeze_ms", median(one.freeze_ms for one in pages), each=[one.freeze_ms for one in pages]),
        measured("longest_block_ms", median(one.longest_block_ms for one in pages), each=[one.longest_block_ms for one in pages]),
    ]
