"""The dialog in which a run is published, the list of links, and the line above a published page. Pure."""

from collections.abc import Sequence
from html import escape

from kimi_demo.dialect.failure import Failure
from kimi_demo.runs.conversations import MOST_TITLE_CHARS
from kimi_demo.runs.published import Kind, Publication
from kimi_demo.ui.texts import Texts
from kimi_demo.ui.view.act import button
from kimi_demo.ui.view.notice import failure_html


def publish_button(kind: Kind, subject: str, texts: Texts, *, plain: bool = True) -> str:
    """Opens the dialog (assets/publish.js). subject: "" for the conversation that the tab has open.

    Viewers of a public page get none: there only the operator publishes.
    """
    if texts.discreet:
        return ""
    words = texts.say(f"publish.open.{kind}")
    return button(words, f'data-publish="{kind}" data-publish-subject="{escape(subject)}"', plain=plain)


def dialog_html(
    kind: Kind,
    subject: str,
    title: str | Failure,
    links: Sequence[Publication],
    everything: Sequence[Publication],
    texts: Texts,
    base: str | None,
    *,
    made: str = "",
) -> str:
    """title: what is proposed, or why nothing can be published; links: to this subject; everything: the visitor's links.

    base: the public address of the page, where the links are better told with it than with the visitor's own; made: the new link.
    """
    say = texts.say
    if isinstance(title, Failure):
        form = failure_html(title, texts)
    else:
        field = (
            f'<label>{escape(say("publish.title"))}<input name="title" value="{escape(title)}" maxlength="{MOST_TITLE_CHARS}" dir="auto">'
            "</label>"
        )
        form = (
            f"<p>{escape(say(f'publish.what.{kind}'))} {escape(say('publish.who'))}</p>"
            f'<form data-publish-form data-kind="{kind}" data-subject="{escape(subject)}">{field}'
            f'<button type="submit" class="act">{escape(say("publish.do"))}</button></form>'
        )
    shown = links_html(links, texts, base, made=made)
    others = [each for each in everything if each not in links]
    rest = ""
    if others:
        summary = escape(say("publish.others", count=len(others)))
        rest = f'<details class="publish-others"><summary>{summary}</summary>{links_html(others, texts, base)}</details>'
    return (
        f'<div class="publish" data-copied="{escape(say("page.copied"))}">'
        f'<div class="publish-head"><h2 id="publish-heading">{escape(say("publish.heading"))}</h2>'
        f'<button type="button" class="act plain" data-publish-close aria-label="{escape(say("publish.close"))}">×</button></div>'
        f'<div class="publish-notice" role="alert"></div>{form}{shown}{rest}</div>'
    )


def links_html(links: Sequence[Publication], texts: Texts, base: str | None, *, made: str = "", operator: bool = False) -> str:
    """Each with what can be done with it. operator: the buttons are those of the Server tab."""
    items = "".join(_link(each, texts, base, new=each.token == made, operator=operator) for each in links)
    return f'<ul class="publish-links">{items}</ul>' if items else ""


def _link(link: Publication, texts: Texts, base: str | None, *, new: bool, operator: bool) -> str:
    say = texts.say
    path = f"kimi/p/{link.token}"
    address = f"{base.rstrip('/')}/{path}" if base else path
    told = f"{say(f'publish.kind.{link.kind}')} · {link.published_at:%Y-%m-%d %H:%M} UTC"
    if operator:
        withdraw = f'data-kind="server" data-act="publish_withdraw" data-value-token="{link.token}"'
    else:
        withdraw = f'data-publish-withdraw="{link.token}"'
    field = "" if operator else f'<input readonly value="{escape(address)}" aria-label="{escape(say("publish.address"))}">'
    code = button(say("publish.qr"), 'data-publish-qr aria-expanded="false"')
    return (
        f'<li data-token="{link.token}"{" data-new" if new else ""}><div class="publish-title" dir="auto">{escape(link.title)}</div>'
        f'<div class="fine">{escape(told)}</div>'
        f'<div class="publish-row" data-publish-address="{escape(address)}">{field}{button(say("page.copy"), "data-publish-copy")}'
        f'<a class="act" href="{path}" target="_blank" rel="noopener">{escape(say("publish.look"))}</a>'
        f'<a class="act" href="{path}/file" download>{escape(say("publish.file"))}</a>'
        f"{code}{button(say('publish.withdraw'), withdraw)}</div></li>"
    )


def bar_html(token: str, texts: Texts) -> str:
    """token: of the page, beside which its file lies."""
    say = texts.say
    return (
        f'<nav class="published-bar"><span>{escape(say("published.bar"))}</span> '
        f'<a href="{escape(token)}/file" download>{escape(say("published.download"))}</a></nav>'
    )
