"""The benchmark from beginning to end: sets up, measures one thing after the other, tells of each, writes and prints."""

import asyncio
import json
import sys
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from playwright.async_api import Browser, async_playwright

from scripts.bench import batch, beginning, floor, lengths, memory, peers, presses, real, sent_bytes, streams, table, upstream
from scripts.bench.figure import GOALS, Figure, not_run
from scripts.bench.machine import Machine
from scripts.bench.sizes import FULL, QUICK, Sizes
from scripts.bench.stage import Stage
from scripts.installer.browser import system_chromium
from tests.demo import running

_CHROMIUM_FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"]

_OPEN = "floor_ratio"
"""Its raw figures hold our page and the bare one, for the table of peers."""

Measurement = tuple[str, Callable[[], Awaitable[list[Figure]]], tuple[str, ...]]
"""What it is called while it runs, what measures, and the keys that it gives."""


class Results:
    """Figures by key. broken: the names of measurements that failed, whose keys say why."""

    def __init__(self, began: datetime, quick: bool, machine: Machine, into: Path) -> None:
        self.machine = machine
        self.peers: dict[str, dict[str, Any]] = {}
        self._into = into
        self._head = {"began": began.isoformat(timespec="seconds"), "quick": quick, "machine": asdict(machine)}
        self.figures: dict[str, Figure] = {}
        self.broken: list[str] = []

    async def take(self, name: str, work: Callable[[], Awaitable[list[Figure]]], keys: Sequence[str]) -> None:
        print(f"measuring {name} …", file=sys.stderr, flush=True)
        try:
            found = await work()
        except Exception as error:  # one that fails must not cost the others
            self.broken.append(name)
            reason = f"{type(error).__name__}: {error}".splitlines()[0]
            print(f"{name}: {reason}", file=sys.stderr, flush=True)
            found = [not_run(key, reason) for key in keys]
        self.figures |= {figure.key: figure for figure in found}
        self.write()

    def write(self) -> None:
        """After every measurement: who interrupts an hour's work keeps what there is."""
        told = self._head | {"figures": {figure.key: figure.as_json() for figure in self.in_order()}, "peers": self.peers}
        self._into.write_text(json.dumps(told, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")

    def in_order(self) -> list[Figure]:
        return [self.figures.get(key) or not_run(key, "not measured") for key in GOALS]


def _keys(*beginnings: str) -> tuple[str, ...]:
    return tuple(key for key in GOALS if key.startswith(beginnings))


async def _measure(browser: Browser, results: Results, sizes: Sizes, only: Sequence[str], base_url: str | None) -> None:
    with ExitStack() as stack:
        server = stack.enter_context(upstream.running())
        repeats = sizes.repeats

        async def starts() -> list[Figure]:
            return await beginning.measure(browser, server, repeats)

        if not only or "start" in only:
            await results.take("start", starts, _keys("start_s", "interactive_s"))
        data = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        demo = stack.enter_context(running(data, "--base-url", server.base_url))
        stage = Stage(sizes, server, demo, browser)
        measurements: list[Measurement] = [
            ("streams", lambda: streams.measure(stage), _keys("throughput_1", "throughput_6", "ttft", "cpu")),
            ("presses", lambda: presses.measure(stage), _keys("enter", "stop")),
            ("floor", lambda: floor.measure(stage), (_OPEN, "lag_ms", "freeze_ms", "longest_block_ms")),
            ("bytes", lambda: sent_bytes.measure(stage), _keys("bytes")),
            ("lengths", lambda: lengths.measure(stage), _keys("browser")),
            ("real", lambda: real.measure(base_url, sizes), ("throughput_vllm",)),
            ("batch", lambda: batch.measure(sizes.quick, repeats), _keys("batch")),
            ("memory", lambda: memory.measure(stage), _keys("memory")),
        ]
        for name, work, keys in measurements:
            if not only or name in only:
                await results.take(name, work, keys)
            if name == "floor" and (not only or "peers" in only):
                print("measuring peers …", file=sys.stderr, flush=True)
                known = results.figures.get(_OPEN)
                results.peers = await peers.measure(stage, known.raw if known else {})


async def _run(into: Path, sizes: Sizes, only: Sequence[str], base_url: str | None) -> Results:
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=system_chromium(), args=_CHROMIUM_FLAGS)
        try:
            results = Results(datetime.now(UTC), sizes.quick, Machine.here(browser.version), into)
            await _measure(browser, results, sizes, only, base_url)
        finally:
            await browser.close()
    results.write()
    return results


def main(into: Path, *, quick: bool, only: Sequence[str] = (), base_url: str | None = None) -> int:
    """Measures, writes the JSON, prints the tables. 0: everything that can be measured here was; 1: something failed.

    A goal that is missed is no failure: the table says it. base_url: of a real vLLM, for the one line that is measured on it.
    """
    results = asyncio.run(_run(into, QUICK if quick else FULL, only, base_url))
    table.show(results.machine, results.in_order(), results.peers, quick=quick)
    return 1 if results.broken else 0
