"""The figures under a reply: exact where the server counted, marked where it did not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kimi_demo.dialect.events import AnswerDelta, CarriedOver, Event, Finished, RoundStarted, ThoughtDelta, Timed, ToolCallDelta, Usage
from kimi_demo.dialect.reply import Reply, rounds
from kimi_demo.ui.texts import texts
from kimi_demo.ui.view.numbers import Count, estimated_tokens, figures, numbers


def reply(*events: Event, every: float = 1.0) -> Reply:
    """A round whose events come `every` seconds apart, its request at 0."""
    return rounds(Timed(number * every, event) for number, event in enumerate((RoundStarted(0, {"model": "/models/Kimi-K2.5"}), *events)))[
        0
    ]


def test_thought_and_answer_have_their_own_counts_and_speeds() -> None:
    found = figures(reply(ThoughtDelta("a"), ThoughtDelta("b"), AnswerDelta("c"), AnswerDelta("d"), Usage(10, 50, 30, 8), Finished("stop")))
    assert (found.prompt, found.cached, found.finish, found.model) == (10, 8, "stop", "/models/Kimi-K2.5")
    # The thought's tokens 1 to 30 came between 1 s and 2 s, the answer's twenty between 2 s and 4 s.
    assert found.thought == Count(30, True, 29.0) and found.answer == Count(20, True, 10.0)
    assert (found.first_token_s, found.first_answer_s) == (1.0, 3.0)


def test_without_reasoning_tokens_the_known_sum_is_shared_out_and_marked() -> None:
    found = figures(reply(ThoughtDelta("word " * 16), AnswerDelta("word " * 8), Usage(10, 90), Finished("stop")))
    assert found.thought is not None and found.answer is not None
    assert (found.thought.tokens, found.answer.tokens) == (60, 30) and not found.thought.exact and not found.answer.exact


@pytest.mark.parametrize("event", [ThoughtDelta("hm"), AnswerDelta("hm"), ToolCallDelta(0, "id", "add", "{}")])
def test_a_count_that_belongs_to_one_part_alone_is_exact(event: Event) -> None:
    found = figures(reply(event, Usage(10, 5), Finished("length")))
    part = found.thought if isinstance(event, ThoughtDelta) else found.answer
    assert part is not None and (part.tokens, part.exact) == (5, True)


def test_without_usage_everything_is_marked_as_about() -> None:
    words = numbers(reply(ThoughtDelta("word " * 20), AnswerDelta("word " * 20), Finished("stop")), texts("en"))
    assert words[:2] == ["thought about 25 tokens", "answer about 25 tokens at about 25.0/s"]
    assert not any("tokens in" in word for word in words)


def test_what_an_earlier_reply_had_written_is_not_counted_again() -> None:
    found = figures(reply(CarriedOver("r", "word " * 100, "word " * 100), AnswerDelta("more"), Usage(300, 7, 0), Finished("stop")))
    assert found.thought is None and found.answer is not None and found.answer.tokens == 7


def test_a_speed_over_too_short_a_time_is_not_told() -> None:
    found = figures(reply(AnswerDelta("a"), AnswerDelta("b"), Usage(1, 500), every=0.04))
    assert found.answer == Count(500, True, None)


def test_nothing_is_said_of_a_reply_that_never_began() -> None:
    assert numbers(reply(), texts("en")) == ["Kimi-K2.5"]


@pytest.mark.parametrize(("text", "tokens"), [("", 0), ("a", 1), ("word " * 8, 10), ("什么是大模型？", 5)])
def test_estimates(text: str, tokens: int) -> None:
    assert estimated_tokens(text) == tokens


COUNTS = st.none() | st.integers(0, 10_000)


@given(st.text(max_size=30), st.text(max_size=30), COUNTS, COUNTS, st.floats(0, 100))
def test_no_count_is_negative_and_the_sum_is_the_servers(
    thought: str, answer: str, completion: int | None, reasoning: int | None, every: float
) -> None:
    found = figures(reply(ThoughtDelta(thought), AnswerDelta(answer), Usage(1, completion, reasoning), every=every))
    told = [count for count in (found.thought, found.answer) if count is not None]
    assert all(count.tokens > 0 and (count.per_second is None or count.per_second > 0) for count in told)
    if completion is not None and reasoning is None and thought and answer:
        assert sum(count.tokens for count in told) == completion
