"""Answers that the server gives by itself, before or instead of the page: one sentence, in the reader's language."""

from collections.abc import Mapping
from html import escape
from string import Template

from starlette.requests import HTTPConnection
from starlette.responses import HTMLResponse, PlainTextResponse, Response

from kimi_demo.dialect.failure import Failure
from kimi_demo.ui.languages import language_of
from kimi_demo.ui.texts import texts

_PAGE = Template("""<!doctype html>
<html lang="$language"><head><meta charset="utf-8"><meta http-equiv="refresh" content="1"><title>$title</title>
<style>:root{color-scheme:light dark}body{font:1.1rem/1.5 system-ui,sans-serif;max-width:34rem;margin:18vh auto;padding:0 1rem}</style>
</head><body><h1>$title</h1><p>$text</p></body></html>
""")


def refusal(status: int, failure: Failure, request: HTTPConnection, headers: Mapping[str, str] | None = None) -> Response:
    """`failure` in words, as plain text."""
    language = language_of(request)
    words = texts(language).sentence(failure)
    return PlainTextResponse(words + "\n", status, {"cache-control": "no-store", "content-language": language} | dict(headers or {}))


def starting_page(request: HTTPConnection) -> Response:
    """What a browser shows until the page is there; it asks again every second."""
    language = language_of(request)
    say = texts(language).say
    page = _PAGE.substitute(language=language, title=escape(say("starting.title")), text=escape(say("starting.text")))
    return HTMLResponse(page, headers={"cache-control": "no-store"})
