"""The frame of a page that needs neither the server nor a script: title, facts, style sheet inside, a policy that lets nothing run."""

import base64
import hashlib
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from string import Template

from kimi_demo.ui.texts import Texts

_ASSETS = Path(__file__).parent / "assets"
_STYLES = ("page.css", "chat.css", "transcript.css")

BAR = "<!--bar-->"
"""Where `with_bar` puts something into a page that was made before: its first comment, since none of the content can hold one."""

_PAGE = Template("""<!doctype html>
<html lang="$language"><head><meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="$policy">
<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="referrer" content="no-referrer">$head<title>$title</title>
<style>$style</style></head>
<body>$bar<main><header><h1 dir="auto">$title</h1><div class="fine meta">$dates</div><dl>$facts</dl></header>
$body</main></body></html>
""")


def static_page(
    title: str, dates: str, facts: Mapping[str, str], body: str, texts: Texts, *, styles: Sequence[str] = (), public: bool = False
) -> bytes:
    """The page in UTF-8. facts: name → value, empty ones left out; body: HTML; styles: more style sheets of assets/.

    public: it will be read at an address of ours: no search engine is to keep it, and `with_bar` may add to it.
    """
    style = "\n".join((_ASSETS / name).read_text(encoding="utf-8") for name in (*_STYLES, *styles))
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    shown = {
        "language": texts.language,
        # Nothing runs and nothing is fetched, whatever a model or a person wrote; no style is taken but ours.
        "policy": f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; base-uri 'none'; form-action 'none'",
        "head": '<meta name="robots" content="noindex, nofollow">' if public else "",
        "bar": BAR if public else "",
        "style": style,
        "title": escape(title),
        "dates": escape(dates),
        "facts": "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in facts.items() if value),
        "body": body,
    }
    return _PAGE.substitute(shown).encode("utf-8", "replace")


def with_bar(page: bytes, html: str) -> bytes:
    """The page with `html` above its title."""
    return page.replace(BAR.encode(), html.encode("utf-8", "replace"), 1)
