"""Which language a visitor reads. What a person has chosen is a cookie: switching is setting it and loading the page again."""

from typing import Literal

from starlette.requests import HTTPConnection

from kimi_demo.ui.texts import LANGUAGES

COOKIE = "kimi_demo_language"
"""Set by assets/switches.js."""
AtFirst = Literal["auto", "en", "zh"]


def language_of(request: HTTPConnection, at_first: AtFirst = "auto") -> str:
    """What the visitor has chosen, else what was set at the start, else what their browser asks for first, else English."""
    chosen = request.cookies.get(COOKIE, "")
    if chosen in LANGUAGES:
        return chosen
    return at_first if at_first != "auto" else preferred(request.headers.get("accept-language", ""))


def preferred(accept_language: str) -> str:
    """The first of our languages in a browser's list, "zh" for "zh-TW, en;q=0.8". Lists come in order of preference."""
    for part in accept_language.lower().split(","):
        language = part.split(";")[0].strip().split("-")[0]
        if language in LANGUAGES:
            return language
    return "en"
