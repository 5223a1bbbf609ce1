"""An answer that grows: finished Markdown blocks are sent once and stay, only the last block is sent again as it grows."""

from kimi_demo.ui.markup import blocks, markdown
from kimi_demo.ui.view.patch import Patch, add_html, set_html


class AnswerView:
    """The live view of one answer in the elements `{key}-done` and `{key}-tail`.

    Cost per update: the length of the last block, not of the answer. Link definitions that come later than their use are
    resolved only by `final`, which renders the whole once.
    """

    def __init__(self, key: str) -> None:
        self.key = key
        self._source = ""
        self._shown = ""

    def skeleton(self) -> str:
        return f'<div id="{self.key}-done"></div><div id="{self.key}-tail"></div>'

    def grow(self, text: str) -> list[Patch]:
        """Patches after `text` was added at the end."""
        self._source += text
        patches: list[Patch] = []
        starts = blocks(self._source)
        if len(starts) > 1:
            lines = self._source.splitlines(keepends=True)
            cut = sum(len(line) for line in lines[: starts[-1]])
            patches.append(add_html(f"{self.key}-done", markdown(self._source[:cut])))
            self._source = self._source[cut:]
        tail = markdown(self._source)
        if tail != self._shown or patches:
            self._shown = tail
            patches.append(set_html(f"{self.key}-tail", tail))
        return patches

    def final(self, whole: str) -> list[Patch]:
        """Patches that leave the finished answer as one rendering of all of it."""
        self._source = self._shown = ""
        return [set_html(f"{self.key}-done", markdown(whole)), set_html(f"{self.key}-tail", "")]
