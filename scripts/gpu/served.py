"""The server on this machine: start by phase, memory, chat by three ways, a stop that aborts, what the Server tab's monitor reads."""

import asyncio
import os
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any

from openai import AsyncOpenAI

from kimi_demo.dialect.conversation import ChatRequest, user
from kimi_demo.dialect.events import AnswerDelta, ThoughtDelta
from kimi_demo.dialect.sampling import Sampling
from kimi_demo.engines.accelerators import gpus
from kimi_demo.engines.endpoint import Endpoint
from kimi_demo.engines.gpu_use import gpu_use
from kimi_demo.engines.launch import Launch
from kimi_demo.engines.metrics.reading import read_metrics
from kimi_demo.engines.plan.layout import Layout
from kimi_demo.engines.server import Server
from kimi_demo.settings import Settings
from scripts.bench.visitor import Visitor
from scripts.gpu import streams
from scripts.gpu.facts import Phases, gpu_memory, of_log, planned
from tests.demo import running as running_demo
from tests.programs import ROOT

_ABORTED_S = 20.0


def _path() -> str:
    """Where the page finds packages: the repository, and what this process was told (a GPU machine's may lie in a folder)."""
    return os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])


async def _all(events: list[asyncio.Event]) -> None:
    for event in events:
        await event.wait()


async def _stop(endpoint: Endpoint, count: int) -> dict[str, Any]:
    """Closes streams in the middle: seconds until the server has nothing running or waiting."""
    heard = [asyncio.Event() for _ in range(count)]

    async def follow(number: int) -> None:
        request = ChatRequest(
            [user(streams.question(number, "Stop"))],
            Sampling(max_tokens=(endpoint.info.max_model_len or 4096) // 2),
            extra={"ignore_eos": True},
        )
        async for event in endpoint.stream(request):
            if isinstance(event, ThoughtDelta | AnswerDelta):
                heard[number].set()

    tasks = [asyncio.create_task(follow(number)) for number in range(count)]
    begun = asyncio.create_task(_all(heard))
    await asyncio.wait([begun, *tasks], return_when=asyncio.FIRST_COMPLETED)
    if not begun.done():  # one ended before it could be stopped: why is in its exception
        begun.cancel()
        ended = next(task for task in tasks if task.done())
        raise RuntimeError("a stream ended before it was stopped") from ended.exception()
    before = await streams.running(endpoint)
    began = time.perf_counter()
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    async with asyncio.timeout(_ABORTED_S):
        await streams.idle(endpoint)
    return {"streams": count, "running_before": before, "seconds": round(time.perf_counter() - began, 3)}


async def _through_page(server: Server, endpoint: Endpoint, counts: list[int], tokens: int) -> list[dict[str, Any]]:
    found = []
    with tempfile.TemporaryDirectory() as folder:
        flags = ("--base-url", server.base_url)
        with running_demo(Path(folder), *flags, KIMI_DEMO_API_KEY=server.api_key, PYTHONPATH=_path()) as demo:
            async with AsyncExitStack() as stack:
                visitors = [await stack.enter_async_context(Visitor(demo.address)) for _ in range(max(counts))]
                await streams.page(visitors[0], "Hello", 8)
                for count in counts:

                    async def ask(number: int) -> float:
                        return await streams.page(visitors[number], streams.question(number, "Page"), tokens)

                    found.append(await streams.at_once(endpoint, count, ask))
    return found


async def measure(settings: Settings, model: str, *, counts: list[int], tokens: int, with_page: bool) -> dict[str, Any]:
    launch = Launch.from_settings(settings, model)
    layout = Layout(tensor=settings.tp, context=settings.max_model_len, utilization=launch.gpu_memory_utilization)
    told: dict[str, Any] = {
        "model": model,
        "plan": planned(model, layout, settings.cpu_kv_cache_gb),
        "gpus": [{"name": one.name, "memory": one.memory, "free": one.free} for one in gpus()],
        "gpu_before": gpu_memory(),
    }
    begun: list[Server] = []
    endpoint = None
    try:
        phases = Phases()
        server = await Server.start(launch, phases, on_begun=begun.append)
        told["load"], told["log"], told["gpu_loaded"] = phases.told, of_log(server.log_tail(2000)), gpu_memory()
        endpoint = await Endpoint.connect(server.base_url, server.api_key, "vllm")
        told["models"] = {"max_model_len": endpoint.info.max_model_len, "version": await endpoint.version()}
        async with AsyncOpenAI(base_url=server.base_url, api_key=server.api_key, max_retries=0) as client:
            ways: dict[str, Callable[[int], Awaitable[float]]] = {
                "raw": lambda number: streams.raw(client, endpoint.info.id, streams.question(number, "Raw"), tokens),
                "endpoint": lambda number: streams.ours(endpoint, streams.question(number, "Ours"), tokens),
            }
            for name, ask in ways.items():
                await ask(0)  # what only the first request pays for
                told[name] = [await streams.at_once(endpoint, count, ask) for count in counts]
            # What the Server tab's monitor reads, while the GPU works.
            busy = asyncio.gather(*(ways["endpoint"](number) for number in range(max(counts))))
            await asyncio.sleep(0.3)
            told["monitor"] = {"gpu_use": [asdict(one) for one in await asyncio.to_thread(gpu_use)]}
            metrics = await endpoint.metrics()
            told["monitor"]["metrics"] = None if metrics is None else _summary(metrics)
            await busy
        told["stop"] = await _stop(endpoint, 16)
        if with_page:
            told["page"] = await _through_page(server, endpoint, counts, tokens)
        began = time.perf_counter()
        await server.stop()
        told["stop_server_s"], told["gpu_stopped"] = round(time.perf_counter() - began, 2), gpu_memory()
    except BaseException as error:
        told["error"] = f"{type(error).__name__}: {error} {error.__cause__ or ''}"
        told["log_tail"] = begun[-1].log_tail(60) if begun else []
    finally:
        if endpoint is not None:
            await endpoint.aclose()
        for server in begun:
            await server.stop()
    return told


def _summary(metrics: str) -> dict[str, Any]:
    reading = read_metrics(metrics)
    names = ("running", "waiting", "cache_use", "prompt_tokens", "generation_tokens", "preemptions")
    return {name: getattr(reading, name) for name in names} | {"finished": dict(reading.finished)}
