"""QR codes of addresses: of the public link, and of published runs. Pure."""

from html import escape
from urllib.parse import urlsplit

from kimi_demo.ui.hosts import is_loopback
from kimi_demo.ui.texts import Texts


def qr_html(address: str, texts: Texts) -> str:
    """The code of an http(s) address, and whether a phone can get there at all. Raises ValueError for any other text."""
    parts = urlsplit(address)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("not an http address")
    words = texts.say("publish.qr_here" if is_loopback(parts.hostname) else "publish.qr_scan")
    return f'<div class="srv-qr">{qr_svg(address)}<p class="fine">{escape(words)}</p></div>'


def qr_svg(text: str) -> str:
    """A QR code (ISO/IEC 18004, error correction M) of `text` as an SVG element that takes the size it is given, dark on white."""
    import segno

    return str(segno.make_qr(text, error="m").svg_inline(border=3, omitsize=True, dark="#000", light="#fff"))
