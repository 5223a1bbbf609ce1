"""The texts as viewers of a public page get them: the same words, without addresses, paths and keys of the machine that serves them."""

import re
from dataclasses import dataclass

from kimi_demo.ui.texts import Texts

HIDDEN = "…"
# An address with its scheme; a host with a port; an IPv4 or bracketed IPv6 address; a path of two parts or more; what looks like a key.
_TELLING = re.compile(
    r"\b[a-z][a-z0-9+.-]*://[^\s\"'<>]+"
    r"|\[[0-9a-f]*:[0-9a-f:.]+\](?::\d+)?"
    r"|\b\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?\b"
    r"|\b[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9-]+)*:\d{2,5}\b"
    r"|(?:~|\.{1,2}|(?<![\w/]))(?:/[\w.@+~-]+){2,}/?"
    r"|\b[A-Z]:\\[^\s\"'<>]+"
    r"|\b(?:sk|hf|ms)[-_][A-Za-z0-9_-]{8,}",
    re.IGNORECASE,
)
_NAMED = frozenset(("address", "base_url", "command", "folder", "host", "log", "path", "server", "url"))
"""Parameters of failures that hold nothing else."""


@dataclass(frozen=True)
class DiscreetTexts(Texts):
    """Failures name no host and no path."""

    discreet: bool = True

    def failure(self, code: str, params: dict[str, str]) -> tuple[str, str]:
        return super().failure(code, {name: HIDDEN if name in _NAMED else without_places(value) for name, value in params.items()})


def without_places(text: str) -> str:
    """`text` with a sign in place of everything that tells where something lies."""
    return _TELLING.sub(HIDDEN, text)


def discreet(texts: Texts) -> DiscreetTexts:
    return DiscreetTexts(texts.language, texts.strings)
