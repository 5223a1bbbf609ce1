"""A report as Markdown. Everything that a model or a server said is quoted, so that none of it is read as Markdown or HTML. Pure."""

import re

from kimi_demo.qa.case import told
from kimi_demo.qa.comparing import Comparison
from kimi_demo.qa.repeat import curls
from kimi_demo.qa.report import CaseReport, Report
from kimi_demo.qa.report_facts import compared, counted, facts
from kimi_demo.qa.wording import Speaks, got_of, name_of, title_of

_MARKUP = re.compile(r"([\\`*_{}\[\]<>#+!|~$&])")
_SIGNS = {"pass": "✅", "fail": "❌", "warn": "⚠️", "open": "❔", "skip": "➖", "waiting": "…", "running": "…"}


def as_markdown(report: Report, words: Speaks, comparison: Comparison | None = None) -> str:
    """What is worse comes first, then what failed with question, expected, got and the request to repeat it, then every case in a line."""
    say = words.say
    parts = [f"# {_plain(told(report.title, words.language))}: {_plain(report.server.model)}", f"**{counted(report, words)}**"]
    if report.stopped:
        parts.append(say("qa.report.stopped"))
    about = told(report.about, words.language)
    parts += [_plain(about)] if about else []
    parts.append(_table([say("qa.report.what"), ""], [[fact.label, fact.value] for fact in facts(report, words)]))
    if comparison is not None:
        parts += _compared(comparison, words)
    wrong = [case for case in report.cases if case.state in ("fail", "warn", "open")]
    for case in sorted(wrong, key=lambda case: ("fail", "open", "warn").index(case.state)):
        parts += _wrong(report, case, words)
    rows = [
        [
            _SIGNS[case.state],
            case.id,
            title_of(case, words),
            ", ".join(name_of(check, words) for check in case.wrong),
            f"{case.seconds:.1f}",
        ]
        for case in report.cases
    ]
    parts += [f"## {say('qa.report.all')}", _table(["", "id", say("qa.report.case"), say("qa.report.wrong"), "s"], rows)]
    return "\n\n".join(parts) + "\n"


def _compared(comparison: Comparison, words: Speaks) -> list[str]:
    say = words.say
    rows = [
        [
            say(f"qa.change.{change.kind}"),
            change.case,
            say(f"qa.check.{change.check}") if change.check else "",
            f"{change.before.passed}/{change.before.counted}" if change.before else "",
            f"{change.after.passed}/{change.after.counted}" if change.after else "",
        ]
        for change in comparison.changes
    ]
    head = ["", "id", say("qa.report.check"), say("qa.report.before"), say("qa.report.after")]
    known = _table([say("qa.report.what"), ""], [[fact.label, fact.value] for fact in compared(comparison, words)])
    told = say("qa.report.compared", worse=comparison.worse, same=comparison.same)
    return [f"## {say('qa.report.comparison')}", told, known, *([_table(head, rows)] if rows else [])]


def _wrong(report: Report, case: CaseReport, words: Speaks) -> list[str]:
    say = words.say
    parts = [f"## {_SIGNS[case.state]} {_plain(case.id)}: {_plain(title_of(case, words))}"]
    about = told(case.about, words.language) or told(case.manual, words.language)
    parts += [_plain(about)] if about else []
    if case.question:
        parts += [f"{say('qa.question')}:", _fenced(case.question)]
    for check in case.wrong:
        parts.append(f"**{_plain(name_of(check, words))}**")
        if check.expected:
            parts += [f"{say('qa.expected')}:", _fenced(check.expected)]
        parts += [f"{say('qa.got')}:", _fenced(got_of(case, check, words) or "–")]
    shown = next((check.attempt for check in case.wrong if check.attempt is not None), 0)
    if case.attempts:
        requests = curls(report.server.address, case.attempts[min(shown, len(case.attempts) - 1)])
        parts += [f"{say('qa.repeat')}:", *(_fenced(request, "sh") for request in requests)] if requests else []
    return parts


def _table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *[[_plain(cell) for cell in row] for row in rows]]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _plain(text: str) -> str:
    """`text` on one line, with nothing in it that means anything in Markdown."""
    return _MARKUP.sub(r"\\\1", " ".join(text.split()))


def _fenced(text: str, language: str = "") -> str:
    """A code block whose fence is longer than any in the text."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text.rstrip()}\n{fence}"
