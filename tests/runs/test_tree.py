"""Turns and their versions."""

from hypothesis import given
from hypothesis import strategies as st

from kimi_demo.runs.tree import Node, Tree

#   a ── b ── c
#    ╲    ╲── d ── e
#     ╲── f
#   g
TREE = Tree([Node("a", None), Node("b", "a"), Node("c", "b"), Node("d", "b"), Node("f", "a"), Node("e", "d"), Node("g", None)])


def test_the_path_leads_from_the_first_turn_to_the_leaf() -> None:
    assert TREE.path("e") == ["a", "b", "d", "e"]
    assert TREE.path("g") == ["g"]
    assert TREE.path(None) == TREE.path("unknown") == []


def test_versions_are_what_follows_the_same_turn() -> None:
    assert TREE.versions("c") == TREE.versions("d") == ["c", "d"]
    assert TREE.versions("a") == TREE.versions("g") == ["a", "g"]
    assert TREE.versions("e") == ["e"]


def test_going_to_a_version_ends_at_its_newest_turn() -> None:
    assert TREE.newest_under("b") == "e"
    assert TREE.newest_under("a") == "f"
    assert TREE.newest_under("c") == "c"
    assert TREE.newest_under(None) == "g"
    assert Tree([]).newest_under(None) is None


def test_a_turn_whose_parent_is_gone_is_a_first_one() -> None:
    tree = Tree([Node("b", "a"), Node("c", "b")])
    assert tree.path("c") == ["b", "c"]
    assert tree.parent("b") is None


@given(st.lists(st.integers(-1, 30), max_size=30))
def test_every_path_ends_and_every_turn_is_among_its_versions(parents: list[int]) -> None:
    nodes = [Node(str(i), str(parent) if parent >= 0 else None) for i, parent in enumerate(parents)]  # some not there (yet)
    tree = Tree(nodes)
    for node in nodes:
        path = tree.path(node.id)
        assert path[-1] == node.id and len(set(path)) == len(path)
        assert node.id in tree.versions(node.id)
        assert path == tree.path(tree.newest_under(node.id))[: len(path)]
