"""The Server tab's links: the public address of the page with its QR code, and every published run. Pure."""

from collections.abc import Sequence
from html import escape

from kimi_demo.dialect.failure import Failure
from kimi_demo.runs.published import Publication
from kimi_demo.ui.texts import Texts
from kimi_demo.ui.view.act import button
from kimi_demo.ui.view.notice import failure_html
from kimi_demo.ui.view.publish_view import links_html
from kimi_demo.ui.view.qr import qr_svg


def links_view_html(links: Sequence[Publication], share: str | None, failure: Failure | None, texts: Texts, *, wanted: bool) -> str:
    """share, failure: how the public link stands; wanted: whether one was asked for, which may be on its way still."""
    say = texts.say
    if share is not None:
        public = _public(share, texts)
    elif failure is not None:
        public = failure_html(failure, texts)
    else:
        public = f'<p class="fine">{escape(say("server_links.share_wait" if wanted else "server_links.share_none"))}</p>'
    shown = links_html(links, texts, share, operator=True) or f'<p class="fine">{escape(say("server_links.none"))}</p>'
    return (
        f"<h3>{escape(say('server_links.share'))}</h3>{public}<h3>{escape(say('server_links.runs'))}</h3>"
        f'<p class="fine">{escape(say("server_links.note"))}</p>{shown}'
    )


def _public(address: str, texts: Texts) -> str:
    say = texts.say
    shown = escape(address)
    copy = f'<span data-publish-address="{shown}">{button(say("page.copy"), "data-publish-copy")}</span>'
    return (
        f'<div class="srv-qr">{qr_svg(address)}<div><p><a href="{shown}" target="_blank" rel="noopener">{shown}</a></p>'
        f'<p class="fine">{escape(say("server_links.qr"))}</p>{copy}</div></div>'
    )
