"""The incremental split at `</think>` says the same as the split of the whole text, and never makes a stream wait."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kimi_demo.dialect.reply import split_thought
from kimi_demo.engines.thought_stream import ThoughtStream

TEXTS = st.lists(st.sampled_from(["</think>", "</thi", "nk>", "<", "\n", " ", "思考", "🎉", "a b", "<think", ">"]), max_size=12).map(
    "".join
)


def fed(stream: ThoughtStream, parts: list[str]) -> tuple[str, str]:
    thought = answer = ""
    for more_thought, more_answer in [*map(stream.feed, parts), stream.flush()]:
        thought, answer = thought + more_thought, answer + more_answer
    return thought, answer


def cut(text: str, at: list[int]) -> list[str]:
    edges = sorted({0, len(text), *(position % (len(text) + 1) for position in at)})
    return [text[a:b] for a, b in pairwise(edges)]


@given(text=TEXTS, at=st.lists(st.integers(0, 100), max_size=20))
def test_any_cutting_gives_the_split_of_the_whole(text: str, at: list[int]) -> None:
    if text.lstrip() != text and text.lstrip().startswith("<think>"):
        return  # whitespace before the mark: dropped here, kept there
    thought, answer = split_thought(text, thinking=True)
    assert fed(ThoughtStream(opened=True), cut(text, at)) == (thought, answer)


@given(text=TEXTS, at=st.lists(st.integers(0, 100), max_size=20))
def test_nothing_but_a_possible_mark_is_held_back(text: str, at: list[int]) -> None:
    stream, given_out, fed_in = ThoughtStream(opened=True), 0, ""
    for part in cut("x" + text, at):
        fed_in += part
        given_out += sum(map(len, stream.feed(part)))
        if not stream.closed:
            assert len(fed_in) - given_out <= len("</think>") - 1


@pytest.mark.parametrize("parts", [["a</thi", "nk>b"], ["a<", "/think>", "b"], ["a", "</think>b"], ["a</think>\n", "\n", "b"]])
def test_mark_split_over_pieces(parts: list[str]) -> None:
    stream = ThoughtStream(opened=True)
    assert fed(stream, parts) == ("a", "b")
    assert stream.closed


def test_only_the_first_mark_splits() -> None:
    assert fed(ThoughtStream(opened=True), ["a</think>b</think>c"]) == ("a", "b</think>c")


def test_a_possible_mark_that_is_none_comes_out_verbatim() -> None:
    assert fed(ThoughtStream(opened=True), ["if a </", "thin", " b"]) == ("if a </thin b", "")
    assert fed(ThoughtStream(opened=True), ["cut at </thi"]) == ("cut at </thi", "")


@pytest.mark.parametrize(
    ("text", "expected"), [("<think>a</think>b", ("a", "b")), ("a</think>b", ("", "a</think>b")), (" \n<thin", ("", " \n<thin"))]
)
def test_unopened_text_is_a_thought_only_where_it_says_so(text: str, expected: tuple[str, str]) -> None:
    assert fed(ThoughtStream(opened=False), list(text)) == expected


def test_leading_whitespace_is_kept_where_no_mark_follows() -> None:
    assert fed(ThoughtStream(opened=False), ["  ", "\tindented"]) == ("", "  \tindented")
    assert fed(ThoughtStream(opened=True), ["  ", "\tindented</think>x"]) == ("  \tindented", "x")
