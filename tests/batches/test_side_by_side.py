"""Two versions side by side, from their tables."""

from pathlib import Path

from kimi_demo.batches.comparing import Places, pairs, summary
from kimi_demo.batches.finished import Finished
from kimi_demo.batches.results import Result
from kimi_demo.batches.side_by_side import SideBySide, pairs_of


def table(path: Path, answers: dict[int, str]) -> Finished:
    with path.open("ab") as file:
        file.writelines(
            Result(index=index, line=index, prompt="p", answer=text, finish_reason="stop").to_line() for index, text in answers.items()
        )
    found = Finished(path)
    found.update()
    return found


def test_it_finds_what_comparing_the_files_finds(tmp_path: Path) -> None:
    """Over more rows than are read at once, out of order, with rows that one side lacks."""
    one = table(tmp_path / "1", {index: f"answer {index % 7}" for index in range(600, -1, -1)})
    other = table(tmp_path / "2", {index: f"answer {index % 5}" for index in range(0, 900, 2)})
    slow = list(pairs(Places(one.path), Places(other.path)))
    assert list(pairs_of(one, other)) == slow
    assert [pair.index for pair in pairs_of(one, other, 255, 260)] == [255, 256, 257, 258, 259]
    sides = SideBySide()
    everything = sides.listed(one, other, None)
    assert everything.sums == summary(slow) and everything.indices == [pair.index for pair in slow]
    assert sides.listed(one, other, "same").indices == [pair.index for pair in slow if pair.agreement == "same"]
    assert sides.listed(one, other, None) is everything


def test_a_version_that_grows_is_summed_up_again(tmp_path: Path) -> None:
    one, other, sides = table(tmp_path / "1", {0: "a", 1: "b"}), table(tmp_path / "2", {0: "a"}), SideBySide()
    assert (sides.listed(one, other, None).sums.same, sides.listed(one, other, None).sums.incomparable) == (1, 1)
    table(tmp_path / "2", {1: "b"})
    other.update()
    assert sides.listed(one, other, None).sums.same == 2
    assert sides.listed(table(tmp_path / "3", {}), table(tmp_path / "4", {}), None).indices == []
