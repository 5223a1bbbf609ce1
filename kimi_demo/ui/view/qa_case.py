"""One case of a QA run in full: question, each check, the replies, the request to repeat it, and what a person says of it. Pure."""

from html import escape

from kimi_demo.qa.attempt import Attempt, RoundSeen
from kimi_demo.qa.case import told
from kimi_demo.qa.repeat import curls
from kimi_demo.qa.report import CaseReport, Report
from kimi_demo.qa.verdict import CheckResult
from kimi_demo.qa.wording import got_of, name_of
from kimi_demo.ui.texts import Texts
from kimi_demo.ui.view.qa_run import SIGNS

_MOST_CHARS = 20_000
_MOST_ATTEMPTS = 20
_MOST_NOTE = 2_000


def whole_html(report: Report, case: CaseReport, run: str, texts: Texts) -> str:
    say = texts.say
    about = told(case.about, texts.language)
    found = f'<p class="fine">{escape(about)}</p>' if about else ""
    found += _text(say("qa.question"), case.question) if case.question else ""
    order = {"fail": 0, "open": 1, "warn": 2}
    checks = sorted(case.checks, key=lambda check: order.get(check.outcome, 3))
    found += f'<ul class="qa-checks">{"".join(_check(case, check, texts) for check in checks)}</ul>'
    if any(check.check == "manual" for check in case.checks):
        found += _judgement(case, run, texts)
    elif case.note:
        found += _text(say("qa.note"), case.note)
    shown = _shown(case)
    attempts = sorted(case.attempts, key=lambda seen: seen is not shown)[:_MOST_ATTEMPTS]
    found += "".join(_attempt(report, seen, first=seen is shown, several=len(case.attempts) > 1, texts=texts) for seen in attempts)
    if len(case.attempts) > len(attempts):
        found += f'<p class="fine">{escape(say("qa_page.more_attempts", count=len(case.attempts) - len(attempts)))}</p>'
    return found


def _shown(case: CaseReport) -> Attempt | None:
    """The attempt in which the first thing wrong was found."""
    index = next((check.attempt for check in case.wrong if check.attempt is not None), 0)
    return case.attempts[index] if index < len(case.attempts) else None


def _check(case: CaseReport, check: CheckResult, texts: Texts) -> str:
    say = texts.say
    detail = ""
    if check.outcome in ("fail", "warn"):
        detail = _text(say("qa.expected"), check.expected) if check.expected else ""
        detail += _text(say("qa.got"), got_of(case, check, texts) or "–")
    state = escape(say(f"qa.state.{check.outcome}"))
    sign = f'<span class="qa-sign" role="img" aria-label="{state}" title="{state}">{SIGNS[check.outcome]}</span>'
    return f'<li data-state="{check.outcome}" data-check="{escape(check.check)}">{sign} {escape(name_of(check, texts))}{detail}</li>'


def _judgement(case: CaseReport, run: str, texts: Texts) -> str:
    say = texts.say
    data = f'data-qa-judge data-run="{run}" data-case="{escape(case.id)}"'
    label = escape(say("qa.note"))
    return (
        f'<div class="qa-judgement" {data}><b>{escape(told(case.manual, texts.language))}</b>'
        f'<textarea rows="2" maxlength="{_MOST_NOTE}" aria-label="{label}" placeholder="{label}">{escape(case.note)}</textarea>'
        f'<span class="qa-acts"><button type="button" class="act" data-good="1">{escape(say("qa_page.judge_pass"))}</button>'
        f'<button type="button" class="act" data-good="">{escape(say("qa_page.judge_fail"))}</button></span></div>'
    )


def _attempt(report: Report, seen: Attempt, *, first: bool, several: bool, texts: Texts) -> str:
    say = texts.say
    rounds = "".join(_round(each, texts) for each in seen.rounds)
    if seen.prompt is not None:
        rounds += _text(say("qa_page.prompt"), seen.prompt)
    lines = "".join(_code(each, texts) for each in curls(report.server.address, seen))
    if seen.failure is not None:
        rounds += f"<p>{escape(' '.join(texts.failure(seen.failure.code, dict(seen.failure.params))))}</p>"
    repeat = f"<details><summary>{escape(say('qa.repeat'))}</summary>{lines}</details>" if lines else ""
    if not several:
        return f"{rounds}{repeat}"
    way = say("qa_page.streamed" if seen.streamed else "qa_page.whole")
    title = escape(say("qa_page.attempt", number=seen.number, way=way, seconds=f"{seen.seconds:.1f}"))
    return f'<details class="qa-attempt"{" open" if first else ""}><summary>{title}</summary>{rounds}{repeat}</details>'


def _round(seen: RoundSeen, texts: Texts) -> str:
    say = texts.say
    lines = []
    for call in seen.calls:
        became = call.result if call.result is not None else call.error
        lines.append(f"{call.id or '–'}  {call.name}({call.arguments})" + (f"\n→ {became}" if became is not None else ""))
    found = _text(say("qa.thought"), seen.thought) if seen.thought else ""
    found += _text(say("qa.calls"), "\n".join(lines)) if lines else ""
    end = f' <span class="fine">finish_reason {escape(seen.finish_reason)}</span>' if seen.finish_reason else ""
    return found + _text(say("qa.answer"), seen.answer or "–", after=end)


def _text(label: str, text: str, after: str = "") -> str:
    return f'<div class="qa-label">{escape(label)}{after}</div><pre tabindex="0">{escape(_cut(text))}</pre>'


def _code(line: str, texts: Texts) -> str:
    button = f'<button type="button" class="copy" aria-label="{escape(texts.say("page.copy"))}" data-copy></button>'
    return f'<div class="code"><pre tabindex="0">{escape(line)}</pre>{button}</div>'


def _cut(text: str) -> str:
    return text if len(text) <= _MOST_CHARS else f"{text[:_MOST_CHARS]}… (+{len(text) - _MOST_CHARS:,})"
