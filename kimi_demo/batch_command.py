"""`batch`: prompts from a file through an engine into a file of results, without a page."""

import argparse
import asyncio
import os
import signal
import sys
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from kimi_demo.batch_console import Console
from kimi_demo.batch_job import AGAIN, NUMBERS, Job, prepared
from kimi_demo.batches.encoding import unreadable
from kimi_demo.batches.engines import SERVER_ROWS, OfflineRows, RowEngine, ServerRows
from kimi_demo.batches.journal import Journal
from kimi_demo.batches.manifest import Manifest
from kimi_demo.batches.reading import FORMATS
from kimi_demo.batches.results import read_results
from kimi_demo.batches.running import BatchRun
from kimi_demo.batches.writing import ENDINGS, OutFormat, beside, written
from kimi_demo.dialect.failure import Failure
from kimi_demo.dialect.sampling import DEFAULT_PRESET, PRESETS
from kimi_demo.flags import ATTACHING, LOADING, add_flags, settings_from
from kimi_demo.settings import Settings
from kimi_demo.ui.texts import texts

DONE, SOME_FAILED, BAD_INPUT, INTERRUPTED = 0, 1, 2, 130

_SETTINGS = (*LOADING, *ATTACHING, "data", "language")


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `batch`. Its handler returns 0 (all rows done), 1 (some rows failed, or the engine did), 2 (bad input), 130 (interrupted)."""
    line = texts().say("cli.batch")
    parser = subparsers.add_parser("batch", help=line, description=line, usage="%(prog)s FILE -o RESULTS.jsonl [flags]", allow_abbrev=False)
    add = parser.add_argument
    add("file", type=Path, metavar="FILE", help="prompts: .txt (one a line), .csv, .tsv, .jsonl (strings, prompt, messages, OpenAI batch)")
    add("-o", "--output", type=Path, required=True, metavar="RESULTS.jsonl", help="grows by a line with each finished row")
    add("--resume", action="store_true", help="go on with RESULTS.jsonl where it stopped; without it an existing file is refused")
    add("--again", choices=tuple(AGAIN), help="run rows of an earlier batch over FILE once more, into a RESULTS.jsonl of their own")
    add("--of", type=Path, metavar="EARLIER.jsonl", help="the earlier batch's results, with --again; its parameters hold unless changed")
    add("--format", choices=tuple(ENDINGS), default="jsonl", help="also write the results as this, beside RESULTS.jsonl, at the end")
    add("--engine", choices=("offline", "server"), help="vLLM inside this process, or a chat server (the default with --base-url)")
    add("--rows-at-once", type=int, default=SERVER_ROWS, metavar="N", help=f"rows that a server is asked at once (default: {SERVER_ROWS})")

    read = parser.add_argument_group("Reading")
    read.add_argument("--column", metavar="NAME", help="the column (or JSON field) with the prompts")
    read.add_argument("--input-format", choices=FORMATS, help="what FILE is (default: by its name)")
    read.add_argument("--encoding", metavar="NAME", help="of FILE (default: found in it)")
    read.add_argument("--no-header", action="store_true", help="the table has no header; --column takes a number then")
    read.add_argument("--keep-blank", action="store_true", help="run blank rows too")
    read.add_argument("--drop-duplicates", action="store_true", help="run equal prompts once")
    read.add_argument("--skip-bad", action="store_true", help="run the other rows where some cannot be read")

    sample = parser.add_argument_group("Sampling")
    sample.add_argument("--preset", metavar="NAME", help=f"{', '.join(PRESETS)} (default: {DEFAULT_PRESET}, or as before with --again)")
    sample.add_argument("--thinking", action=argparse.BooleanOptionalAction, help="default: as the preset says")
    for name, kind in NUMBERS.items():
        sample.add_argument("--" + name.replace("_", "-"), type=kind, metavar="N" if kind is int else "X", help="default: the preset's")
    add_flags(parser, _SETTINGS)
    parser.set_defaults(handler=_main)


def _main(given: argparse.Namespace) -> int:
    settings = settings_from(given)
    console = Console(texts(settings.language))
    try:
        job = prepared(given, console)
    except Failure as failure:
        console.failure(failure)
        return BAD_INPUT
    if job is None:
        return BAD_INPUT
    return asyncio.run(_Command(settings, given, job, console).run())


class _Command:
    def __init__(self, settings: Settings, given: argparse.Namespace, job: Job, console: Console) -> None:
        self._settings = settings
        self._given = given
        self._job = job
        self._console = console
        self._run: BatchRun | None = None
        self._interrupted = False

    async def run(self) -> int:
        self._catch_signals()
        try:
            async with AsyncExitStack() as stack:
                return await self._through(stack)
        except asyncio.CancelledError:
            return INTERRUPTED
        except Failure as failure:
            self._console.failure(failure)
            bad = failure.code.startswith(("batches.", "parameters.")) and failure.code not in ("batches.disk_full", "batches.unwritable")
            return INTERRUPTED if self._interrupted else BAD_INPUT if bad else SOME_FAILED

    async def _through(self, stack: AsyncExitStack) -> int:
        offline = (self._given.engine or ("server" if self._settings.base_url else "offline")) == "offline"
        journal, engine = await (self._offline(stack) if offline else self._server(stack))
        if engine is not None:
            self._run = run = BatchRun(
                self._job.source.rows,
                journal,
                engine,
                self._job.sampling,
                thinking=self._job.thinking,
                wanted=self._job.wanted,
                on_state=self._told,
            )
            async with self._console.bar(run):
                state = await run.run()
            if state == "failed" and run.failure is not None and not self._interrupted:
                self._console.failure(run.failure)
        else:
            state = "done"
        self._export(journal.manifest)
        self._console.ended(state, journal, self._given.output)
        if self._interrupted and state != "done":
            return INTERRUPTED
        return DONE if state == "done" and not journal.failed else SOME_FAILED

    def _told(self) -> None:
        run = self._run
        if run is not None and run.state == "paused" and run.failure is not None:
            self._console.failure(run.failure)
            self._console.say("batch_command.waiting_for_space")
            asyncio.get_running_loop().call_later(Console.RETRY_S, run.resume)

    def _journal(self, stack: AsyncExitStack, model: str, engine: str) -> Journal:
        manifest = self._job.manifest(model, engine)
        output = self._given.output
        journal = stack.enter_context(Journal.resume(output, manifest) if self._given.resume else Journal.create(output, manifest))
        if self._given.resume:
            self._console.resumed(journal)
        return journal

    async def _offline(self, stack: AsyncExitStack) -> tuple[Journal, RowEngine | None]:
        """The journal comes before the load, which takes a minute, and may find that there is nothing to do."""
        from kimi_demo.engines.guardian import Guardian
        from kimi_demo.engines.model_folder import ModelFolder
        from kimi_demo.engines.offline import OfflineEngine
        from kimi_demo.engines.offline_launch import OfflineLaunch

        path = await ModelFolder(self._settings).path(self._console.event)
        # The stand-in's folder is named after its contents; where the data folder lies is no matter.
        name = Path(path).name if self._settings.rehearsal else path
        journal = self._journal(stack, name, "offline")
        if len(journal.done) >= journal.manifest.rows:
            return journal, None
        launch = OfflineLaunch.from_settings(self._settings, path)
        # A log of its own: a page with the same data folder writes its own.
        launch = replace(launch, log=launch.log.with_name(f"batch-command-{os.getpid()}.log"))
        guardian = Guardian()
        stack.callback(guardian.close)
        engine = OfflineEngine(launch, guardian)
        stack.push_async_callback(engine.close)
        await engine.load(self._console.event)
        return journal, OfflineRows(await stack.enter_async_context(engine.feed()), name)

    async def _server(self, stack: AsyncExitStack) -> tuple[Journal, RowEngine | None]:
        from kimi_demo.engines.accelerators import Lease
        from kimi_demo.engines.chat_engine import ChatEngine
        from kimi_demo.engines.guardian import Guardian
        from kimi_demo.engines.model_folder import ModelFolder

        guardian = Guardian()
        stack.callback(guardian.close)
        chat = ChatEngine(self._settings, ModelFolder(self._settings), Lease(shared=True), guardian)
        stack.push_async_callback(chat.stop)
        endpoint = await chat.ready(self._console.event)
        journal = self._journal(stack, endpoint.info.id, "server")
        if len(journal.done) >= journal.manifest.rows:
            return journal, None
        return journal, ServerRows(endpoint, self._given.rows_at_once)

    def _export(self, manifest: Manifest) -> None:
        form: OutFormat = self._given.format
        if form == "jsonl":
            return
        path = beside(self._given.output, form)
        told = self._console.texts
        sentence: Any = lambda code, params: " ".join(told.failure(code, params))  # noqa: E731
        try:
            with path.open("w", encoding="utf-8", newline="") as file:
                file.writelines(written(read_results(self._given.output), form, manifest.columns, sentence))
        except OSError as error:
            raise unreadable(path, error) from error
        self._console.say("batch_command.exported", path=path)

    def _catch_signals(self) -> None:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None

        def interrupt() -> None:
            if self._interrupted:
                os._exit(INTERRUPTED)  # the guardian ends the engine's processes
            self._interrupted = True
            self._console.say("batch_command.stopping")
            if self._run is not None and self._run.state not in ("ready", "done"):
                self._run.stop()
            else:
                task.cancel()

        if sys.platform != "win32":
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.add_signal_handler(number, interrupt)
