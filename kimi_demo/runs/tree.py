"""The turns of a conversation as a tree: whoever asks again, differently, begins a branch beside the first. Pure."""

from collections.abc import Sequence
from typing import NamedTuple


class Node(NamedTuple):
    id: str
    parent: str | None


class Tree:
    """nodes: in order of creation, so that a parent stands before its children. One whose parent is not among them is a root."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self._parent: dict[str, str | None] = {}
        self._children: dict[str | None, list[str]] = {None: []}
        for node in nodes:
            parent = node.parent if node.parent in self._parent else None
            self._parent[node.id] = parent
            self._children[node.id] = []
            self._children[parent].append(node.id)

    def __contains__(self, node: object) -> bool:
        return node in self._parent

    def parent(self, node: str) -> str | None:
        """What `node` follows; None for a first turn, and for one that is not known."""
        return self._parent.get(node)

    def path(self, leaf: str | None) -> list[str]:
        """From the first turn to `leaf`; [] for None and for one that is not known."""
        found: list[str] = []
        node = leaf if leaf in self._parent else None
        while node is not None:
            found.append(node)
            node = self._parent[node]
        return found[::-1]

    def versions(self, node: str) -> list[str]:
        """`node` and its siblings, oldest first."""
        return self._children[self._parent[node]]

    def newest_under(self, node: str | None) -> str | None:
        """Where one arrives from `node` by following the newest turn each time; None when there is none at all."""
        while children := self._children.get(node, []):
            node = children[-1]
        return node
