"""Answers that the server gives by itself, before or instead of the page: one sentence, in the reader's language."""

from collections.abc import Mapping
from html import escape
from string import Template

from starlette.responses import HTMLResponse, PlainTextResponse, Response

from kimi_demo.dialect.failure import Failure
from kimi_demo.ui.texts import texts

_PAGE = Template("""<!doctype html>
<html lang="$language"><head><meta charset="utf-8"><meta http-equiv="refresh" content="1"><title>$title</title>
<style>:root{color-scheme:light dark}body{font:1.1rem/1.5 system-ui,sans-serif;max-width:34rem;margin:18vh auto;padding:0 1rem}</style>
</head><body><h1>$title</h1><p>$text</p></body></html>
""")


def language_of(accept_language: str) -> str:
    """ "zh" where the browser asks for Chinese before English, else "en"."""
    for part in accept_language.lower().split(","):
        tag = part.split(";")[0].strip()
        if tag.startswith(("zh", "en")):
            return tag[:2]
    return "en"


def refusal(status: int, failure: Failure, accept_language: str = "", headers: Mapping[str, str] | None = None) -> Response:
    """`failure` in words, as plain text."""
    language = language_of(accept_language)
    words = texts(language).sentence(failure)
    return PlainTextResponse(words + "\n", status, {"cache-control": "no-store", "content-language": language} | dict(headers or {}))


def starting_page(accept_language: str = "") -> Response:
    """What a browser shows until the page is there; it asks again every second."""
    language = language_of(accept_language)
    say = texts(language).say
    page = _PAGE.substitute(language=language, title=escape(say("starting.title")), text=escape(say("starting.text")))
    return HTMLResponse(page, headers={"cache-control": "no-store"})
