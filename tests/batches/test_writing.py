"""Results in every format: readable again, right in a spreadsheet, and not executed by it."""

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from kimi_demo.batches.reading import open_source
from kimi_demo.batches.results import Result, from_line, read_results
from kimi_demo.batches.rows import Row
from kimi_demo.batches.writing import ENDINGS, LONGEST_CELL, OutFormat, cell, written

NASTY = [
    Result(0, 2, "给我一个简短介绍。", answer='他说："你好，\n世界"', reasoning="想一想", columns={"id": "1", "answer": "expected"}),
    Result(1, 3, '=HYPERLINK("http://x","y")', answer="-1+1|cmd", finish_reason="stop", columns={"id": "@SUM(A1)", "answer": ""}),
    Result(2, 5, "a,b;c\td", answer="", error="batch.row_rejected", error_params={"reason": "why"}, columns={"id": None}),
    Result(3, 6, "long", answer="x" * 40_000, finish_reason="length", columns={"id": 7, "answer": {"a": [1]}}),
]


def sentence(code: str, params: dict[str, str]) -> str:
    return f"{code}: {params['reason']}"


def text(form: OutFormat, results: list[Result] = NASTY) -> str:
    return "".join(written(results, form, ("id", "answer"), sentence))


def test_json_lines_hold_everything() -> None:
    assert [from_line(line.encode()) for line in text("jsonl").splitlines(keepends=True)] == NASTY


@pytest.mark.parametrize(("form", "delimiter"), [("csv", ","), ("tsv", "\t")])
def test_tables_open_right_in_excel(form: OutFormat, delimiter: str) -> None:
    table = text(form)
    assert table.startswith("\ufeff") and "\r\n" in table and "\0" not in table
    header, *rows = csv.reader(io.StringIO(table[1:], newline=""), delimiter=delimiter)
    assert header[:5] == ["id", "answer (input)", "prompt", "reasoning", "answer"] and len(rows) == 4
    found = [dict(zip(header, row, strict=True)) for row in rows]
    assert found[0]["prompt"] == "给我一个简短介绍。" and found[0]["answer"] == '他说："你好，\n世界"'
    assert found[0]["answer (input)"] == "expected" and found[3]["answer (input)"] == '{"a": [1]}' and found[3]["id"] == "7"
    assert found[2]["error"] == "batch.row_rejected: why" and found[2]["id"] == ""
    assert len(found[3]["answer"]) == LONGEST_CELL and found[3]["answer"].endswith("[…]")


@pytest.mark.parametrize("value", ["=1+1", "+1", "-1+1", "@SUM(A1)", "\t=1", "\r=1", " =1", "＝1+1", "＋1", "－1", "＠x"])
def test_no_cell_is_a_formula(value: str) -> None:
    """Through the whole writer, in every column that carries text."""
    for result in (Result(0, 1, value, columns={"id": value}), Result(0, 1, "x", answer=value, reasoning=value, model=value)):
        for form, delimiter in (("csv", ","), ("tsv", "\t")):
            table = text(form, [result])  # type: ignore[arg-type]
            for row in csv.reader(io.StringIO(table[1:], newline=""), delimiter=delimiter):
                assert not [one for one in row if one.strip(" ").startswith(("=", "+", "-", "@", "\t", "\r", "＝", "＋", "－", "＠"))]


def test_cells_keep_what_is_harmless_and_numbers_stay_numbers() -> None:
    assert [cell(value) for value in (None, True, -5, 0.25, "a\r\nb\rc", "x\x00\x0by", "a=b", "half \ud83d")] == [
        "", "true", "-5", "0.25", "a\nb\nc", "xy", "a=b", "half ?",
    ]  # fmt: skip


def test_openai_batch_output() -> None:
    one = Result(5, 9, "q", "req-1", reasoning="why", answer="a", finish_reason="stop", prompt_tokens=3, completion_tokens=4)
    good, bad = (json.loads(line) for line in text("openai", [one, NASTY[2]]).splitlines())
    assert (good["custom_id"], good["error"], good["response"]["status_code"]) == ("req-1", None, 200)
    body = good["response"]["body"]
    assert body["object"] == "chat.completion" and body["usage"]["total_tokens"] == 7
    assert body["choices"][0]["message"] == {"role": "assistant", "content": "a", "reasoning": "why"}
    assert (bad["custom_id"], bad["response"]["status_code"]) == ("line-5", 400)
    assert bad["response"]["body"]["error"]["message"] == "batch.row_rejected: why"


def test_the_guides_own_text() -> None:
    rows = [
        Result(0, 1, "q", rendered_prompt="<|im_user|>q<think>", reasoning="t", answer="a\nb", finish_reason="stop"),
        Result(1, 2, "q", answer="plain"),
        Result(2, 3, "q", rendered_prompt="<q>", reasoning="cut", answer="", finish_reason="length"),
        NASTY[2],
    ]
    assert text("raw", rows).splitlines() == [
        "Prompt: '<|im_user|>q<think>', Response: 't</think>a\\nb'",
        "Prompt: 'q', Response: 'plain'",
        "Prompt: '<q>', Response: 'cut'",
        "Prompt: 'a,b;c\\td', Error: batch.row_rejected: why",
    ]


@pytest.mark.parametrize("form", ["csv", "tsv", "jsonl"])
def test_what_is_written_can_be_read_as_a_batch_again(tmp_path: Path, form: OutFormat) -> None:
    path = tmp_path / f"again{ENDINGS[form]}"
    path.write_text(text(form), encoding="utf-8", newline="")
    rows = list(open_source(path).rows())
    assert all(isinstance(row, Row) for row in rows)
    assert [row.ask.lstrip("'") for row in rows if isinstance(row, Row) and isinstance(row.ask, str)] == [one.prompt for one in NASTY]


def test_a_growing_file_can_be_taken_out_at_any_time(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    whole = b"".join(result.to_line() for result in NASTY)
    count: Callable[[], int] = lambda: sum(1 for _ in written(read_results(path), "csv", (), sentence)) - 1  # noqa: E731
    for size, expected in ((0, 0), (10, 0), (len(NASTY[0].to_line()), 1), (len(whole) - 1, 3), (len(whole), 4)):
        path.write_bytes(whole[:size])
        assert count() == expected
