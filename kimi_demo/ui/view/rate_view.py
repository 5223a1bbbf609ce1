"""Thumbs under a finished reply, and what is said once one of them was pressed (assets/rate.js). Pure."""

from html import escape

from kimi_demo.ui.texts import Texts
from kimi_demo.ui.view.act import button

MOST_NOTE = 2_000


def rate_buttons(run: str, texts: Texts) -> str:
    """Make the reply a case of QA, as a good or a bad one. Viewers of a public page get none."""
    if texts.discreet:
        return ""
    found = (
        button(texts.say(f"rate.{name}"), f'data-rate="{run}" data-good="{value}" aria-pressed="false"', picture=name)
        for name, value in (("good", "1"), ("bad", ""))
    )
    return f'<span class="rate">{"".join(found)}</span>'


def kept_html(run: str, note: str, texts: Texts, *, good: bool) -> str:
    """The reply has become a case; a note can be added to it."""
    say = texts.say
    label = escape(say("rate.note_good" if good else "rate.note_bad"))
    words = escape(say("rate.noted" if note else "rate.kept"))
    return (
        f'<form class="rated" data-rate-note="{run}" data-good="{"1" if good else ""}"><span class="fine" role="status">{words}</span>'
        f'<input name="note" value="{escape(note)}" maxlength="{MOST_NOTE}" placeholder="{label}" aria-label="{label}" autocomplete="off">'
        f'<button type="submit" class="act">{escape(say("rate.keep_note"))}</button></form>'
    )
