from pathlib import Path

import pytest

from kimi_demo.engines.log_lines import Line, parse
from kimi_demo.engines.masking import Mask
from kimi_demo.engines.server_log import Logbook, whole_log

RUN = "0123456789abcdef0123456789abcde0"


@pytest.mark.parametrize(
    ("raw", "line"),
    [
        (
            "(APIServer pid=20149) WARNING 11-30 19:46:27 [core_client.py:817] [shutdown] engine core exited",
            Line(1, "warning", "[core_client.py:817] [shutdown] engine core exited", "APIServer", "11-30 19:46:27"),
        ),
        (
            f"(APIServer pid=9) INFO 11-30 19:46:23 [async_llm.py:578] Added request chatcmpl-{RUN}-3-b34f791d.",
            Line(1, "info", f"[async_llm.py:578] Added request chatcmpl-{RUN}-3-b34f791d.", "APIServer", "11-30 19:46:23", RUN),
        ),
        ('INFO:     127.0.0.1:1 - "POST /v1/x HTTP/1.1" 500', Line(1, "info", '127.0.0.1:1 - "POST /v1/x HTTP/1.1" 500')),
        ("ValueError: too long", Line(1, "error", "ValueError: too long")),
        ("Traceback (most recent call last):", Line(1, "error", "Traceback (most recent call last):")),
        ("/x.py:24: DeprecationWarning: old", Line(1, "warning", "/x.py:24: DeprecationWarning: old")),
        ("(EngineCore_DP0 pid=3) loose", Line(1, "info", "loose", "EngineCore_DP0")),
    ],
)
def test_a_line_is_taken_apart(raw: str, line: Line) -> None:
    assert parse(1, raw) == line


def test_the_rest_of_a_stack_trace_has_its_level() -> None:
    assert parse(2, '  File "x.py", line 1', "error").level == "error"
    assert parse(3, "    indented words", "error").level == "error"
    assert parse(4, "something else", "error").level == "info"


def test_lines_are_numbered_and_given_from_where_one_is(tmp_path: Path) -> None:
    book = Logbook(tmp_path / "a.log", Mask(["a-secret-key"]))
    for number in range(2500):
        book.write(f"line {number} a-secret-key")
    assert [line.number for line in book.since(2498)] == [2499, 2500] and book.since(2500) == []
    kept = book.since(0)
    assert len(kept) == 2000 and kept[0].number == 501 and len(book.since(400)) == 2000
    book.close()
    assert "a-secret-key" not in (tmp_path / "a.log").read_text() + " ".join(book.tail(3)) + kept[0].text


def test_the_whole_log_is_the_start_before_and_this_one(tmp_path: Path) -> None:
    assert whole_log(tmp_path / "a.log") == []
    for words in ("first", "second"):
        book = Logbook(tmp_path / "a.log")
        book.write(words)
        book.close()
    assert [path.read_text() for path in whole_log(tmp_path / "a.log")] == ["first\n", "second\n"]
