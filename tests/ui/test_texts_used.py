"""No text lies about unused: each key is written out in the code, or is made there from a template whose blanks are words of the code."""

import re
from pathlib import Path

from kimi_demo.ui.texts import texts

PACKAGE = Path(__file__).parents[2] / "kimi_demo"
SOURCE = "\n".join(
    path.read_text(encoding="utf-8")
    for kind in ("py", "js", "jinja", "yaml")
    for path in PACKAGE.rglob(f"*.{kind}")
    if "rehearsal/data" not in path.as_posix()  # sentences: they would count any word as used
)
WORDS = set(re.findall(r"\w+", SOURCE))
WRITTEN = set(re.findall(r"[\"'`]([a-z_][\w.]*)[\"'`]", SOURCE))

ELSEWHERE = ("problem.", "rate.look_")
"""Texts.problem finds the first by the words of a sentence, some of them Python's own; rate_acts.py makes the others of two choices."""


def templates() -> list[re.Pattern[str]]:
    """f"rate.look_{name}" as a pattern, {name} being anything."""
    found = {text for text in re.findall(r"[\"'`]([\w.]*\{[\w.{}()\[\]]*)[\"'`]", SOURCE) if "." in re.sub(r"\{[^}]*\}", "", text)}
    return [
        re.compile("".join(r"([\w.]+)" if part.startswith("{") else re.escape(part) for part in re.split(r"(\{[^}]*\})", each)))
        for each in found
    ]


TEMPLATES = templates()


def is_used(key: str) -> bool:
    if key in WRITTEN:
        return True
    made = (pattern.fullmatch(key) for pattern in TEMPLATES)
    return any(set(re.split(r"\.", ".".join(match.groups()))) <= WORDS for match in made if match)


def test_every_text_is_used() -> None:
    keys = [key for key in texts("en").strings if not key.startswith(ELSEWHERE)]
    codes = {key: re.sub(r"^failure\.(.+)\.(what|hint)$", r"\1", key) for key in keys}
    unused = [key for key in keys if not is_used(key) and not is_used(codes[key])]
    assert len(keys) > 1000 and not unused


def test_a_text_that_nobody_says_is_noticed() -> None:
    assert not is_used("chat.nobody_says_this") and not is_used("failure.no_such_thing.what")
