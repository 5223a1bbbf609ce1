"""An answer that grows: finished Markdown blocks are sent once and stay, only the last block is sent again as it grows."""

import re

from kimi_demo.ui.half_written import half_written
from kimi_demo.ui.markup import blocks, code_frame, markdown
from kimi_demo.ui.view.patch import Patch, add_html, add_text, set_html

LONG_BLOCK = 4_000
"""Characters of a block above which it is not sent whole with every update: code grows by appending, others once in LONG_PAUSE_S."""
LONG_PAUSE_S = 1.0

_OPENING = re.compile(r"[ ]{0,3}(`{3,}|~{3,})[ \t]*([^\s`]*)[^\n`]*\n")


class AnswerView:
    """The live view of one answer in the elements `{key}-done` and `{key}-tail`.

    Cost per update: the length of the last block (of what is new, in a long block of code), not of the answer. Link definitions that
    come later than their use are resolved only by `final`, which renders the whole once.
    """

    def __init__(self, key: str) -> None:
        self.key = key
        self._source = ""
        self._shown = ""
        self._sent_at = float("-inf")
        self._fence = ""  # the opening mark, while code is appended
        self._appended = 0  # characters of `_source` that are shown

    def skeleton(self) -> str:
        return f'<div id="{self.key}-done"></div><div id="{self.key}-tail"></div>'

    def grow(self, text: str, at: float) -> list[Patch]:
        """Patches after `text` was added at the end, `at` seconds after the run's start."""
        self._source += text
        if self._fence:
            return self._grow_code(at)
        if len(self._source) > LONG_BLOCK and at - self._sent_at < LONG_PAUSE_S:
            return []
        patches: list[Patch] = []
        starts = blocks(self._source)
        if len(starts) > 1:
            lines = self._source.splitlines(keepends=True)
            cut = sum(len(line) for line in lines[: starts[-1]])
            patches.append(add_html(f"{self.key}-done", markdown(self._source[:cut])))
            self._source = self._source[cut:]
        if len(self._source) > LONG_BLOCK and (opening := _OPENING.match(self._source)):
            self._fence, self._appended, self._shown = opening[1], opening.end(), ""
            patches.append(set_html(f"{self.key}-tail", code_frame(f'<code id="{self.key}-code"></code>', opening[2])))
            return patches + self._grow_code(at)
        tail = markdown(half_written(self._source))
        if tail != self._shown or patches:
            self._shown, self._sent_at = tail, at
            patches.append(set_html(f"{self.key}-tail", tail))
        return patches

    def _grow_code(self, at: float) -> list[Patch]:
        """Appends what is new to the code; the whole, coloured, takes its place when the fence closes."""
        closing = re.compile(rf"^[ ]{{0,3}}{re.escape(self._fence)}{re.escape(self._fence[0])}*[ \t]*\n", re.MULTILINE)
        line_start = self._source.rfind("\n", 0, self._appended) + 1
        if closed := closing.search(self._source, line_start):
            done, rest = self._source[: closed.end()], self._source[closed.end() :]
            self._source, self._fence = "", ""
            patches = [add_html(f"{self.key}-done", markdown(done)), set_html(f"{self.key}-tail", "")]
            return patches + (self.grow(rest, at) if rest else [])
        # A line that may become the closing fence waits until it is none.
        last = self._source.rfind("\n") + 1
        ready = len(self._source) if self._source[last:].strip(" " + self._fence[0]) else max(last - 1, self._appended)
        fresh, self._appended = self._source[self._appended : ready], max(ready, self._appended)
        return [add_text(f"{self.key}-code", fresh)] if fresh else []

    def final(self, text: str, *, whole: bool = True, before: str = "") -> list[Patch]:
        """Patches that leave the finished answer as one rendering of all of it. whole: not cut off in the middle of its Markdown;
        before: HTML that stands above it."""
        self._source = self._shown = self._fence = ""
        return [set_html(f"{self.key}-done", before + markdown(text if whole else half_written(text))), set_html(f"{self.key}-tail", "")]
