"""What `qa` prints: a line for each case as it finishes, with what was wrong; sums at the end."""

import asyncio
import sys
from collections.abc import Callable

from kimi_demo.dialect.events import Event, Phase
from kimi_demo.dialect.failure import Failure
from kimi_demo.qa.case import told
from kimi_demo.qa.comparing import Comparison
from kimi_demo.qa.report import CaseReport, Report
from kimi_demo.qa.report_facts import compared, counted, facts
from kimi_demo.qa.running import QaRun
from kimi_demo.qa.verifier.results import Result, Summary
from kimi_demo.qa.wording import got_of, name_of, title_of
from kimi_demo.qa_shell import plain, put
from kimi_demo.ui.texts import Texts

_SIGNS = {"pass": "ok  ", "fail": "FAIL", "warn": "warn", "open": "?   ", "skip": "-   ", "waiting": "…   "}
_MOST_CHANGES = 40


class QaConsole:
    def __init__(self, texts: Texts, ask: Callable[[str], str] = input) -> None:
        self.texts = texts
        self._ask = ask
        self._phase = ""
        self._results = 0

    def say(self, key: str, /, **params: object) -> None:
        print(plain(self.texts.say(key, **params)), file=sys.stderr, flush=True)

    def failure(self, failure: Failure) -> None:
        print(plain(self.texts.sentence(failure)), file=sys.stderr, flush=True)

    def event(self, event: Event) -> None:
        """A phase of loading, told once."""
        if isinstance(event, Phase) and event.name != self._phase:
            self._phase = event.name
            self.say(f"phase.{event.name}", **event.params)

    def case(self, case: CaseReport) -> None:
        if case.state not in ("running", "waiting"):
            self._out(f"{_SIGNS[case.state]} {case.id:<28} {case.seconds:7.1f} s  {title_of(case, self.texts)}")
            for check in case.wrong:
                got = got_of(case, check, self.texts)
                expected = f" {self.texts.say('qa.expected')}: {check.expected};" if check.expected else ""
                self._out(f"       {name_of(check, self.texts)}:{expected} {self.texts.say('qa.got')}: {_short(got) or '–'}")

    def begins(self, report: Report, *, whose: str) -> None:
        self.say("qa.begins", title=told(report.title, self.texts.language), model=report.server.model, address=report.server.address)
        if whose == "page":
            self.say("qa.pages_server")

    def ended(self, report: Report) -> None:
        for fact in facts(report, self.texts):
            print(plain(f"{fact.label}: {fact.value}"), file=sys.stderr)
        if report.stopped:
            self.say("qa.report.stopped")
        self._out(counted(report, self.texts) or self.texts.say("qa.nothing"))

    def compared(self, comparison: Comparison) -> None:
        for fact in compared(comparison, self.texts):
            self._out(f"{fact.label}: {fact.value}")
        self._out(self.texts.say("qa.report.compared", worse=comparison.worse, same=comparison.same))
        for change in comparison.changes[:_MOST_CHANGES]:
            check = self.texts.say(f"qa.check.{change.check}") if change.check else ""
            self._out(f"  {self.texts.say(f'qa.change.{change.kind}')}: {change.case} {check}")
        if len(comparison.changes) > _MOST_CHANGES:
            self._out(self.texts.say("qa.more_changes", count=len(comparison.changes) - _MOST_CHANGES))

    async def judge(self, run: QaRun) -> None:
        """Asks a person about every case that waits for one. An empty answer leaves it open."""
        for case in [case for case in run.report().cases if case.state == "open"]:
            answer = case.attempts[0].answer if case.attempts else ""
            self._out(f"\n{title_of(case, self.texts)}\n{case.question}\n---\n{answer}\n---\n{told(case.manual, self.texts.language)}")
            try:
                said = (await asyncio.to_thread(self._ask, self.texts.say("qa.judge") + " ")).strip()
            except EOFError:
                return
            letter, _, note = said.partition(" ")
            if letter.lower() in ("p", "f"):
                run.judged(case.id, good=letter.lower() == "p", note=note.strip())

    def result(self, result: Result, total: int) -> None:
        """One of the verifier's requests."""
        self._results += 1
        wrong = "; ".join(result.problems) or str(result.response.get("error", ""))
        told = f": {_short(wrong)}" if wrong else ""
        print(
            plain(f"{self._results}/{total}  #{result.data_index} {result.finish_reason or result.status}{told}"),
            file=sys.stderr,
            flush=True,
        )

    def summary(self, summary: Summary) -> None:
        self._out(summary.to_json().rstrip())

    def _out(self, line: str) -> None:
        put(line)


def _short(text: str, most: int = 300) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= most else f"{flat[: most - 1]}…"
