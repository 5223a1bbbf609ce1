"""A QA run held against another of its suite: the choice of which, and what has changed, regressions first. Pure."""

from collections.abc import Sequence
from html import escape

from kimi_demo.qa.case import told
from kimi_demo.qa.comparing import Change, Comparison
from kimi_demo.qa.report_facts import compared
from kimi_demo.qa.verdict import CheckResult
from kimi_demo.qa_books import Card
from kimi_demo.ui.texts import Texts
from kimi_demo.ui.view.act import act_button
from kimi_demo.ui.view.qa_page import overrides_words

NOTHING, BASELINE = "none", "baseline"
"""What a run may be held against, beside another run's id."""

_MOST = 200


def compare_html(found: Comparison | None, others: Sequence[Card], chosen: str, has_baseline: bool, run: str, texts: Texts) -> str:
    """found: None where nothing is chosen. others: runs of the same suite. chosen: NOTHING, BASELINE or a run's id."""
    if not others and not has_baseline:
        return f'<p class="fine qa-no-baseline">{escape(texts.say("qa_page.no_baseline"))}</p>'
    say = texts.say
    choices = [(NOTHING, say("qa_page.against_nothing"))]
    choices += [(BASELINE, say("qa_page.against_baseline"))] if has_baseline else []
    choices += [(card.id, _named(card, texts)) for card in others]
    items = "".join(
        f'<option value="{escape(value)}"{" selected" if value == chosen else ""}>{escape(words)}</option>' for value, words in choices
    )
    drop = act_button("qa", "qa_baseline_drop", say("qa_page.drop_baseline"), plain=True, run=run) if has_baseline else ""
    head = (
        f'<div class="qa-against"><label class="qa-field"><span>{escape(say("qa_page.against"))}</span>'
        f'<select id="qa-against">{items}</select></label>{drop}</div>'
    )
    return head + (_changes(found, texts) if found is not None else "")


def _named(card: Card, texts: Texts) -> str:
    parts = [f"{card.created_at:%Y-%m-%d %H:%M} UTC", *overrides_words(card, texts), card.model]
    return " · ".join(part for part in parts if part)


def _changes(found: Comparison, texts: Texts) -> str:
    say = texts.say
    verdict = "worse" if found.worse else "same"
    words = say("qa.report.compared", worse=found.worse, same=found.same)
    facts = "".join(f"<dt>{escape(fact.label)}</dt><dd>{escape(fact.value)}</dd>" for fact in compared(found, texts))
    rows = "".join(_row(change, texts) for change in found.changes[:_MOST])
    heads = "".join(f'<th scope="col">{escape(say(f"qa.report.{name}"))}</th>' for name in ("case", "check", "before", "after"))
    table = (
        f'<div class="table-scroll" tabindex="0"><table class="qa-changes"><thead><tr><th></th>{heads}</tr></thead>'
        f"<tbody>{rows}</tbody></table></div>"
        if rows
        else ""
    )
    more = len(found.changes) - _MOST
    left = f'<p class="fine">{escape(say("qa.more_changes", count=more).strip())}</p>' if more > 0 else ""
    return f'<p class="qa-verdict" data-verdict="{verdict}"><b>{escape(words)}</b></p><dl>{facts}</dl>{table}{left}'


def _row(change: Change, texts: Texts) -> str:
    case = change.second or change.first
    title = told(case.title, texts.language) if case is not None else ""
    check = texts.say(f"qa.check.{change.check}") if change.check else ""
    return (
        f'<tr data-change="{change.kind}"><td>{escape(texts.say(f"qa.change.{change.kind}"))}</td>'
        f"<td>{escape(title or change.case)} <small class=fine>{escape(change.case)}</small></td><td>{escape(check)}</td>"
        f"<td>{_share(change.before, texts)}</td><td>{_share(change.after, texts)}</td></tr>"
    )


def _share(check: CheckResult | None, texts: Texts) -> str:
    """ "failed 1/3" """
    if check is None:
        return "–"
    share = f" {check.passed}/{check.counted}" if check.counted > 1 else ""
    return f"{escape(texts.say(f'qa.state.{check.outcome}'))}{share}"
