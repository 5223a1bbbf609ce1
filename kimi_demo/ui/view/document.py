"""Patches carried out in Python instead of in a browser: a finished view as a piece of HTML that needs no script."""

from collections.abc import Callable, Iterable, Iterator
from html import escape
from html.parser import HTMLParser

from kimi_demo.ui.view.patch import Patch

_VOID = frozenset(("area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"))
_INTERACTIVE = frozenset(("button", "input", "select", "textarea", "form"))
"""Elements that do nothing without a script, and are left out."""


class Element:
    """A tag with its attributes and what is inside: elements, and text that is HTML already."""

    def __init__(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tag = tag
        self.attributes = dict(attributes)
        self.inside: list[Element | str] = []

    def html(self) -> str:
        if self.tag in _INTERACTIVE or "data-load" in self.attributes:  # the latter asks the server when it is opened
            return ""
        told = "".join(f" {name}" if value is None else f' {name}="{escape(value)}"' for name, value in self.attributes.items())
        return f"<{self.tag}{told}>" if self.tag in _VOID else f"<{self.tag}{told}>{self.content()}</{self.tag}>"

    def content(self) -> str:
        return "".join(each if isinstance(each, str) else each.html() for each in self.inside)

    def walk(self) -> Iterator["Element"]:
        yield self
        for each in self.inside:
            if isinstance(each, Element):
                yield from each.walk()


class Document:
    """Holds what a browser would; `skeleton` is the HTML of the views, made by ourselves and well-formed.

    load: gives the HTML for the address of a lazy patch, which has no later here.
    """

    def __init__(self, skeleton: str, load: Callable[[str], str] = lambda source: "") -> None:
        self._load = load
        self._root = Element("div", [])
        self._root.inside = parsed(skeleton)
        self._ids: dict[str, Element] = {}
        self._learn(self._root)

    def apply(self, patches: Iterable[Patch]) -> "Document":
        for what, target, argument in patches:
            element = self._ids.get(target)
            if element is None:
                continue
            if what == "open":
                if argument:
                    element.attributes["open"] = None
                else:
                    element.attributes.pop("open", None)
            elif what == "state":
                element.attributes["data-state"] = argument
            else:
                new = [_segment(argument)] if what == "text" else parsed(self._load(argument) if what == "lazy" else argument)
                element.inside = [*element.inside, *new] if what in ("add", "text") else [*new]
                for each in new:
                    if isinstance(each, Element):
                        self._learn(each)
        return self

    def html(self) -> str:
        return self._root.content()

    def walk(self) -> Iterator[Element]:
        """Every element, to be changed."""
        return self._root.walk()

    def _learn(self, element: Element) -> None:
        for each in element.walk():
            identity = each.attributes.get("id")
            if identity:
                self._ids[identity] = each


def parsed(html: str) -> list[Element | str]:
    reader = _Reader()
    reader.feed(html)
    reader.close()
    return reader.root.inside


def _segment(text: str) -> Element:
    segment = Element("div", [("class", "segment")])
    segment.inside.append(escape(text, quote=False))
    return segment


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=False)
        self.root = Element("div", [])
        self._open = [self.root]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = Element(tag, attrs)
        self._open[-1].inside.append(element)
        if tag not in _VOID:
            self._open.append(element)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._open[-1].inside.append(Element(tag, attrs))

    def handle_endtag(self, tag: str) -> None:
        for depth in range(len(self._open) - 1, 0, -1):
            if self._open[depth].tag == tag:
                del self._open[depth:]
                return

    def handle_data(self, data: str) -> None:
        self._open[-1].inside.append(escape(data, quote=False))

    def handle_entityref(self, name: str) -> None:
        self._open[-1].inside.append(f"&{name};")

    def handle_charref(self, name: str) -> None:
        self._open[-1].inside.append(f"&#{name};")
