"""What assets/live.js makes of patches, in Python: enough of it to see what a person would see."""

import re
from collections.abc import Iterable
from html import unescape

from kimi_demo.ui.view.patch import Patch


class Elements:
    """The last content of every element, by id; text patches collect as text."""

    def __init__(self) -> None:
        self.html: dict[str, str] = {}
        self.state: dict[str, str] = {}
        self.open: dict[str, bool] = {}
        self.lazy: dict[str, str] = {}
        self.sent = 0

    def apply(self, patches: Iterable[Patch]) -> "Elements":
        for what, target, argument in patches:
            self.sent += len(argument)
            if what == "set":
                self.html[target] = argument
            elif what in ("add", "text"):
                self.html[target] = self.html.get(target, "") + argument
            elif what == "open":
                self.open[target] = bool(argument)
            elif what == "lazy":
                self.lazy[target] = argument
            elif what == "state":
                self.state[target] = argument
        return self

    def text(self, target: str) -> str:
        """What stands in the element, without tags."""
        return unescape(re.sub(r"<[^>]*>", "", self.html.get(target, "")))
