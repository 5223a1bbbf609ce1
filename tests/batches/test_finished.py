"""The finished rows at hand: windows, filters, orders, search, while the file grows."""

from pathlib import Path

import pytest

from kimi_demo.batches.finished import Finished, Sight
from kimi_demo.batches.results import Result
from kimi_demo.dialect.failure import Failure


def result(index: int, answer: str = "yes", **more: object) -> Result:
    known = {
        "finish_reason": "stop",
        "reasoning": "why",
        "completion_tokens": 3,
        "finished_at": "2026-01-01T00:00:01+00:00",
        "seconds": 1.0,
    }
    return Result(index=index, line=index + 1, prompt=f"prompt {index}", answer=answer, **(known | more))  # type: ignore[arg-type]


def written(folder: Path, *results: Result) -> Finished:
    path = folder / "results.jsonl"
    with path.open("ab") as file:
        file.writelines(one.to_line() for one in results)
    table = Finished(path)
    table.update()
    return table


def indices(table: Finished, sight: Sight) -> list[int]:
    return [one.index for one in table.read(table.found(sight))]


def test_orders_and_filters(tmp_path: Path) -> None:
    table = written(
        tmp_path,
        result(3),
        result(0, error="batch.prompt_too_long", error_params={"tokens": "9", "limit": "8"}),
        result(2, answer="", finish_reason="length"),
        result(1, answer="half", finish_reason="length"),
    )
    assert indices(table, Sight()) == [3, 0, 2, 1]
    assert indices(table, Sight(order="newest")) == [1, 2, 0, 3]
    assert indices(table, Sight(order="file")) == [0, 1, 2, 3]
    assert indices(table, Sight(show="failed")) == [0]
    assert indices(table, Sight(show="cut_off", order="file")) == [1, 2]
    assert indices(table, Sight(show="in_thought")) == [2]
    assert indices(table, Sight(show="waiting")) == []
    assert table.counts() == {"all": 4, "failed": 1, "cut_off": 2, "in_thought": 1}
    assert list(table.done) == [0, 1, 2, 3]


def test_search_finds_prompt_thought_and_answer_and_rows_that_came_later(tmp_path: Path) -> None:
    table = written(tmp_path, result(0, "Die Straße"), result(1, reasoning="天空为什么是蓝色的"), result(2))
    assert indices(table, Sight(search="STRASSE")) == [0]
    assert indices(table, Sight(search=" 蓝色 ")) == [1]
    assert indices(table, Sight(search="prompt 2")) == [2]
    with table.path.open("ab") as file:
        file.write(result(5, "another strasse").to_line())
    table.update()
    assert indices(table, Sight(search="strasse", order="newest")) == [5, 0]
    for number in range(9):  # more searches than are remembered
        assert indices(table, Sight(search=f"prompt {number}")) == ([number] if number in (0, 1, 2, 5) else [])


def test_what_may_be_taken_back_is_not_taken_in(tmp_path: Path) -> None:
    table = written(tmp_path, result(0))
    settled = table.path.stat().st_size
    with table.path.open("ab") as file:
        file.write(result(1).to_line() + b'{"index": 2, "li')
    table.update(settled)
    assert len(table) == 1 and table.get(1) is None
    with table.path.open("rb+") as file:
        file.truncate(settled)
        file.seek(settled)
        file.write(result(7).to_line() + b'{"half')
    table.update()
    assert [one.index for one in table.in_file_order()] == [0, 7]
    found = table.get(7)
    assert found is not None and found.prompt == "prompt 7" and table.get(-1) is None and table.get(99) is None


def test_before_the_first_row_there_is_nothing_and_no_file(tmp_path: Path) -> None:
    table = Finished(tmp_path / "none.jsonl")
    table.update()
    assert len(table) == 0 and table.read(table.found(Sight())) == [] and list(table.in_file_order()) == []
    assert list(table.found(Sight(search="x"))) == []


def test_a_file_that_went_while_it_was_searched_is_said(tmp_path: Path) -> None:
    table = written(tmp_path, result(0))
    table.path.unlink()
    with pytest.raises(Failure, match="batches.unreadable"):
        table.found(Sight(search="yes"))
