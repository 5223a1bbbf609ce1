from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from kimi_demo.engines.server_log import Lines, Logbook


def test_carriage_returns_end_lines_and_empty_ones_are_left_out() -> None:
    lines = Lines()
    assert lines.feed(b"one\n\n\r\n  0%|   | 0/2\r 50%|#  | 1/2") == ["one", "  0%|   | 0/2"]
    assert lines.rest == " 50%|#  | 1/2"
    assert lines.feed(b"\rtwo", last=True) == [" 50%|#  | 1/2", "two"]


@given(st.binary(), st.lists(st.integers(min_value=0)))
def test_however_the_bytes_arrive_the_lines_are_the_same(data: bytes, cuts: list[int]) -> None:
    whole = Lines().feed(data, last=True)
    at = sorted({cut % (len(data) + 1) for cut in cuts} | {0, len(data)})
    lines, found = Lines(), []
    for start, end in zip(at, at[1:], strict=False):
        found += lines.feed(data[start:end])
    assert found + lines.feed(b"", last=True) == whole


def test_a_line_without_end_is_cut() -> None:
    lines = Lines()
    assert [len(line) for line in lines.feed(b"x" * 20_000)] == [8192, 8192, 3616]
    assert lines.rest == ""


def test_the_last_lines_are_in_memory_and_all_in_the_file(tmp_path: Path) -> None:
    book = Logbook(tmp_path / "logs" / "a.log")
    for number in range(2500):
        book.write(f"line {number} 思考")
    assert book.tail(2) == ["line 2498 思考", "line 2499 思考"]
    assert len(book.tail(10_000)) == 2000 and book.tail(0) == []
    book.close()
    assert len((tmp_path / "logs" / "a.log").read_text(encoding="utf-8").splitlines()) == 2500


def test_the_file_is_bounded_and_the_start_before_is_kept(tmp_path: Path) -> None:
    file = tmp_path / "a.log"
    first = Logbook(file)
    first.write("of the first start")
    first.close()
    second = Logbook(file)
    second.write("of the second")
    assert file.read_text() == "of the second\n" and (tmp_path / "a.log.1").read_text() == "of the first start\n"
    for _ in range(12_000):
        second.write("x" * 1000)
    second.close()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.log", "a.log.1"]
    assert all(path.stat().st_size <= 4 * 2**20 for path in tmp_path.iterdir())


def test_a_folder_that_cannot_be_written_costs_only_the_file(tmp_path: Path) -> None:
    (tmp_path / "logs").write_text("a file where the folder should be")
    book = Logbook(tmp_path / "logs" / "a.log")
    book.write("still here")
    assert book.tail(1) == ["still here"]
    book.close()


def test_a_full_disk_is_not_an_error() -> None:
    book = Logbook(Path("/dev/full"))
    book.write("still here")
    assert book.tail(1) == ["still here"]
    book.close()
