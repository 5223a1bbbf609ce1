"""Markdown that is still being written, made to look as it will when finished. Pure text to text.

Without this, `**bo` shows its asterisks until the closing ones come, "Text⏎-" is a heading for a moment, and a table is a heap of bars.
"""

import re

_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})", re.MULTILINE)
_BARE_MARK = re.compile(r"[ \t]*(?:[-=]+|[*+]|\*\*|__|\d{1,9}[.)]|#{1,6}|>|`{1,2}|~{1,2}|\|)[ \t]*")
_DELIMITERS = re.compile(r"[ \t]*\|?[-:| \t]*")
_CODE_SPAN = re.compile(r"(`+)(?!`)(.+?)(?<!`)\1(?!`)", re.DOTALL)
_OPEN_CODE = re.compile(r"(?<!`)(`+)(?!`)")
_OPEN_LINK = re.compile(r"(?<!\\)!?\[([^\[\]\n]*)(?:\]|\]\([^()\n]*)?$")
_MATH = (("$$", "$$"), ("\\[", "\\]"), ("\\(", "\\)"))
_STAR = re.compile(r"(?<![*\\])\*(?![*\s])|(?<=[^*\\\s])\*(?!\*)")


def half_written(text: str) -> str:
    """`text`, the last block of an answer, with what is open closed and what says nothing yet left out."""
    fence = _open_fence_mark(text)
    head, line_break, last = text.rpartition("\n")
    if fence:
        return head + line_break if last.strip() and not last.strip().strip(fence[0]) else text
    if _BARE_MARK.fullmatch(last):
        text = head + line_break
    before, paragraph = _last_paragraph(text)
    return before + _inline(_table(paragraph))


def _open_fence_mark(text: str) -> str:
    """The mark of the fence that is open at the end of `text`; "" for none."""
    mark = ""
    for found in _FENCE.finditer(text):
        if not mark:
            mark = found[1]
        elif found[1].startswith(mark) and not text[found.end() :].split("\n", 1)[0].strip(" \t" + mark[0]):
            mark = ""
    return mark


def _last_paragraph(text: str) -> tuple[str, str]:
    cut = max((found.end() for found in re.finditer(r"\n[ \t]*\n", text)), default=0)
    return text[:cut], text[cut:]


def _table(paragraph: str) -> str:
    """A table from its first line on, not only once its second is complete."""
    lines = paragraph.split("\n")
    if not lines[0].lstrip().startswith("|") or len(lines) > 2:
        return paragraph
    if lines[0].count("|") < 2:
        return "" if len(lines) == 1 else paragraph
    if len(lines) == 2 and not _DELIMITERS.fullmatch(lines[1]):
        return paragraph
    columns = len(lines[0].strip().strip("|").split("|"))
    return f"{lines[0]}\n|{'---|' * columns}"


def _inline(paragraph: str) -> str:
    body = paragraph.rstrip()
    rest = paragraph[len(body) :]
    bare = _CODE_SPAN.sub(lambda found: "x" * len(found[0]), body)
    if opened := _OPEN_CODE.search(bare):
        return body[: opened.start()] if opened.end() == len(body) else body + opened[1] + rest
    for start, end in _MATH:
        at = bare.rfind(start)
        if at >= 0 and (bare.count(start) % 2 if start == end else end not in bare[at:]):
            # As it is written, so that Markdown does not take its underscores and stars for its own.
            formula = body[at:]
            return body[:at] + f"`` {formula} ``" if "`" not in formula and formula.strip(start) else body[:at]
    if body.endswith("~") and not body.endswith("~~"):
        body = body[:-1]  # half of a mark
    body = _OPEN_LINK.sub(lambda found: found[1], body)
    bare = _CODE_SPAN.sub(lambda found: "x" * len(found[0]), body)
    for mark in ("**", "~~"):
        if bare.count(mark) % 2:
            if body.endswith(mark):
                return body[: -len(mark)] + rest
            if mark == "**" and body.endswith("*") and not body.endswith("**"):
                body = body[:-1]  # the first half of the closing mark
            return body + mark + rest
    if len(_STAR.findall(bare.replace("**", ""))) % 2:
        return body[:-1] + rest if body.endswith("*") else body + "*" + rest
    return body + rest
