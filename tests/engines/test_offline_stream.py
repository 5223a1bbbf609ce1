"""Rows that come one by one: the bookkeeping on the engine's thread, without an engine."""

from collections.abc import Mapping

from kimi_demo.dialect.failure import Failure
from kimi_demo.dialect.sampling import Sampling
from kimi_demo.engines.offline_rows import Entered, RowAsk, Standing, Written
from kimi_demo.engines.offline_stream import RowAnswer, RowStream


def stream() -> tuple[RowStream, list[tuple[int, RowAnswer | Failure]], list[Standing]]:
    sent: list[tuple[int, RowAnswer | Failure]] = []
    told: list[Standing] = []
    return RowStream(sent.extend, told.append), sent, told


def ask(text: str, *, thinking: bool = True) -> RowAsk:
    return RowAsk([{"role": "user", "content": text}], Sampling(), thinking)


def enter(rows: RowStream, request_id: str) -> int:
    index = rows.take()
    rows.entered[request_id] = Entered(index, 7, 10.0, request_id, "<prompt>")
    return index


def standing(entered: Mapping[str, Entered]) -> Standing:
    return Standing(len(entered), 3 * len(entered))


def test_rows_get_their_own_answers_and_the_stream_is_never_over_by_itself() -> None:
    rows, sent, told = stream()
    assert not rows.has_rows_left and not rows.is_over
    rows.add([(5, ask("a")), (6, ask("b", thinking=False)), (7, ask("c"))])
    assert [enter(rows, "r5"), enter(rows, "r6")] == [5, 6] and rows.has_rows_left
    assert rows.ask(6).messages == [{"role": "user", "content": "b"}]
    rows.report(standing, 11.0)
    rows.finish("r6", Written("plain", 2, "stop"), 12.0)
    rows.finish("r5", Written("so</think>42", 9, "stop"), 13.0)
    rows.reject(rows.take(), Failure("batch.prompt_too_long", tokens=9, limit=8))
    rows.report(standing, 13.0)
    assert sent[:2] == [
        (6, RowAnswer(None, "plain", "stop", 7, 2, 2.0, "<prompt>")),
        (5, RowAnswer("so", "42", "stop", 7, 9, 3.0, "<prompt>")),
    ]
    assert sent[2][0] == 7 and isinstance(sent[2][1], Failure) and len(sent) == 3
    assert told == [Standing(2, 6), Standing(0, 0)] and not rows.is_over and not rows.has_rows_left


def test_dropped_rows_are_forgotten_wherever_they_are() -> None:
    rows, sent, _ = stream()
    rows.add([(number, ask(str(number))) for number in range(5)])
    enter(rows, "r0")
    enter(rows, "r1")
    assert rows.drop({1, 3, 99}) == ["r1"] and list(rows.entered) == ["r0"]
    assert [rows.take(), rows.take()] == [2, 4] and not rows.has_rows_left
    rows.report(standing, 1.0)
    assert sent == []


def test_the_end_sends_what_is_left_and_resolves_once() -> None:
    rows, sent, _ = stream()
    rows.add([(0, ask("a"))])
    enter(rows, "r")
    rows.finish("r", Written("x", 1, "length"), 11.0)
    rows.end(Failure("batch.engine_died", reason="x"))
    rows.end()
    assert len(sent) == 1 and isinstance(rows.done.exception(timeout=0), Failure)
