"""Many streams at once: tokens/s, time to the first token, and processor time, through the page and through the openai client."""

import asyncio
import statistics
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial

from openai import AsyncOpenAI

from scripts.bench import raw
from scripts.bench.figure import Figure, measured
from scripts.bench.stage import Clock, Stage, in_turn
from scripts.bench.visitor import Stream, TooLate, Visitor, conversation

_TRIES = 3
"""A short trial run on a busy machine may follow a reply too late; a whole run never has."""


@dataclass(frozen=True)
class Pass:
    """Some streams at once. tokens_per_s: median over them, from asking to the last token; first_ms: of each; spent: by whom."""

    tokens_per_s: float
    first_ms: list[float]
    spent: Clock
    tokens: int

    @classmethod
    def of(cls, streams: list[Stream], spent: Clock) -> "Pass":
        rates = [stream.tokens / stream.last for stream in streams]
        firsts = [1000 * stream.first for stream in streams]
        return cls(statistics.median(rates), firsts, spent, sum(stream.tokens for stream in streams))

    def quantile(self, share: float) -> float:
        return sorted(self.first_ms)[min(len(self.first_ms) - 1, int(share * len(self.first_ms)))]


async def through_page(stage: Stage, visitors: list[Visitor], chat: str | None = None) -> Pass:
    sizes = stage.sizes
    for tries in range(_TRIES):
        before = Clock.now(stage.app)
        told = await asyncio.gather(
            *(visitor.ask(sizes.stream_tokens, sizes.stream_rate, chat) for visitor in visitors), return_exceptions=True
        )
        streams = [each for each in told if isinstance(each, Stream)]
        if len(streams) == len(visitors):
            return Pass.of(streams, Clock.now(stage.app).since(before))
        wrong = next(each for each in told if isinstance(each, BaseException))
        if not isinstance(wrong, TooLate) or tries == _TRIES - 1:
            raise wrong
    raise AssertionError("the last try returns or raises")


async def raw_way(stage: Stage, clients: list[AsyncOpenAI]) -> Pass:
    before, sizes = Clock.now(stage.app), stage.sizes
    streams = await asyncio.gather(*(raw.ask(client, sizes.stream_tokens, sizes.stream_rate) for client in clients))
    return Pass.of(streams, Clock.now(stage.app).since(before))


async def idle_share(stage: Stage) -> float:
    """Processor time of the app per second while nobody asks for anything."""
    before = Clock.now(stage.app)
    await asyncio.sleep(stage.sizes.idle_s)
    spent = Clock.now(stage.app).since(before)
    return spent.app / spent.wall


def _per_1000(spent_s: float, tokens: int) -> float:
    return 1000 * spent_s / tokens


def _cpu(key: str, pairs: list[tuple[Pass, Pass]], idle: float) -> Figure:
    page = [_per_1000(max(0.0, ours.spent.app - idle * ours.spent.wall), ours.tokens) for _, ours in pairs]
    client = [_per_1000(theirs.spent.own, theirs.tokens) for theirs, _ in pairs]
    ratio = statistics.median(mine / other for mine, other in zip(page, client, strict=True))
    return measured(key, ratio, app_s_per_1000=page, client_s_per_1000=client, idle_s_per_s=idle)


async def measure(stage: Stage) -> list[Figure]:
    sizes, found = stage.sizes, []
    idle = await idle_share(stage)
    added: dict[str, list[dict[str, float]]] = {"p50": [], "p95": []}
    for name, count in zip((1, 16, 64), sizes.streams, strict=True):
        async with AsyncExitStack() as stack:
            visitors = [await stack.enter_async_context(Visitor(stage.demo.address)) for _ in range(count)]
            clients = [
                await stack.enter_async_context(AsyncOpenAI(base_url=stage.upstream.base_url, api_key="none", max_retries=0))
                for _ in range(count)
            ]
            pairs = await in_turn(sizes.repeats, partial(raw_way, stage, clients), partial(through_page, stage, visitors))
            if name == 1:
                chat = await conversation(visitors[0], sizes.messages)
                long = [(theirs, await through_page(stage, visitors, chat)) for theirs, _ in pairs[:1]]
                found.append(_cpu("cpu_100_messages", long, idle))
        ratio = statistics.median(ours.tokens_per_s / theirs.tokens_per_s for theirs, ours in pairs)
        each = {"page": [ours.tokens_per_s for _, ours in pairs], "raw": [theirs.tokens_per_s for theirs, _ in pairs]}
        found.append(measured(f"throughput_{name}", ratio, streams=count, tokens_per_s=each))
        if name in (1, 64):
            found.append(_cpu(f"cpu_{name}", pairs, idle))
        for label, share in (("p50", 0.5), ("p95", 0.95)):
            page, other = (
                statistics.median(side) for side in zip(*((b.quantile(share), a.quantile(share)) for a, b in pairs), strict=True)
            )
            added[label].append({"streams": count, "page_ms": page, "raw_ms": other})
    for label, loads in added.items():
        worst = max(load["page_ms"] - load["raw_ms"] for load in loads)
        found.append(measured(f"ttft_{label}_ms", worst, loads=loads))
    return found
