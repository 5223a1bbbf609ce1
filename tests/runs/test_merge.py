"""Joining fragments loses nothing that is derived from events."""

from hypothesis import given
from hypothesis import strategies as st

from kimi_demo.dialect.events import (
    AnswerDelta,
    BatchProgress,
    Event,
    Finished,
    RoundStarted,
    RowFinished,
    ThoughtDelta,
    Timed,
    ToolCallDelta,
    ToolResult,
    Usage,
)
from kimi_demo.dialect.reply import rounds
from kimi_demo.runs.merge import merged

TEXT = st.sampled_from(["", " ", "\n", "a", "字"])
EVENTS: st.SearchStrategy[Event] = st.one_of(
    st.builds(RoundStarted, st.just(0)),
    st.builds(ThoughtDelta, TEXT),
    st.builds(AnswerDelta, TEXT),
    st.builds(ToolCallDelta, st.integers(0, 2), st.sampled_from(["", "i"]), st.sampled_from(["", "n"]), TEXT),
    st.builds(ToolResult, st.integers(0, 2), st.just("i"), st.just("n"), st.just("r")),
    st.builds(Usage, st.integers(0, 9), final=st.booleans()),
    st.builds(Finished, st.just("stop")),
)


def timed(events: list[Event]) -> list[Timed]:
    return [Timed(float(number), event) for number, event in enumerate(events)]


@given(st.lists(EVENTS, max_size=40), st.lists(st.integers(0, 40), max_size=3))
def test_replies_and_their_clocks_are_the_same(events: list[Event], commits: list[int]) -> None:
    entries = timed([RoundStarted(0), *events])
    cuts = sorted({0, *(min(cut, len(entries)) for cut in commits), len(entries)})
    written = [item for start, end in zip(cuts, cuts[1:], strict=False) for item in merged(entries[start:end])]
    assert rounds(written) == rounds(entries)
    assert [item.at for item in written] == sorted(item.at for item in written)
    assert len(written) <= len(entries)


def test_many_fragments_become_few() -> None:
    events: list[Event] = []
    for number in range(10_000):
        events += [ThoughtDelta("x"), Usage(5, number, final=False)]
    written = merged(timed(events))
    assert [item.event for item in written] == [ThoughtDelta("x"), ThoughtDelta("x" * 9_999), Usage(5, 9_999, final=False)]
    assert [item.at for item in written] == [0.0, 19_998.0, 19_999.0]


def test_an_answers_first_visible_fragment_keeps_its_time() -> None:
    written = merged(timed([AnswerDelta("\n"), AnswerDelta(" "), AnswerDelta("a"), AnswerDelta("b"), AnswerDelta("c")]))
    assert [(item.at, item.event) for item in written] == [
        (0.0, AnswerDelta("\n")),
        (1.0, AnswerDelta(" ")),
        (2.0, AnswerDelta("a")),
        (4.0, AnswerDelta("bc")),
    ]


def test_rows_are_all_kept_and_of_progress_the_last() -> None:
    row, other = RowFinished(0, "p"), RowFinished(1, "q")
    events: list[Event] = [BatchProgress(0, 2, 0, 5), row, BatchProgress(1, 1, 0, 9), other]
    assert [item.event for item in merged(timed(events))] == [row, BatchProgress(1, 1, 0, 9), other]


def test_calls_are_joined_by_their_number() -> None:
    events: list[Event] = [
        ToolCallDelta(0, id="i", name="add"),
        ToolCallDelta(0, arguments='{"a"'),
        ToolCallDelta(0, arguments=": 1}"),
        ToolCallDelta(1, id="j", name="mul"),
    ]
    assert [item.event for item in merged(timed(events))] == [events[0], ToolCallDelta(0, arguments='{"a": 1}'), events[3]]
