"""Bytes to the browser per token of thought, early and late in a very long thought, against the bytes that came from upstream."""

from scripts.bench import raw
from scripts.bench.figure import Figure, measured
from scripts.bench.stage import Stage
from scripts.bench.visitor import Visitor


async def measure(stage: Stage) -> list[Figure]:
    sizes = stage.sizes
    tokens = sizes.lengths[-1] + sizes.window
    upstream = await raw.upstream_bytes(stage.upstream.base_url, tokens)
    async with Visitor(stage.demo.address) as visitor:
        page = await visitor.ask(tokens, sizes.length_rate)
    found, ours = [], []
    for key, length in zip(("bytes_1k", "bytes_10k", "bytes_50k"), sizes.lengths, strict=True):
        mine, other = page.bytes_per_token(length, sizes.window), upstream.bytes_per_token(length, sizes.window)
        ours.append(mine)
        found.append(measured(key, mine / other, at=length, page_bytes=mine, upstream_bytes=other, tokens_per_s=sizes.length_rate))
    found.append(measured("bytes_growth", ours[-1] / ours[0], page_bytes=ours))
    return found
