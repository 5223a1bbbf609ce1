"""Markdown in mid writing: what it is completed to, and that no prefix of a text shows its marks or jumps."""

import re

import pytest

from kimi_demo.ui.half_written import half_written
from kimi_demo.ui.markup import markdown


@pytest.mark.parametrize(
    ("written", "completed"),
    [
        ("a **bo", "a **bo**"),
        ("a **bold*", "a **bold**"),
        ("a **bold** b", "a **bold** b"),
        ("a **", "a "),
        ("a *it", "a *it*"),
        ("a *it ", "a *it* "),
        ("2 * 3 * 4", "2 * 3 * 4"),
        ("* item", "* item"),
        ("a ~~ol", "a ~~ol~~"),
        ("a `co", "a `co`"),
        ("a `", "a "),
        ("a `x*y", "a `x*y`"),
        ("`**` is bold", "`**` is bold"),
        ("see [the docs](https://exa", "see the docs"),
        ("see [the docs", "see the docs"),
        ("as in [1] and", "as in [1] and"),
        ("| a", ""),
        ("Text\n-", "Text\n"),  # not a heading
        ("Text\n==", "Text\n"),
        ("Text\n#", "Text\n"),
        ("1.", ""),
        ("```py\nx = 1\n``", "```py\nx = 1\n"),
        ("```py\nx = **1", "```py\nx = **1"),
        ("```\na\n```\n**b", "```\na\n```\n**b**"),
        ("| a | b |", "| a | b |\n|---|---|"),
        ("| a | b |\n|--", "| a | b |\n|---|---|"),
        ("| a | b |\n|---|---|\n| 1", "| a | b |\n|---|---|\n| 1"),
        ("so $$\\frac{a_1}{b", "so `` $$\\frac{a_1}{b ``"),
        ("so \\(a_1", "so `` \\(a_1 ``"),
        ("so $$x$$ it", "so $$x$$ it"),
        ("first *open\n\nsecond **b", "first *open\n\nsecond **b**"),
    ],
)
def test_what_is_open_is_closed(written: str, completed: str) -> None:
    assert half_written(written) == completed


WHOLE = [
    "A **bold** and *italic* and `code` and ~~old~~ word.",
    "Text\n\n- one **two**\n- three\n  - four",
    "| name | value |\n|---|---|\n| **a** | `1` |\n| b | 2 |",
    "Look at [the page](https://example.org/a_b) now.",
]


@pytest.mark.parametrize("whole", WHOLE)
def test_no_prefix_shows_its_marks(whole: str) -> None:
    for end in range(1, len(whole) + 1):
        shown = re.sub(r"<[^>]*>", "", markdown(half_written(whole[:end])))
        assert not re.search(r"[*`~|\[\]]|--|https", shown), (whole[:end], shown)


def test_a_heading_never_comes_and_goes() -> None:
    whole = "A paragraph\n- with a list\n- below"
    assert all("<h2>" not in markdown(half_written(whole[:end])) for end in range(1, len(whole) + 1))
