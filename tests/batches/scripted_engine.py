"""A row engine that answers by rule, in a given time, and notes what it was asked; and the parts of a batch around it."""

import asyncio
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from kimi_demo.batches.journal import Journal
from kimi_demo.batches.manifest import Manifest, sha256_of
from kimi_demo.batches.reading import Source, open_source
from kimi_demo.batches.results import Result, read_results
from kimi_demo.batches.running import BatchRun
from kimi_demo.batches.survey import survey
from kimi_demo.batches.versions import manifest_of
from kimi_demo.dialect.conversation import Message
from kimi_demo.dialect.failure import Failure
from kimi_demo.dialect.sampling import Sampling
from kimi_demo.engines.offline_rows import RowAsk, Standing
from kimi_demo.engines.offline_stream import RowAnswer

SAMPLING = Sampling(temperature=0.5, max_tokens=64, seed=7)


def text_of(messages: Sequence[Message]) -> str:
    return str(messages[-1]["content"])


class ScriptedEngine:
    """seconds: of one row. A prompt that holds "[too long]" is refused, "[die]" ends the engine, "[cut]" is cut off in its thought."""

    name = "scripted"

    def __init__(self, room: int = 16, seconds: float = 0.0, gate: asyncio.Event | None = None, model: str = "scripted-1") -> None:
        self.model = model
        self.room = room
        self.versions = {"scripted": "1"}
        self.seconds = seconds
        self.gate = gate
        self.asked = self.inside = self.most_inside = self.aborted = 0
        self.last: RowAsk | None = None

    @property
    def standing(self) -> Standing:
        return Standing(self.inside, self.inside)

    async def answer(self, ask: RowAsk) -> RowAnswer:
        self.asked += 1
        self.last = ask
        self.inside += 1
        self.most_inside = max(self.most_inside, self.inside)
        try:
            await asyncio.sleep(self.seconds)
            if self.gate is not None:
                await self.gate.wait()
        except asyncio.CancelledError:
            self.aborted += 1
            raise
        finally:
            self.inside -= 1
        text = text_of(ask.messages)
        if "[too long]" in text:
            raise Failure("batch.prompt_too_long", tokens=9000, limit=8192)
        if "[die]" in text:
            raise Failure("batch.engine_died", reason="scripted")
        if "[cut]" in text:
            return RowAnswer("so far", "", "length", 5, 64, 0.1, f"<{text}>")
        return RowAnswer("why" if ask.thinking else None, f"You said: {text}", "stop", 5, 3, 0.1, f"<{text}>")


def manifest(source: Source, sampling: Sampling = SAMPLING, *, thinking: bool = True, model: str = "scripted-1") -> Manifest:
    found = survey(source)
    return manifest_of(
        source, found, sha256_of(source.path), sampling, thinking=thinking, model=model, engine="scripted", created_at="2026-01-01"
    )


def batch(source: Source, journal: Journal, engine: ScriptedEngine, **more: Any) -> BatchRun:
    return BatchRun(source.rows, journal, engine, SAMPLING, thinking=True, **more)


def prompts(folder: Path, count: int, make: Callable[[int], str] = "prompt {}".format) -> Source:
    """A .txt of `count` prompts."""
    path = folder / "in.txt"
    path.write_text("".join(make(number) + "\n" for number in range(count)), encoding="utf-8")
    return open_source(path)


def results(path: Path) -> list[Result]:
    return list(read_results(path))


def resumed(folder: Path, seconds: float, told: Connection) -> None:
    """Goes on with the batch of folder/in.txt into folder/out.jsonl and tells of it; for a process of its own that can be killed."""

    async def go() -> None:
        source = open_source(folder / "in.txt")
        with Journal.resume(folder / "out.jsonl", manifest(source)) as journal:
            told.send(len(journal.done))
            run = batch(source, journal, ScriptedEngine(seconds=seconds), on_rows=lambda group: told.send([one.index for one in group]))
            told.send(await run.run())

    asyncio.run(go())
