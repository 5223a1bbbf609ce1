"""`qa`: a suite of questions and checks against a server, with reports and an exit code; or Moonshot's verifier requests."""

import argparse
import asyncio
import json
import os
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from kimi_demo.command_endpoint import Found, command_endpoint
from kimi_demo.dialect.failure import Failure
from kimi_demo.dialect.sampling import PRESETS
from kimi_demo.engines.endpoint import Endpoint
from kimi_demo.flags import ATTACHING, LOADING, add_flags, settings_from
from kimi_demo.qa.case import Overrides, Suite, told
from kimi_demo.qa.comparing import Comparison, compare
from kimi_demo.qa.files import require_writable, write_whole
from kimi_demo.qa.reading import SHIPPED, find_suite, own_suites
from kimi_demo.qa.report import Report, read_report
from kimi_demo.qa.report_html import as_html
from kimi_demo.qa.report_junit import as_junit
from kimi_demo.qa.report_markdown import as_markdown
from kimi_demo.qa.running import QaRun
from kimi_demo.qa_console import QaConsole
from kimi_demo.qa_shell import COULD_NOT_RUN, FAILED, INTERRUPTED, PASSED, catch_signals, put
from kimi_demo.settings import Settings
from kimi_demo.ui.texts import texts

AGAINST_KEY = "KIMI_DEMO_AGAINST_API_KEY"
_REPORTS = ("json", "html", "junit", "markdown")
_SUITE_ONLY = ("only", "repeats", "preset", "judge", "html", "junit", "markdown", "baseline", "against", "against_mode", "against_preset")
_REQUESTS_ONLY = ("output", "resume", "reference", "body")
_SETTINGS = (*LOADING, *ATTACHING, "data", "language")


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `qa`. Its handler returns 0 (nothing failed), 1 (a case failed), 2 (could not run), 130 (interrupted)."""
    line = texts().say("cli.qa")
    parser = subparsers.add_parser("qa", help=line, description=line, usage="%(prog)s SUITE [flags]", allow_abbrev=False)
    add = parser.add_argument
    add("suite", nargs="?", metavar="SUITE", help=f"{', '.join(SHIPPED)}, a file .yaml, or the name of one in the data folder's suites/")
    add("--list", action="store_true", help="list the suites and their cases, and stop")
    add("--only", action="append", default=[], metavar="ID", help="run this case only; may be repeated")
    add("--repeats", type=_positive, metavar="N", help="ask every question so often (default: as the suite says)")
    add("--at-once", type=_positive, metavar="N", help="requests at the same time (default: as the suite says)")
    add("--mode", choices=("thinking", "instant"), help="in place of the cases' own mode")
    add("--preset", choices=tuple(PRESETS), help="sampling in place of the suite's")
    add("--limit-s", type=float, default=900.0, metavar="X", help="seconds that one reply may take (default: 900)")
    add("--judge", action="store_true", help="ask for your judgement of manual cases, in the terminal")

    reports = parser.add_argument_group("Reports")
    reports.add_argument("--json", type=Path, metavar="FILE", help="all of it; also what --baseline reads")
    reports.add_argument("--html", type=Path, metavar="FILE", help="one page that needs nothing else")
    reports.add_argument("--markdown", type=Path, metavar="FILE")
    reports.add_argument("--junit", type=Path, metavar="FILE", help="JUnit XML, for a CI system")

    against = parser.add_argument_group("Comparing").add_mutually_exclusive_group()
    against.add_argument("--baseline", type=Path, metavar="FILE", help="a report that --json wrote earlier")
    against.add_argument("--against", metavar="URL", help=f"another server, asked first; its key is taken from {AGAINST_KEY}")
    against.add_argument("--against-mode", choices=("thinking", "instant"), help="the same server in this mode, asked first")
    against.add_argument("--against-preset", choices=tuple(PRESETS), help="the same server with this preset, asked first")

    verifier = parser.add_argument_group("Moonshot's verifier data")
    verifier.add_argument("--requests", type=Path, metavar="FILE", help="JSON lines of chat requests, in place of a suite")
    verifier.add_argument("-o", "--output", type=Path, metavar="FILE", help="their results, a line each (default: FILE.results.jsonl)")
    verifier.add_argument("--resume", action="store_true", help="go on where --output stopped; what failed is sent again")
    verifier.add_argument("--reference", type=Path, metavar="FILE", help="results of another run, for tool_call_f1")
    verifier.add_argument("--body", type=_object, metavar="JSON", help='fields for every request, such as {"temperature": 0.6}')
    add_flags(parser, _SETTINGS)
    parser.set_defaults(handler=_main)


def _positive(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 10_000:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 to 10000")
    return int(text)


def _object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"is no JSON: {error}") from None
    if not isinstance(value, dict):
        raise argparse.ArgumentTypeError("must be a JSON object")
    return value


def _main(given: argparse.Namespace) -> int:
    settings = settings_from(given)
    console = QaConsole(texts(settings.language))
    try:
        if given.list:
            return _list(given.suite, settings, console)
        if (given.suite is None) == (given.requests is None):
            raise Failure("qa.suite_or_requests", known=", ".join(SHIPPED))
        _require_fitting(given)
        if not given.limit_s > 0:
            raise Failure("parameters.above", field="--limit-s", value=given.limit_s, limit=0)
        if given.requests is not None:
            from kimi_demo.qa_requests import run_requests

            return asyncio.run(run_requests(given, settings, console))
        suite = find_suite(given.suite, settings.data / "suites")
        baseline = read_report(given.baseline) if given.baseline is not None else None
        for name in _REPORTS:
            if (path := getattr(given, name)) is not None:
                require_writable(path)
        return asyncio.run(_Command(given, settings, suite, baseline, console).run())
    except Failure as failure:
        console.failure(failure)
        return COULD_NOT_RUN


def _require_fitting(given: argparse.Namespace) -> None:
    """A flag that would do nothing is a mistake."""
    for name in _SUITE_ONLY if given.requests is not None else _REQUESTS_ONLY:
        if getattr(given, name):
            code = "qa.not_with_requests" if given.requests is not None else "qa.only_with_requests"
            raise Failure(code, flag="--" + name.replace("_", "-"))


def _list(name: str | None, settings: Settings, console: QaConsole) -> int:
    """Without a name, every suite in a line, a broken one with what is wrong; with one, its cases."""
    language = settings.language
    if name is not None:
        suite = find_suite(name, settings.data / "suites")
        for case in suite.cases:
            put(f"{case.id:<28} {told(case.title, language)}")
        return PASSED
    code = PASSED
    for each in (*SHIPPED, *own_suites(settings.data / "suites")):
        try:
            suite = find_suite(each, settings.data / "suites")
        except Failure as failure:
            console.failure(failure)
            code = COULD_NOT_RUN
        else:
            put(f"{each:<14} {len(suite.cases):>3}  {told(suite.about, language) or told(suite.title, language)}")
    return code


class _Command:
    def __init__(self, given: argparse.Namespace, settings: Settings, suite: Suite, baseline: Report | None, console: QaConsole) -> None:
        self._given = given
        self._settings = settings
        self._suite = suite
        self._baseline = baseline
        self._console = console
        self._running: QaRun | None = None
        self._interrupted = False
        self._task: asyncio.Task[Any] | None = None

    async def run(self) -> int:
        self._task = asyncio.current_task()
        catch_signals(self._stop)
        given = self._given
        try:
            async with AsyncExitStack() as stack:
                found = await stack.enter_async_context(command_endpoint(self._settings, self._console.event))
                first = await self._first(found, stack)
                ours = Overrides(given.mode, given.preset, given.repeats)
                report = await self._one(found.endpoint, ours, found, judge=given.judge)
        except asyncio.CancelledError:
            return INTERRUPTED
        self._console.ended(report)
        comparison = compare(first, report) if first is not None else None
        if comparison is not None:
            self._console.compared(comparison)
        self._write(report, comparison)
        if self._interrupted:
            return INTERRUPTED
        return COULD_NOT_RUN if report.could_not_run or (first is not None and first.stopped) else FAILED if report.failed else PASSED

    async def _first(self, found: Found, stack: AsyncExitStack) -> Report | None:
        """What the run is held against."""
        given, settings = self._given, self._settings
        if given.against is not None:
            key = os.environ.get(AGAINST_KEY)
            other = await Endpoint.connect(given.against, key, settings.endpoint_kind, settings.connect_timeout_s)
            stack.push_async_callback(other.aclose)
            return await self._one(other, Overrides(given.mode, given.preset, given.repeats))
        if given.against_mode is not None or given.against_preset is not None:
            mode, preset = given.against_mode or given.mode, given.against_preset or given.preset
            return await self._one(found.endpoint, Overrides(mode, preset, given.repeats), found)
        return self._baseline

    async def _one(self, endpoint: Endpoint, overrides: Overrides, found: Found | None = None, *, judge: bool = False) -> Report:
        given = self._given
        run = QaRun(
            endpoint,
            self._suite,
            overrides=overrides,
            at_once=given.at_once,
            only=given.only,
            command=found.command if found is not None else (),
            limit_s=given.limit_s,
            on_case=self._console.case,
        )
        if unknown := [each for each in given.only if each not in run.ids and each not in {case.family for case in run.report().cases}]:
            raise Failure("qa.no_case", id=", ".join(unknown), known=", ".join(case.id for case in self._suite.cases))
        self._running = run
        self._console.begins(run.report(), whose=found.whose if found is not None else "given")
        if self._interrupted:
            run.stopped = True
            return run.report()
        await run.run()
        if judge and not run.stopped:
            await self._console.judge(run)
        return run.report()

    def _stop(self) -> None:
        """Once: the run ends, and what it has is reported. Twice: at once (the guardian ends the engine's processes)."""
        if self._interrupted:
            os._exit(INTERRUPTED)
        self._interrupted = True
        self._console.say("qa.stopping")
        if self._running is not None and self._running.running:
            self._running.stop()
        elif self._task is not None:
            self._task.cancel()

    def _write(self, report: Report, comparison: Comparison | None) -> None:
        given, words = self._given, self._console.texts
        forms: dict[str, Callable[[], str]] = {
            "json": report.to_json,
            "html": lambda: as_html(report, words, comparison),
            "junit": lambda: as_junit(report, words),
            "markdown": lambda: as_markdown(report, words, comparison),
        }
        for name, made in forms.items():
            if (path := getattr(given, name)) is not None:
                write_whole(path, made())
                self._console.say("qa.written", path=path)
