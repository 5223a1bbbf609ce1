"""One parsed chunk → events: shapes that servers send, without a server."""

from typing import Any

import pytest

from kimi_demo.dialect.events import AnswerDelta, Event, Finished, ThoughtDelta, ToolCallDelta, Usage
from kimi_demo.dialect.failure import Failure
from kimi_demo.engines.chunks import USAGE_EVERY_S, ChunkReader, ContentOpens


def chunk(finish: str | None = None, usage: Any = None, **delta: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}], "usage": usage}


def events_of(chunks: list[Any], opens: ContentOpens = "answer") -> list[Event]:
    reader = ChunkReader(opens)
    return [event for one in chunks for event in reader.read(one)] + reader.end()


def text(events: list[Event], kind: type[ThoughtDelta] | type[AnswerDelta]) -> str:
    return "".join(event.text for event in events if isinstance(event, kind))


STOP = chunk("stop")


def test_reasoning_wins_over_its_old_name_and_comes_before_content() -> None:
    events = events_of([chunk(reasoning="a", reasoning_content="a", content="b"), chunk(reasoning_content="c"), STOP])
    assert events == [ThoughtDelta("a"), AnswerDelta("b"), ThoughtDelta("c"), Finished("stop")]


def test_half_a_surrogate_pair_is_shown_as_what_it_is() -> None:
    call = {"index": 0, "id": "i\ud800", "function": {"name": "add", "arguments": '{"a": "\udc00"}'}}
    events = events_of([chunk(reasoning="a\ud800"), chunk(content="b\udfff 😀"), chunk(tool_calls=[call]), STOP])
    assert text(events, ThoughtDelta) == "a\ufffd" and text(events, AnswerDelta) == "b\ufffd 😀"
    assert ToolCallDelta(0, "i\ufffd", "add", '{"a": "\ufffd"}') in events


@pytest.mark.parametrize("junk", [None, [], "x", {}, {"choices": None}, {"choices": [None]}, {"choices": [{"delta": None}]}, {"usage": []}])
def test_chunks_that_say_nothing_are_no_events(junk: Any) -> None:
    assert events_of([junk, chunk(content="a"), junk, STOP]) == [AnswerDelta("a"), Finished("stop")]


@pytest.mark.parametrize("value", [7, {"a": 1}, ["x"], None, ""])
def test_fields_of_another_type_are_no_text(value: Any) -> None:
    assert events_of([chunk(reasoning=value, content=value, tool_calls=value), STOP]) == [Finished("stop")]


def test_running_usage_is_throttled_and_the_last_is_exact() -> None:
    now = 0.0
    reader = ChunkReader(clock=lambda: now)
    told: list[Event] = []
    for i in range(100):
        now = i * 0.02
        told += reader.read(chunk(content="x", usage={"prompt_tokens": 9, "completion_tokens": i + 1}))
    running = [event for event in told if isinstance(event, Usage)]
    assert len(running) == pytest.approx(100 * 0.02 / USAGE_EVERY_S, abs=1)
    assert not any(event.final for event in running)
    reader.read(STOP)
    assert reader.end() == [Usage(9, 100, None, None, final=True), Finished("stop")]


@pytest.mark.parametrize(
    ("usage", "reasoning", "cached"),
    [
        ({"completion_tokens_details": {"reasoning_tokens": 3}, "prompt_tokens_details": {"cached_tokens": 1}}, 3, 1),
        ({"reasoning_tokens": 3, "cached_tokens": 1}, 3, 1),  # SGLang, Moonshot
        ({"completion_tokens_details": None, "prompt_tokens_details": None}, None, None),
        ({}, None, None),
    ],
)
def test_usage_shapes(usage: dict[str, Any], reasoning: int | None, cached: int | None) -> None:
    events = events_of([STOP, {"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 7} | usage}])
    assert events[-2:] == [Usage(5, 7, reasoning, cached), Finished("stop")]


def test_usage_inside_the_choice() -> None:
    last = {"choices": [{"delta": {}, "finish_reason": "stop", "usage": {"prompt_tokens": 5, "completion_tokens": 7}}]}
    assert events_of([last]) == [Usage(5, 7), Finished("stop")]


def call(index: Any = 0, id: Any = None, name: Any = None, arguments: Any = None) -> dict[str, Any]:
    return {"index": index, "id": id, "function": {"name": name, "arguments": arguments}}


def test_a_server_that_repeats_id_and_name_is_told_once() -> None:
    events = events_of([chunk(tool_calls=[call(0, "f:0", "f", part)]) for part in ('{"a"', ": 1}")] + [chunk("tool_calls")])
    assert events[:-1] == [ToolCallDelta(0, "f:0", "f", '{"a"'), ToolCallDelta(0, "", "", ": 1}")]


def test_calls_without_or_with_the_same_index_are_kept_apart() -> None:
    both = events_of([chunk(tool_calls=[call(None, "a", "f", "{}"), call(None, "b", "g", "{}")]), chunk("tool_calls")])
    assert both[:-1] == [ToolCallDelta(0, "a", "f", "{}"), ToolCallDelta(1, "b", "g", "{}")]
    turns = [
        chunk(tool_calls=[call(0, "a", "f", "{}")]),
        chunk(tool_calls=[call(0, "b", "g", "{")]),
        chunk(tool_calls=[call(0, None, None, "}")]),
    ]
    assert events_of([*turns, chunk("tool_calls")])[:-1] == [
        ToolCallDelta(0, "a", "f", "{}"),
        ToolCallDelta(1, "b", "g", "{"),
        ToolCallDelta(1, "", "", "}"),
    ]


def test_arguments_sent_as_an_object_become_json() -> None:
    events = events_of([chunk(tool_calls=[call(0, "a", "f", {"x": "é"})]), chunk("tool_calls")])
    assert events[0] == ToolCallDelta(0, "a", "f", '{"x": "é"}')


def test_unparsed_thought_is_shown_as_thought_from_the_first_chunk() -> None:
    reader = ChunkReader("thought")
    assert reader.read(chunk(content="Let me")) == [ThoughtDelta("Let me")]
    assert reader.read(chunk(content=" see</thi")) == [ThoughtDelta(" see")]
    assert reader.read(chunk(content="nk>\n\nYes")) == [AnswerDelta("Yes")]
    reader.read(STOP)
    assert reader.end() == [Finished("stop")]
    assert reader.parses is False


def test_reasoning_field_shows_that_the_server_splits() -> None:
    events = events_of([chunk(reasoning="a"), chunk(content="say </think> aloud"), STOP], "thought")
    assert events == [ThoughtDelta("a"), AnswerDelta("say </think> aloud"), Finished("stop")]


def test_counted_reasoning_shows_that_the_server_splits_an_empty_thought() -> None:
    usage = {"completion_tokens": 1, "completion_tokens_details": {"reasoning_tokens": 0}}
    events = events_of([chunk(content="", usage=usage), chunk(content="Yes", usage=usage), STOP], "thought")
    assert (text(events, ThoughtDelta), text(events, AnswerDelta)) == ("", "Yes")


def test_text_that_stops_without_ending_the_thought_is_given_as_the_answer_too() -> None:
    events = events_of([chunk(content="Yes"), chunk(content=", of course </"), STOP], "thought")
    assert text(events, AnswerDelta) == "Yes, of course </"
    assert text(events, ThoughtDelta) == "Yes, of course </"


def test_a_thought_cut_by_the_limit_is_no_answer() -> None:
    events = events_of([chunk(content="Let me see"), chunk("length")], "thought")
    assert events == [ThoughtDelta("Let me see"), Finished("length")]


def test_a_thought_that_ends_in_a_call_is_no_answer() -> None:
    events = events_of([chunk(content="I call f."), chunk(tool_calls=[call(0, "f:0", "f", "{}")]), chunk("tool_calls")], "thought")
    assert events == [ThoughtDelta("I call f."), ToolCallDelta(0, "f:0", "f", "{}"), Finished("tool_calls")]


def test_a_reply_without_a_finish_reason_broke_off_and_keeps_what_was_held_back() -> None:
    reader = ChunkReader("thought")
    reader.read(chunk(content="hm </th", usage={"prompt_tokens": 1, "completion_tokens": 2}))
    with pytest.raises(Failure) as caught:
        reader.end()
    assert caught.value.code == "endpoint.broke_off"
    assert reader.broken() == [ThoughtDelta("</th"), Usage(1, 2, final=False)]


def test_whitespace_is_verbatim() -> None:
    parts = ["  \n", "\tcode\n", "    more  ", "\r\n\n"]
    assert text(events_of([*(chunk(content=part) for part in parts), STOP]), AnswerDelta) == "".join(parts)
