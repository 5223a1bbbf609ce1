"""The limits' own arithmetic: who goes next, how soon again, what is left today, what a run cost, who is there."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kimi_demo.dialect.events import AnswerDelta, Attempt, Event, RoundStarted, ThoughtDelta, Timed, Usage
from kimi_demo.dialect.failure import Failure
from kimi_demo.limits.line import Line
from kimi_demo.limits.pace import Pace
from kimi_demo.limits.presence import Presence
from kimi_demo.limits.purse import Purses, until_tomorrow
from kimi_demo.limits.rules import Rules, Wanted
from kimi_demo.limits.spent import about, spent

NOON = datetime(2026, 12, 1, 12, 0, tzinfo=UTC)


def test_who_brings_ten_does_not_hold_up_who_brings_one() -> None:
    line = Line(most=2, most_each=2, most_waiting=20, most_waiting_each=20)
    for number in range(10):
        line.join(f"a{number}", "ann")
    line.join("b0", "bob")
    line.join("c0", "cid")
    assert [line.place(id) for id in ("a0", "a1")] == [0, 0]
    assert [line.place(id) for id in ("b0", "c0", "a2", "a3")] == [1, 2, 3, 4]
    line.leave("a0")
    assert line.place("b0") == 0 and line.place("c0") == 1
    line.leave("a1")
    assert line.place("c0") == 0 and line.going == 2 and line.waiting == 8


def test_a_visitor_has_only_so_many_places_and_may_keep_only_so_many_waiting() -> None:
    line = Line(most=3, most_each=1, most_waiting=3, most_waiting_each=1)
    line.join("a0", "ann")
    assert line.has_room("ann")
    line.join("a1", "ann")
    assert line.place("a1") == 1 and line.going == 1  # two places are free, but not for her
    assert not line.has_room("ann") and line.has_room("bob")
    line.join("b0", "bob")
    assert line.place("b0") == 0
    line.leave("a0")
    assert line.place("a1") == 0


def test_the_line_has_an_end() -> None:
    line = Line(most=1, most_each=1, most_waiting=1, most_waiting_each=1)
    line.join("a", "ann")
    line.join("b", "bob")
    assert not line.has_room("cid")
    line.leave("b")
    assert line.has_room("cid")


@given(st.lists(st.tuples(st.sampled_from("join leave".split()), st.integers(0, 4), st.integers(0, 9)), max_size=60))
def test_no_place_is_lost_and_none_given_twice(steps: list[tuple[str, int, int]]) -> None:
    line = Line(most=3, most_each=2, most_waiting=99, most_waiting_each=99)
    there: dict[str, str] = {}
    for step, who, number in steps:
        id = f"{who}-{number}"
        if step == "leave":
            line.leave(id)
            there.pop(id, None)
        elif id not in there:
            line.join(id, str(who))
            there[id] = str(who)
        going = [id for id in there if line.place(id) == 0]
        waiting = sorted(line.place(id) for id in there if line.place(id))
        assert len(going) == line.going <= 3 and waiting == list(range(1, len(waiting) + 1))
        for each in set(there.values()):
            own = sum(there[id] == each for id in going)
            assert own <= 2
            # A place is free only where everybody who waits has as many as they may.
            assert line.going == 3 or own == 2 or not any(there[id] == each for id in there if line.place(id))


def test_so_many_a_minute_and_when_again() -> None:
    pace = Pace(2)
    assert pace.wait_s("ann", 100.0) == 0
    pace.note("ann", 100.0)
    pace.note("ann", 130.0)
    assert pace.wait_s("ann", 131.0) == 29.0 and pace.wait_s("bob", 131.0) == 0
    assert pace.wait_s("ann", 160.0) == 0


def test_what_runs_is_held_back_and_what_it_cost_is_spent() -> None:
    purses = Purses(each=100, all=150)
    purses.hold("1", "ann", 80)
    assert purses.left("ann", NOON) == 20 and purses.left_of_all(NOON) == 70 and purses.left("bob", NOON) == 100
    purses.settle("1", 30, NOON)
    purses.settle("1", 30, NOON)  # told twice, spent once
    assert purses.left("ann", NOON) == 70 and purses.left_of_all(NOON) == 120
    again = Purses(each=100, all=150)
    again.load(purses.dump())
    assert again.left("ann", NOON) == 70
    assert again.left("ann", NOON + timedelta(days=1)) == 100
    assert until_tomorrow(NOON) == timedelta(hours=12)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"day": 1, "spent": []}', '{"spent": {"a": "x"}, "day": ""}'])
def test_a_file_that_cannot_be_read_is_nothing_spent(text: str) -> None:
    purses = Purses(each=100, all=150)
    purses.load(text)
    assert purses.left("ann", NOON) == 100


def timed(*events: Event) -> list[Timed]:
    return [Timed(0.0, event) for event in events]


def test_what_a_run_cost() -> None:
    asked = RoundStarted(0, request={"messages": [{"role": "user", "content": "hello"}]})
    counted = Usage(prompt_tokens=10, completion_tokens=7)
    assert spent(timed(asked, ThoughtDelta("a"), AnswerDelta("b"), counted)) == 17
    assert spent(timed(asked, counted, asked, counted)) == 34
    stopped = spent(timed(asked, *[ThoughtDelta("a")] * 50))
    assert 50 < stopped < 80  # the server did not say: what came is counted, and the prompt by its length
    assert spent(timed(Attempt(0, tokens=40), Attempt(1, tokens=None))) == 40
    assert about("a" * 30) == 10 and about("深度学习") == 4 and spent([]) == 0


@pytest.mark.parametrize(
    ("wanted", "code"),
    [(Wanted("x", 101), "limits.max_tokens"), (Wanted("x" * 11, 5), "limits.prompt"), (Wanted("x", 5, images=2), "limits.images")],
)
def test_what_one_thing_may_ask_for(wanted: Wanted, code: str) -> None:
    rules = Rules(max_tokens=100, prompt_chars=10, images=1, rows=5, rounds=3, repeats=2)
    rules.check(Wanted("x" * 10, 100, images=1))
    with pytest.raises(Failure) as refused:
        rules.check(wanted)
    assert refused.value.code == code


def test_a_refresh_is_not_a_departure() -> None:
    presence = Presence()
    presence.enter("ann", 0.0)
    assert presence.away_s("ann", 500.0) == 0
    presence.leave("ann", 500.0)
    assert presence.away_s("ann", 503.0) == 3.0
    presence.enter("ann", 504.0)
    presence.enter("ann", 505.0)
    presence.leave("ann", 506.0)
    assert presence.away_s("ann", 900.0) == 0
    assert presence.away_s("bob", 900.0) == 0 and presence.away_s("bob", 910.0) == 10.0
    presence.forget(905.0)
    assert presence.away_s("ann", 950.0) == 0
