"""A report as one HTML file that needs nothing else: no script, no font, no picture from anywhere."""

from functools import cache
from importlib import resources
from typing import Any

from jinja2 import Environment, StrictUndefined, Template

from kimi_demo.qa.attempt import Attempt, RoundSeen
from kimi_demo.qa.case import told
from kimi_demo.qa.comparing import Comparison
from kimi_demo.qa.repeat import curls
from kimi_demo.qa.report import CaseReport, Report
from kimi_demo.qa.report_facts import STATES, compared, counted, facts
from kimi_demo.qa.wording import Speaks, got_of, name_of, title_of

MOST_CHARS = 8_000
"""Of one text in the page; the JSON report holds all of it."""


def as_html(report: Report, words: Speaks, comparison: Comparison | None = None) -> str:
    """Everything that is not ours is escaped by the template (autoescape)."""
    counts = report.counts
    sections = [
        (words.say(f"qa.report.{state}"), [_case(report, case, words) for case in report.cases if case.state == state])
        for state in ("fail", "open", "warn")
    ]
    longest = max((case.seconds for case in report.cases), default=0.0) or 1.0
    return _template().render(
        report=report,
        language=words.language,
        say=words.say,
        title=told(report.title, words.language),
        about=told(report.about, words.language),
        counts=[(state, counts[state]) for state in STATES if counts[state]],
        counted=counted(report, words),
        facts=facts(report, words),
        comparison=comparison,
        compared=compared(comparison, words) if comparison is not None else [],
        sections=[(heading, cases) for heading, cases in sections if cases],
        rows=[_row(case, longest, words) for case in report.cases],
    )


@cache
def _template() -> Template:
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    return environment.from_string(resources.files(__package__).joinpath("report.html.jinja").read_text(encoding="utf-8"))


def _case(report: Report, case: CaseReport, words: Speaks) -> dict[str, Any]:
    seen = _shown(case)
    checks = [check for check in case.checks if check.outcome in ("fail", "warn", "open")]
    return {
        "id": case.id,
        "state": case.state,
        "title": title_of(case, words),
        "about": told(case.about, words.language) or told(case.manual, words.language),
        "question": _cut(case.question),
        "note": case.note,
        "checks": [
            {"name": name_of(check, words), "expected": _cut(check.expected), "got": _cut(got_of(case, check, words))} for check in checks
        ],
        "rounds": [_round(each) for each in seen.rounds] if seen is not None else [],
        "curls": [_cut(each, 4 * MOST_CHARS) for each in curls(report.server.address, seen)] if seen is not None else [],
    }


def _shown(case: CaseReport) -> Attempt | None:
    """The attempt that the first thing wrong was found in."""
    index = next((check.attempt for check in case.wrong if check.attempt is not None), 0)
    return case.attempts[index] if index < len(case.attempts) else None


def _round(seen: RoundSeen) -> dict[str, Any]:
    lines = []
    for call in seen.calls:
        became = call.result if call.result is not None else call.error
        lines.append(f"{call.id or '–'}  {call.name}({call.arguments})" + (f"\n→ {became}" if became is not None else ""))
    return {
        "thought": _cut(seen.thought),
        "answer": _cut(seen.answer),
        "calls": _cut("\n".join(lines)),
        "finish_reason": seen.finish_reason,
    }


def _row(case: CaseReport, longest: float, words: Speaks) -> dict[str, Any]:
    firsts = [seen.first_token_s for seen in case.attempts if seen.first_token_s is not None]
    return {
        "id": case.id,
        "state": case.state,
        "title": title_of(case, words),
        "first": f"{max(firsts):.2f}" if firsts else "–",
        "seconds": f"{case.seconds:.1f}" if case.attempts else "–",
        "width": round(100 * case.seconds / longest, 1),
    }


def _cut(text: str, most: int = MOST_CHARS) -> str:
    return text if len(text) <= most else f"{text[:most]}… (+{len(text) - most:,})"
