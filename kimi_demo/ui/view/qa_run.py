"""A QA run in the QA tab: its head, and a line for each case with what is wrong in it. Pure."""

from dataclasses import dataclass
from html import escape
from urllib.parse import quote

from kimi_demo.dialect.events import Phase
from kimi_demo.dialect.failure import Failure
from kimi_demo.qa.case import told
from kimi_demo.qa.report import CaseReport, Report
from kimi_demo.qa.report_facts import facts
from kimi_demo.qa.wording import got_of, name_of, title_of
from kimi_demo.qa_books import Card
from kimi_demo.qa_runs import UNFINISHED
from kimi_demo.ui.texts import Texts
from kimi_demo.ui.view.act import act_button
from kimi_demo.ui.view.notice import failure_html, notice_html
from kimi_demo.ui.view.publish_view import publish_button
from kimi_demo.ui.view.qa_page import bar_html, counted_words, delete_html, overrides_words, when
from kimi_demo.ui.view.words import phase_words, seconds_html

FORMS = ("html", "md", "xml", "json")
"""Endings of the reports, and their names in routes."""

_SHORT = 300
SIGNS = {"pass": "✓", "fail": "✗", "warn": "!", "open": "?", "skip": "–", "waiting": "·", "running": ""}


@dataclass(frozen=True)
class Shown:
    """A run as the tab shows it. report: None before anything was asked. seconds: that it has been going on, None when it is not.
    phase: what it waits for. trouble: why it could not be written. baseline: the run that its suite's baseline was; "" for none."""

    card: Card
    report: Report | None
    seconds: float | None = None
    phase: Phase | None = None
    trouble: Failure | None = None
    baseline: str = ""


def head_html(shown: Shown, texts: Texts) -> str:
    """What runs or ran, how far it is, and what can be done."""
    say, card, report = texts.say, shown.card, shown.report
    counts = dict(report.counts) if report is not None else {}
    total = sum(counts.values())
    open_ = sum(counts.get(state, 0) for state in ("waiting", "running"))
    state = say(f"qa_page.state.{card.state}")
    if card.going and shown.phase is not None:
        state = phase_words(shown.phase, texts)
    told_seconds = seconds_html(shown.seconds, texts, running=True) if shown.seconds is not None else ""
    far = say("qa_page.far", done=total - open_, total=total) if total else ""
    words = counted_words(counts, texts)
    other = overrides_words(card, texts)
    extra = f'<p class="fine">{escape(say("qa_page.otherwise", what=" · ".join(other)))}</p>' if other else ""
    return (
        f'<div class="qa-title"><h2>{escape(told(card.title, texts.language))}</h2>'
        f'<span class="qa-state" data-run-state="{card.state}">{escape(state)}</span><span class="meta">{told_seconds}</span></div>'
        f'<p class="fine">{when(card)}{f" · {escape(card.model)}" if card.model else ""}</p>{extra}'
        f"{bar_html(counts, texts)}"
        f'<p class="qa-counts" role="status">{escape(words)}{f" <span class=fine>{escape(far)}</span>" if card.going and far else ""}</p>'
        f"{_said(shown, texts)}"
        f'<div class="qa-acts">{_buttons(shown, counts, texts)}</div>{_facts(report, texts)}'
    )


def _said(shown: Shown, texts: Texts) -> str:
    """What went wrong with the run itself."""
    card, found = shown.card, ""
    if card.failure is not None:
        found += failure_html(Failure(card.failure, **card.failure_params), texts)
    elif card.state == "interrupted":
        found += notice_html("warning", texts.say("qa_page.interrupted"))
    elif card.state == "stopped":
        found += notice_html("info", texts.say("qa_page.stopped"))
    if shown.trouble is not None:
        found += failure_html(shown.trouble, texts)
    return found


def _buttons(shown: Shown, counts: dict[str, int], texts: Texts) -> str:
    say, card = texts.say, shown.card
    if card.going:
        return act_button("qa", "qa_stop", say("page.stop"))
    again = sum(counts.get(state, 0) for state in UNFINISHED)
    found = ""
    if again or shown.report is None:
        unfinished = sum(counts.get(state, 0) for state in UNFINISHED if state != "fail")
        words = say("qa_page.go_on" if shown.report is None else "qa_page.again_open" if unfinished else "qa_page.again", count=again)
        found += act_button("qa", "qa_again", words, run=card.id)
    if shown.report is not None:
        found += act_button("qa", "qa_baseline", say("qa_page.make_baseline"), run=card.id) if shown.baseline != card.id else ""
        links = "".join(
            f'<a class="act" href="kimi/qa/runs/{card.id}/report.{form}" data-qa-download="{form}" download>'
            f"{escape(say(f'qa_page.form.{form}'))}</a>"
            for form in FORMS
        )
        found += f'<span class="qa-reports"><span class="fine">{escape(say("qa_page.report"))}</span>{links}</span>'
        found += publish_button("qa", card.id, texts, plain=False)
    return found + delete_html(card, texts)


def _facts(report: Report | None, texts: Texts) -> str:
    if report is None:
        return ""
    items = "".join(f"<dt>{escape(fact.label)}</dt><dd>{escape(fact.value)}</dd>" for fact in facts(report, texts))
    title = escape(texts.say("qa_page.about"))
    return f'<details class="qa-about" id="qa-about"><summary>{title}</summary><dl>{items}</dl></details>'


def places_html(count: int) -> str:
    """An empty place for each case; they are filled one by one."""
    return f'<ul class="qa-cases">{"".join(f"""<li id="qa-c-{at}"></li>""" for at in range(count))}</ul>'


def case_html(at: int, run: str, case: CaseReport, texts: Texts) -> str:
    """at: its place. The whole of it is fetched when it is opened."""
    say = texts.say
    lines = ""
    for check in case.wrong[:4]:
        got, expected = got_of(case, check, texts), ""
        if check.expected:
            expected = f' <span class="fine">{escape(say("qa.expected"))}</span> <code>{escape(_short(check.expected))}</code>'
        lines += (
            f'<span class="qa-why" data-outcome="{check.outcome}"><b>{escape(name_of(check, texts))}</b>{expected} '
            f'<span class="fine">{escape(say("qa.got"))}</span> <code>{escape(_short(got) or "–")}</code></span>'
        )
    sign = '<span class="spinner" aria-hidden="true"></span>' if case.state == "running" else SIGNS[case.state]
    seconds = f"{case.seconds:.1f} s" if case.attempts else ""
    state = escape(say(f"qa.state.{case.state}"))
    body = ""
    if case.attempts or case.checks:
        source = escape(f"kimi/qa/runs/{run}/case/{quote(case.id, safe='')}")
        failed = escape(say("qa_page.not_loaded"))
        body = f'<div class="qa-whole" data-lazy="{source}" data-failed="{failed}"></div>'
    else:
        question = escape(_short(case.question, 2_000))
        body = f'<div class="qa-whole"><div class="qa-label">{escape(say("qa.question"))}</div><pre tabindex="0">{question}</pre></div>'
    return (
        f'<details id="qa-d-{at}" data-state="{case.state}" data-case="{escape(case.id)}"><summary>'
        f'<span class="qa-sign" role="img" aria-label="{state}" title="{state}">{sign}</span>'
        f'<span class="qa-name">{escape(_short(title_of(case, texts)))} <small class="fine">{escape(case.id)}</small>{lines}</span>'
        f'<span class="meta">{seconds}</span></summary>{body}</details>'
    )


def _short(text: str, most: int = _SHORT) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= most else f"{flat[: most - 1]}…"
