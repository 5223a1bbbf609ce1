"""`qa --requests`: Moonshot's verifier data through a server, resumable, with the verifier's metrics."""

import argparse
import asyncio
import os
from pathlib import Path
from typing import Any

from kimi_demo.command_endpoint import command_endpoint
from kimi_demo.dialect.failure import Failure
from kimi_demo.qa.files import write_whole
from kimi_demo.qa.verifier.requests import RequestFile, read_requests
from kimi_demo.qa.verifier.results import Journal, Summary, read_reference, summary
from kimi_demo.qa.verifier.running import VerifierRun
from kimi_demo.qa_console import QaConsole
from kimi_demo.qa_shell import COULD_NOT_RUN, FAILED, INTERRUPTED, PASSED, catch_signals
from kimi_demo.settings import Settings

AT_ONCE = 5
"""As K2 Vendor Verifier's default."""


async def run_requests(given: argparse.Namespace, settings: Settings, console: QaConsole) -> int:
    """0 when every request was answered and every call passed its schema, 1 when not, 2 when it could not run. Raises Failure."""
    fields = _fields(given)
    file = read_requests(given.requests, fields)
    reference = read_reference(given.reference) if given.reference is not None else None
    output: Path = given.output or given.requests.with_name(given.requests.name + ".results.jsonl")
    async with command_endpoint(settings, console.event) as found:
        model = found.endpoint.info.id
        with Journal(output, _about(file, model, fields), resume=given.resume) as journal:
            left = len(file.requests) - len(journal.finished)
            console.say("qa.requests_begin", count=left, done=len(journal.finished), model=model)
            at_once = given.at_once or AT_ONCE
            run = VerifierRun(
                found.endpoint, file.requests, journal, at_once=at_once, on_result=lambda result: console.result(result, left)
            )
            interrupted, failure = await _until_done(run, console)
            results = [journal.done[request.index] for request in file.requests if request.index in journal.done]
    told = summary(model, results, reference)
    console.summary(told)
    if given.json is not None:
        write_whole(given.json, told.to_json())
    console.say("qa.results_in", path=output, done=told.success_count, count=len(file.requests))
    if failure is not None:
        console.failure(failure)
    if interrupted:
        return INTERRUPTED
    return COULD_NOT_RUN if failure is not None or not told.success_count else _code(told)


async def _until_done(run: VerifierRun, console: QaConsole) -> tuple[bool, Failure | None]:
    """(whether somebody stopped it, why it could not go on)."""
    task = asyncio.create_task(run.run())
    stopped = False

    def stop() -> None:
        nonlocal stopped
        if stopped:
            os._exit(INTERRUPTED)
        stopped = True
        console.say("qa.stopping")
        task.cancel()

    catch_signals(stop)
    try:
        await task
    except asyncio.CancelledError:
        if not stopped:
            raise
    except Failure as failure:
        return stopped, failure
    return stopped, None


def _code(told: Summary) -> int:
    return FAILED if told.failure_count or told.schema_validation_error_count else PASSED


def _fields(given: argparse.Namespace) -> dict[str, Any]:
    mode = {} if given.mode is None else {"chat_template_kwargs": {"thinking": given.mode == "thinking"}}
    return mode | (given.body or {})


def _about(file: RequestFile, model: str, fields: dict[str, Any]) -> dict[str, Any]:
    """What must be the same for a run to go on."""
    return {"requests_sha256": file.sha256, "model": model, "body": fields}
