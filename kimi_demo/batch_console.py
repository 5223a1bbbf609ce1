"""What `batch` prints: sentences on stderr, a progress bar on a terminal (a line now and then elsewhere), results of it all on stdout."""

import asyncio
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from kimi_demo.batches.journal import Journal
from kimi_demo.batches.progress import Progress
from kimi_demo.batches.reading import Options
from kimi_demo.batches.running import BatchRun
from kimi_demo.batches.survey import Survey
from kimi_demo.dialect.events import Event, Phase
from kimi_demo.dialect.failure import Failure
from kimi_demo.ui.texts import Texts

_MOST_BAD = 20
_LOOK_S = 0.25
_LINE_S = 15.0


class Console:
    RETRY_S = 5.0
    """How long a full disk is left alone before the next try."""

    def __init__(self, texts: Texts) -> None:
        self.texts = texts
        self._phase = ""

    def say(self, key: str, /, **params: object) -> None:
        self._err(self.texts.say(key, **params))

    def failure(self, failure: Failure) -> None:
        self._err(self.texts.sentence(failure))

    def event(self, event: Event) -> None:
        """A phase of loading, told once."""
        if isinstance(event, Phase) and event.name != self._phase:
            self._phase = event.name
            self._err(self.texts.say(f"phase.{event.name}", **event.params) + " …")

    def surveyed(self, path: Path, found: Survey, options: Options) -> None:
        told = {"path": path, "rows": found.rows, "blank": found.blank, "duplicates": found.duplicates}
        self._err(self.texts.say("batch_command.found", **told))
        if found.duplicates and options.keep_duplicates:
            self.say("batch_command.duplicates_run", count=found.duplicates)

    def bad_rows(self, found: Survey, *, skipped: bool) -> None:
        for bad in found.bad[:_MOST_BAD]:
            self.say("batch_command.bad_row", line=bad.line, what=self.texts.sentence(bad.failure))
        if found.bad_rows > _MOST_BAD:
            self.say("batch_command.more_bad_rows", count=found.bad_rows - _MOST_BAD)
        self.say("batch_command.skipped" if skipped else "batch_command.skip_them", count=found.bad_rows)

    def resumed(self, journal: Journal) -> None:
        if journal.repaired:
            self.say("batch_command.repaired", bytes=journal.repaired)
        self._out(self.texts.say("batch_command.resumed", done=len(journal.done), rows=journal.manifest.rows))

    def ended(self, state: str, journal: Journal, output: Path) -> None:
        key = "batch_command.done" if state == "done" else "batch_command.kept"
        told = {"done": len(journal.done), "rows": journal.manifest.rows, "failed": journal.failed, "cut_off": journal.cut_off}
        self._out(self.texts.say(key, path=output, **told))

    @asynccontextmanager
    async def bar(self, run: BatchRun) -> AsyncIterator[None]:
        """Shows the run's progress while it lasts."""
        show = asyncio.create_task(self._bar(run) if sys.stderr.isatty() else self._lines(run))
        try:
            yield
        finally:
            show.cancel()
            with suppress(asyncio.CancelledError):
                await show

    async def _bar(self, run: BatchRun) -> None:
        from tqdm import tqdm

        progress = run.progress()
        with tqdm(total=progress.total, initial=progress.resumed, unit="row", dynamic_ncols=True, smoothing=0.1) as bar:
            try:
                while True:
                    self._show(bar, run.progress())
                    await asyncio.sleep(_LOOK_S)
            finally:
                self._show(bar, run.progress())

    def _show(self, bar: Any, progress: Progress) -> None:
        bar.set_postfix_str(self._postfix(progress), refresh=False)
        bar.update(progress.done - bar.n)
        bar.refresh()

    async def _lines(self, run: BatchRun) -> None:
        told = time.monotonic()
        while True:
            await asyncio.sleep(_LOOK_S)
            if time.monotonic() - told >= _LINE_S:
                told = time.monotonic()
                progress = run.progress()
                self._err(f"{progress.done}/{progress.total} {self._postfix(progress)}")

    def _postfix(self, progress: Progress) -> str:
        told = {"rate": f"{progress.generated_rate:,.0f}", "running": progress.running, "failed": progress.failed}
        return self.texts.say("batch_command.postfix", **told)

    def _err(self, line: str) -> None:
        if "tqdm" in sys.modules and sys.stderr.isatty():
            from tqdm import tqdm

            tqdm.write(line, file=sys.stderr)
        else:
            print(line, file=sys.stderr, flush=True)

    def _out(self, line: str) -> None:
        print(line, flush=True)
