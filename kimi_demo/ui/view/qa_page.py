"""The QA tab's frame: the form of a new run, the suites, the earlier runs, and the parts that a stream fills. Pure."""

from collections.abc import Sequence
from html import escape

from kimi_demo.dialect.sampling import PRESETS
from kimi_demo.qa.case import told
from kimi_demo.qa_books import Card
from kimi_demo.qa_suites import Offered
from kimi_demo.ui.texts import Texts
from kimi_demo.ui.view.act import act_button
from kimi_demo.ui.view.pair_view import address_words

MOST_REPEATS, MOST_AT_ONCE = 1_000, 512
"""As `Case.repeats` and `Suite.at_once` have them."""

FILTERS = ("all", "fail", "warn", "open")
_BAR = ("fail", "warn", "open", "pass", "running", "skip", "waiting")


def stranger_html(texts: Texts) -> str:
    """All that somebody else than the operator sees."""
    return f'<p class="qa-stranger">{escape(texts.say("qa_page.stranger"))}</p>'


def frame_html(boot: str, texts: Texts) -> str:
    """boot: names this run of the application; a browser that has its frame keeps it, with what was typed into it."""
    say = texts.say
    filters = "".join(
        f'<button type="button" data-qa-filter="{name}" aria-pressed="{"true" if name == FILTERS[0] else "false"}">'
        f"{escape(say(f'qa_page.filter.{name}'))}</button>"
        for name in FILTERS
    )
    return (
        f'<div class="qa" data-boot="{escape(boot)}"><div class="qa-side">{_form(texts)}'
        f'<h3>{escape(say("qa_page.runs"))}</h3><div id="qa-runs" class="qa-part"></div></div>'
        f'<div class="qa-main"><div id="qa-head" class="qa-part"></div><div id="qa-compare" class="qa-part"></div>'
        f'<div class="qa-filters" role="group" aria-label="{escape(say("qa_page.filter.label"))}" hidden>{filters}</div>'
        f'<div id="qa-cases" class="qa-part"></div></div></div>'
    )


def _form(texts: Texts) -> str:
    say = texts.say

    def number(name: str) -> str:
        return _field(
            name, f'<input type="text" id="qa-{name}" name="{name}" inputmode="numeric" maxlength="6" placeholder="{_as_suite}">', texts
        )

    def select(name: str, choices: Sequence[tuple[str, str]]) -> str:
        items = "".join(f'<option value="{escape(key)}">{escape(words)}</option>' for key, words in choices)
        return _field(name, f'<select id="qa-{name}" name="{name}"><option value="">{_as_suite}</option>{items}</select>', texts)

    _as_suite = escape(say("qa_page.as_suite"))
    modes = [(name, say(f"qa_page.mode.{name}")) for name in ("thinking", "instant")]
    presets = [(key, say(f"preset.{key}.label")) for key in PRESETS]
    return (
        f'<form id="qa-form" autocomplete="off" novalidate><h3>{escape(say("qa_page.new"))}</h3>'
        f'<div id="qa-suites" class="qa-part" role="radiogroup" aria-label="{escape(say("qa_page.suite"))}"></div>'
        f'<div class="qa-fields">{number("repeats")}{number("at_once")}{select("mode", modes)}{select("preset", presets)}</div>'
        f'<div id="qa-servers" class="qa-part qa-fields"></div>'
        f'<p class="fine">{escape(say("qa_page.cost"))}</p>'
        f'<button type="submit" id="qa-start" class="act qa-primary">{escape(say("qa_page.start"))}</button></form>'
    )


def _field(name: str, control: str, texts: Texts) -> str:
    return f'<label class="qa-field" data-field="{name}"><span>{escape(texts.say(f"qa_page.field.{name}"))}</span>{control}</label>'


def servers_html(addresses: Sequence[str], texts: Texts) -> str:
    """The choice of who is asked; "" where there is none."""
    if not addresses:
        return ""
    items = "".join(f'<option value="{escape(each)}">{escape(address_words(each))}</option>' for each in addresses)
    this = escape(texts.say("pair.this_server"))
    return _field("server", f'<select id="qa-server" name="server"><option value="">{this}</option>{items}</select>', texts)


def suites_html(offered: Sequence[Offered], texts: Texts) -> str:
    """What can be run, and own files that cannot, with what is wrong in them."""
    say, items, wrong = texts.say, "", ""
    for one in offered:
        if one.suite is None:
            what = texts.failure(one.failure.code, one.failure.params)[0] if one.failure is not None else ""
            wrong += f'<li class="qa-broken" data-suite="{escape(one.key)}"><b>{escape(one.key)}</b> {escape(what)}</li>'
            continue
        about = told(one.suite.about, texts.language)
        facts = say("qa_page.suite_facts", cases=one.cases, at_once=one.suite.at_once)
        own = f" · {escape(say('qa_page.own'))}" if one.own else ""
        items += (
            f'<label class="qa-suite"><input type="radio" name="suite" value="{escape(one.key)}">'
            f"<span><b>{escape(told(one.suite.title, texts.language))}</b> "
            f'<small class="fine">{escape(facts)}{own}</small><small class="fine qa-what">{escape(about)}</small></span></label>'
        )
    broken = f'<ul class="qa-list qa-wrong-files" role="alert">{wrong}</ul>' if wrong else ""
    return f'{items}{broken}<p class="fine">{escape(say("qa_page.own_note"))}</p>'


def runs_html(cards: Sequence[Card], opened: str, baselines: frozenset[str], texts: Texts) -> str:
    """Newest first. baselines: ids of the runs that later ones are held against."""
    if not cards:
        return f'<p class="fine">{escape(texts.say("qa_page.no_runs"))}</p>'
    return f'<ul class="qa-list">{"".join(_item(card, opened, baselines, texts) for card in cards)}</ul>'


def _item(card: Card, opened: str, baselines: frozenset[str], texts: Texts) -> str:
    say = texts.say
    current = ' aria-current="true"' if card.id == opened else ""
    mark = f'<span class="qa-mark">{escape(say("qa_page.is_baseline"))}</span>' if card.id in baselines else ""
    state = "" if card.state == "done" else f" · {escape(say(f'qa_page.state.{card.state}'))}"
    other = " · ".join(overrides_words(card, texts))
    other = f" · {escape(other)}" if other else ""
    return (
        f'<li data-run-state="{card.state}"><button type="button" class="qa-open" data-qa-open="{card.id}"{current}>'
        f'<span class="qa-line"><b>{escape(told(card.title, texts.language))}</b>{mark}</span>'
        f'<small class="fine">{when(card)}{state}{other}</small>{bar_html(card.counts, texts)}</button></li>'
    )


def overrides_words(card: Card, texts: Texts) -> list[str]:
    """What was done otherwise than the suite says, in words."""
    say = texts.say
    found = [say(f"qa_page.mode.{card.mode}")] if card.mode is not None else []
    found += [say(f"preset.{card.preset}.label") if card.preset in PRESETS else card.preset] if card.preset is not None else []
    found += [say("qa_page.times", count=card.repeats)] if card.repeats is not None else []
    return found + ([address_words(card.server)] if card.server else [])


def when(card: Card) -> str:
    """Of its beginning, as an element whose text assets/qa.js puts into the browser's time zone."""
    at = card.created_at
    return f'<time datetime="{at.isoformat(timespec="seconds")}">{at:%Y-%m-%d %H:%M} UTC</time>'


def bar_html(counts: dict[str, int], texts: Texts) -> str:
    """The cases by state, as a bar; "" where there are none."""
    known = [(state, counts[state]) for state in _BAR if counts.get(state)]
    if not known:
        return ""
    words = counted_words(counts, texts)
    parts = "".join(f'<i data-state="{state}" style="flex:{count}"></i>' for state, count in known)
    return f'<span class="qa-bar" role="img" aria-label="{escape(words)}" title="{escape(words)}">{parts}</span>'


def counted_words(counts: dict[str, int], texts: Texts) -> str:
    """ "12 passed, 1 failed" """
    return ", ".join(f"{counts[state]} {texts.say(f'qa.state.{state}')}" for state in _BAR if counts.get(state))


def delete_html(card: Card, texts: Texts) -> str:
    """Behind a menu that says what it takes."""
    say = texts.say
    sure = act_button("qa", "qa_delete", say("qa_page.delete_sure"), run=card.id)
    return (
        f'<details class="menu qa-menu" id="qa-menu-{card.id}"><summary class="act plain">{escape(say("qa_page.delete"))}</summary>'
        f'<div class="menu-items"><p class="fine">{escape(say("qa_page.delete_note"))}</p>{sure}</div></details>'
    )
