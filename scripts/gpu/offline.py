"""The in-process engine on this machine: load by phase, memory, tokens/s, the journalled batch against `LLM.chat`, stop, unload, again."""

import asyncio
import gc
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from kimi_demo.batches.engines import OfflineRows
from kimi_demo.dialect.events import BatchProgress, Event, RowFinished
from kimi_demo.dialect.sampling import Sampling
from kimi_demo.engines.guardian import Guardian
from kimi_demo.engines.offline import OfflineEngine
from kimi_demo.engines.offline_launch import OfflineLaunch
from kimi_demo.engines.plan.layout import Layout
from kimi_demo.settings import Settings
from scripts import bench_batch
from scripts.gpu.facts import Phases, gpu_memory, of_log, planned, read

_LLM_TOKENS = 16384
"""Tokens of a step of `LLM` on a large GPU; the API server takes 8,192 (engine/arg_utils.py `get_batch_defaults`)."""


def _prompts(count: int, salt: str) -> list[str]:
    return [f"{salt}: tell a long story of {number} animals and a lighthouse." for number in range(count)]


async def _rows(engine: OfflineEngine, count: int, tokens: int) -> dict[str, Any]:
    made = 0

    def emit(event: Event) -> None:
        nonlocal made
        if isinstance(event, RowFinished):
            assert event.error is None, event.error
            made += event.completion_tokens or 0

    began = time.perf_counter()
    await engine.generate(_prompts(count, f"Batch of {count}"), Sampling(temperature=1.0, top_p=1.0, max_tokens=tokens), True, emit)
    seconds = time.perf_counter() - began
    return {"rows": count, "tokens": made, "seconds": round(seconds, 3), "tokens_per_s": round(made / seconds, 1)}


async def _ratio(engine: OfflineEngine, model: str, count: int, tokens: int, pairs: int) -> dict[str, Any]:
    """As scripts/bench_batch.py: both ways in turn on the same engine, the prefix cache warm for both."""
    prompts = [f"Name {number} animals and say which of them is the largest." for number in range(count)]
    sampling, ours, theirs = Sampling(temperature=0.0, top_p=1.0, max_tokens=tokens), [], []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "in.txt").write_text("\n".join(prompts) + "\n", encoding="utf-8")
        async with engine.feed() as feed:
            rows, work = OfflineRows(feed, model), bench_batch.chat(prompts, sampling, True)
            await engine.with_llm(work)
            await bench_batch.batch(folder, rows, sampling, True)
            for number in range(pairs):
                gc.collect()
                if number % 2:
                    ours.append(await bench_batch.batch(folder, rows, sampling, True))
                    theirs.append(await engine.with_llm(work))
                else:
                    theirs.append(await engine.with_llm(work))
                    ours.append(await bench_batch.batch(folder, rows, sampling, True))
    ratios = [mine[0] / other[0] for mine, other in zip(ours, theirs, strict=True)]
    return {"rows": count, "max_tokens": tokens, "batch": ours, "chat": theirs, "ratios": ratios, "median": statistics.median(ratios)}


async def _stop(engine: OfflineEngine, count: int) -> dict[str, Any]:
    """Cancels a batch in the middle: how long until it has returned, and what vLLM still has of it then."""
    running = asyncio.Event()

    def emit(event: Event) -> None:
        if isinstance(event, BatchProgress) and event.running:
            running.set()

    sampling = Sampling(temperature=1.0, top_p=1.0, max_tokens=4096)  # less where the context has less room
    task = asyncio.create_task(engine.generate(_prompts(count, "Stop"), sampling, True, emit))
    await asyncio.wait([task, asyncio.create_task(running.wait())], return_when=asyncio.FIRST_COMPLETED)
    began = time.perf_counter()
    task.cancel()
    await asyncio.wait([task])
    seconds = time.perf_counter() - began
    left = await engine.with_llm(lambda llm: llm.llm_engine.get_num_unfinished_requests())
    return {"rows": count, "seconds": round(seconds, 4), "cancelled": task.cancelled(), "unfinished_after": left}


async def measure(
    settings: Settings, model: str, *, rows: list[int], tokens: int, pairs: int, pair_rows: int, pair_tokens: int, again: bool
) -> dict[str, Any]:
    """pairs: 0 for no comparison with LLM.chat; again: unload, and load a second time."""
    launch = OfflineLaunch.from_settings(settings, model)
    guardian = Guardian()
    engine = OfflineEngine(launch, guardian)
    layout = Layout(
        tensor=settings.tp, context=settings.max_model_len, utilization=launch.gpu_memory_utilization, batched_tokens=_LLM_TOKENS
    )
    told: dict[str, Any] = {"model": model, "plan": planned(model, layout, settings.cpu_kv_cache_gb), "gpu_before": gpu_memory()}
    try:
        phases = Phases()
        await engine.load(phases)
        told["load"], told["log"], told["gpu_loaded"] = phases.told, of_log(read(launch.log)), gpu_memory()
        await _rows(engine, 2, 16)  # what only the first rows pay for
        told["rows"] = [await _rows(engine, count, tokens) for count in rows]
        told["gpu_after_rows"] = gpu_memory()
        if pairs:
            told["batch_ratio"] = await _ratio(engine, model, pair_rows, pair_tokens, pairs)
        told["stop"] = await _stop(engine, max(rows))
        began = time.perf_counter()
        await engine.unload()
        told["unload_s"], told["gpu_unloaded"] = round(time.perf_counter() - began, 2), gpu_memory()
        if again:
            phases = Phases()
            await engine.load(phases)
            told["second_load"] = phases.told | {"rows": await _rows(engine, 2, 16), "gpu": gpu_memory()}
    except Exception as error:
        told["error"], told["log_tail"] = f"{type(error).__name__}: {error}", read(launch.log)[-60:]
    finally:
        await engine.close()
        await asyncio.to_thread(guardian.close)
        told["gpu_closed"] = gpu_memory()
    return told
