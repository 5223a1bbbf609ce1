"""`download`: a model from ModelScope or Hugging Face onto the disk; run again, it goes on where it stopped."""

import argparse
import asyncio
from pathlib import Path

from kimi_demo.console import PhaseConsole
from kimi_demo.dialect.failure import Failure
from kimi_demo.engines.hub.download import download, job_for
from kimi_demo.engines.hub.job import Job
from kimi_demo.flags import add_flags, settings_from
from kimi_demo.interrupts import INTERRUPTED, cancel_on_signals
from kimi_demo.settings import Settings
from kimi_demo.ui.texts import texts

DEFAULT_MODEL = "moonshotai/Kimi-K2.5"
_MOST_WORKERS = 64
_SETTINGS = ("model", "model_source", "hub_token", "data", "language")


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `download`. Its handler returns 0 (all there and checked), 1 (failed), 2 (bad input), 130 (interrupted)."""
    line = texts().say("cli.download")
    parser = subparsers.add_parser("download", help=line, description=line, usage="%(prog)s [flags]", allow_abbrev=False)
    add = parser.add_argument
    add("--cache-dir", type=Path, metavar="FOLDER", help="where to: FOLDER/owner/name (default: models in the data folder)")
    add("--revision", metavar="NAME", help="branch, tag or commit (default: the newest)")
    add("--workers", type=int, default=8, metavar="N", help="files at a time (default: 8)")
    add("--json", action="store_true", help="print progress and result as JSON, an object a line")
    add_flags(parser, _SETTINGS, model=f"Hub id of the model. Default: {DEFAULT_MODEL}.")
    parser.set_defaults(handler=_main)


def _main(given: argparse.Namespace) -> int:
    settings = settings_from(given)
    console = PhaseConsole(texts(settings.language), as_json=given.json)
    try:
        job = _job(given, settings)
    except Failure as failure:
        console.failure(failure)
        return 2
    return asyncio.run(_run(job, console))


def _job(given: argparse.Namespace, settings: Settings) -> Job:
    if given.workers < 1:
        raise Failure("plan.number", flag="--workers", value=given.workers)
    if given.workers > _MOST_WORKERS:
        raise Failure("parameters.at_most", field="--workers", value=given.workers, limit=_MOST_WORKERS)
    cache = given.cache_dir if given.cache_dir is not None else settings.data / "models"
    return job_for(settings.model_source, settings.model or DEFAULT_MODEL, cache, given.revision, settings.hub_token, given.workers)


async def _run(job: Job, console: PhaseConsole) -> int:
    cancel_on_signals(lambda: console.say("download.stopping"))
    console.say("download.begins", model=job.model, source=job.source, folder=job.folder)
    try:
        folder = await download(job, console.event)
    except asyncio.CancelledError:
        console.say("download.stopped", folder=job.folder)
        return INTERRUPTED
    except Failure as failure:
        console.failure(failure)
        return 1
    console.say("download.done")
    console.result(str(folder), event="done", folder=str(folder))
    return 0
