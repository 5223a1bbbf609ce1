"""Rows out of files, the nasty ones too."""

import json
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest

from kimi_demo.batches.encoding import detect
from kimi_demo.batches.lines import Lines
from kimi_demo.batches.reading import Counts, Options, open_source
from kimi_demo.batches.rows import BadRow, Row
from kimi_demo.batches.survey import survey
from kimi_demo.batches.tables import unique
from kimi_demo.dialect.failure import Failure

Write = Callable[[str, str | bytes], Path]
GUIDE = "给我一个关于大模型的简短介绍。"


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def made(name: str, content: str | bytes) -> Path:
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return made


def read(path: Path, **options: Any) -> tuple[list[Row], list[BadRow]]:
    found = list(open_source(path, Options(**options)).rows())
    return [row for row in found if isinstance(row, Row)], [row for row in found if isinstance(row, BadRow)]


def asks(path: Path, **options: Any) -> list[Any]:
    rows, bad = read(path, **options)
    assert bad == [] and [row.index for row in rows] == list(range(len(rows)))
    return [row.ask for row in rows]


def codes(bad: list[BadRow]) -> list[tuple[int, str]]:
    return [(row.line, row.failure.code) for row in bad]


def refused(path: Path, **options: Any) -> Failure:
    with pytest.raises(Failure) as failed:
        list(open_source(path, Options(**options)).rows())
    return failed.value


def test_txt_has_a_prompt_a_line_with_mixed_line_ends_and_no_other_separators(write: Write) -> None:
    path = write("a.txt", "one\r\n  two \r\rthree\u2028still three\x0c\n\nfour")
    assert asks(path) == ["one", "  two ", "three\u2028still three\x0c", "four"]
    assert [row.line for row in read(path)[0]] == [1, 2, 4, 6]
    assert asks(path, keep_blank=True) == ["one", "  two ", "", "three\u2028still three\x0c", "", "four"]


def test_blanks_and_duplicates_are_counted_and_kept_or_dropped(write: Write) -> None:
    path = write("a.txt", "x\n\ny\nx\n   \nx\n")
    counts = Counts()
    rows = list(open_source(path).rows(counts))
    assert (counts.rows, counts.blank, counts.duplicates, len(rows)) == (4, 2, 2, 4)
    assert asks(path, keep_duplicates=False) == ["x", "y"]
    found = survey(open_source(path, Options(keep_blank=True)))
    assert (found.rows, found.blank, found.duplicates) == (6, 2, 2)


@pytest.mark.parametrize(
    "encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "gbk", "gb18030", "big5", "shift_jis", "euc_kr", "cp1252"]
)
def test_the_encoding_is_found(write: Write, encoding: str) -> None:
    text = {
        "big5": "請給我一個關於大型語言模型的簡短介紹。",
        "shift_jis": "大規模言語モデルについて簡単に教えてください。",
        "euc_kr": "대형 언어 모델에 대해 간단히 설명해 주세요.",
        "cp1252": "Où est le café près de la gare ? Ça va très bien.",
    }.get(encoding, GUIDE)
    assert asks(write("a.csv", f"id,prompt\r\n1,{text}\r\n2,plain\r\n".encode(encoding))) == [text, "plain"]


def test_the_first_chinese_may_come_after_megabytes_of_ascii(write: Write) -> None:
    path = write("a.txt", b"plain line\n" * 200_000 + (GUIDE + "\n").encode("gbk"))
    rows = list(open_source(path).rows())
    assert len(rows) == 200_001 and isinstance(rows[-1], Row) and rows[-1].ask == GUIDE


def test_a_given_encoding_wins_and_an_unknown_one_is_refused(write: Write) -> None:
    path = write("a.txt", "é\n".encode("cp1252"))
    assert asks(path, encoding="latin-1") == ["é"]
    assert refused(path, encoding="klingon").code == refused(path, encoding="hex").code == "batches.encoding"
    assert refused(path, encoding="idna").code == refused(path, encoding="undefined").code == "batches.encoding"


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_utf_16_may_be_chosen_for_a_file_without_a_mark(write: Write, encoding: str) -> None:
    assert asks(write("a.csv", f"id,prompt\n1,{GUIDE}\n".encode(encoding)), encoding="utf-16") == [GUIDE]


def test_a_wrong_choice_of_encoding_is_said_by_rows_and_never_breaks(write: Write) -> None:
    path = write("a.txt", b"ab\ncd\n")
    for encoding in ("utf-16", "utf-32"):
        assert len(list(open_source(path, Options(encoding=encoding)).rows())) == 1


def test_broken_bytes_are_reported_by_line_and_the_other_rows_stay(write: Write) -> None:
    rows, bad = read(write("a.txt", (GUIDE + "\n").encode() * 3 + b"half \xe4\xbd\n" + b"fine\n"))
    assert [row.ask for row in rows] == [GUIDE] * 3 + ["fine"] and codes(bad) == [(4, "batches.broken_text")]


def test_a_byte_order_mark_in_the_middle_is_no_part_of_a_prompt(write: Write) -> None:
    assert asks(write("a.txt", "\ufeffone\n\ufefftwo\n")) == ["one", "two"]
    assert asks(write("a.csv", "\ufeffprompt\none\n\ufefftwo\n")) == ["one", "two"]
    assert asks(write("a.jsonl", '\ufeff"one"\n\ufeff"two"\n')) == ["one", "two"]


@pytest.mark.parametrize(
    ("name", "content", "code"),
    [
        ("a.csv", b"PK\x03\x04\x14\x00 workbook", "batches.workbook"),
        ("a.csv", b"\xd0\xcf\x11\xe0 old workbook", "batches.workbook"),
        ("a.txt", b"\x1f\x8b\x08 packed", "batches.packed"),
        ("a.txt", b"%PDF-1.7", "batches.not_text"),
        ("a.txt", bytes(range(256)) * 8, "batches.not_text"),
        ("a.csv", b"", "batches.empty"),
        ("a.csv", b"\n\r\n  \n", "batches.empty"),
        ("a.json", b'[\n  {"prompt": "x"}\n]', "batches.json_document"),
        ("a.json", b'[{"prompt": "x"}]', "batches.json_document"),
        ("a.csv", b"a,b\n1,2\n", "batches.which_column"),
        ("a.csv", b"prompt,prompt\n1,2\n", "batches.column_twice"),
    ],
)
def test_what_cannot_be_read_as_a_whole_is_one_failure(write: Write, name: str, content: bytes, code: str) -> None:
    assert refused(write(name, content)).code == code


def test_no_file_is_a_failure(tmp_path: Path) -> None:
    assert refused(tmp_path / "none.txt").code == refused(tmp_path).code == "batches.no_file"


def test_an_empty_text_and_a_lone_header_have_no_rows(write: Write) -> None:
    assert asks(write("a.txt", "")) == asks(write("a.csv", "prompt,other\r\n")) == asks(write("a.csv", "prompt")) == []


def test_csv_cells_hold_quotes_commas_and_lines_and_columns_travel_along(write: Write) -> None:
    path = write("a.csv", 'id,Prompt,note\r\n1,"say ""hi"", please\nnow",x\r\n2,"a\r\nb"\r\n\r\n3,c,"z",,\r\n')
    rows, bad = read(path)
    assert bad == [] and [row.ask for row in rows] == ['say "hi", please\nnow', "a\r\nb", "c"]
    assert [dict(row.columns) for row in rows] == [{"id": "1", "note": "x"}, {"id": "2", "note": ""}, {"id": "3", "note": "z"}]
    assert [row.line for row in rows] == [2, 4, 7]
    assert survey(open_source(path)).columns == ("id", "note")


@pytest.mark.parametrize(
    ("content", "options"),
    [
        ("a;prompt\n1;x, y\n", {}),
        ("a\tprompt\n1\tx, y\n", {}),
        ("sep=;\na;prompt\n1;x, y\n", {}),
        ("a|prompt\n1|x, y\n", {}),
        ('"a,b";q\n1;"x, y"\n', {"column": "Q"}),
        ('a,q\n1,"x, y"\n', {"column": "2"}),
        ('1,"x, y"\n', {"header": False, "column": "2"}),
    ],
)
def test_delimiters_and_columns(write: Write, content: str, options: dict[str, Any]) -> None:
    assert asks(write("a.csv", content), **options) == ["x, y"]


def test_a_column_that_is_not_there_names_those_that_are(write: Write) -> None:
    failure = refused(write("a.csv", "a,b\n1,2\n"), column="c")
    assert (failure.code, failure.params["columns"]) == ("batches.no_column", "a, b")


def test_duplicate_and_empty_headers_get_names_of_their_own(write: Write) -> None:
    rows, _ = read(write("a.csv", "prompt,x,x,\np,1,2,3\n"))
    assert rows[0].columns == {"x": "1", "x (2)": "2", "column 4": "3"}
    assert unique(["x", "x", "x (2)", "x", "x (2)"]) == ("x", "x (2)", "x (2) (2)", "x (3)", "x (2) (3)")


def test_a_line_of_commas_is_named_quickly_and_told_in_a_few_words(write: Write) -> None:
    before = time.process_time()
    failure = refused(write("a.csv", "c" + ",c" * 100_000 + "\n"))
    assert failure.code == "batches.which_column" and len(failure.params["columns"]) < 10_000
    assert time.process_time() - before < 10  # it took minutes when each name was looked for in a list


def test_rows_with_an_unquoted_comma_or_an_open_quote_are_listed_by_line(write: Write) -> None:
    rows, bad = read(write("a.csv", 'prompt,id\nfine,1\nHello, world,2\n"multi\nline",3\n"never closed,4\nlost,5\n'))
    assert [row.ask for row in rows] == ["fine", "multi\nline"]
    assert codes(bad) == [(3, "batches.too_many_cells"), (6, "batches.quote_not_closed")]


def test_a_zero_byte_is_reported(write: Write) -> None:
    rows, bad = read(write("a.csv", "prompt\nfine\na\0b\n" + "plain text\n" * 300))
    assert rows[0].ask == "fine" and codes(bad) == [(3, "batches.nul")]


def test_a_huge_cell_is_read_and_one_over_the_limit_is_reported(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    large = "x" * 1_000_000
    assert asks(write("a.csv", f'prompt,b\n"{large}",1\n')) == [large]
    monkeypatch.setattr("kimi_demo.batches.tables.LONGEST", 1000)
    for module in ("reading", "tables"):
        monkeypatch.setattr(f"kimi_demo.batches.{module}.Lines", partial(Lines, longest=1000))
    for name, head in (("a.csv", "prompt\n"), ("a.txt", "head\n"), ("a.jsonl", '"head"\n')):
        source = open_source(write(name, f"{head}{large}\nlast\n" if name != "a.jsonl" else f'{head}{large}\n"last"\n'))
        found = list(source.rows())
        assert codes([row for row in found if isinstance(row, BadRow)]) == [(2, "batches.line_too_long")]
        assert isinstance(found[-1], Row) and found[-1].ask == "last"


def test_a_prompt_over_the_callers_limit_is_reported(write: Write) -> None:
    rows, bad = read(write("a.txt", "short\n" + "y" * 50 + "\n"), longest=40)
    assert [row.ask for row in rows] == ["short"] and codes(bad) == [(2, "batches.row_too_long")]


def test_jsonl_of_every_kind(write: Write) -> None:
    talk = [{"role": "system", "content": "s"}, {"role": "user", "content": "q"}]
    request = {"custom_id": "r1", "method": "POST", "url": "/v1/chat/completions", "body": {"model": "m", "messages": talk}}
    request["body"] |= {"max_completion_tokens": 9, "temperature": 0.1, "stop": "END", "n": 1, "seed": None}  # type: ignore[operator]
    request["body"] |= {"chat_template_kwargs": {"thinking": False}}  # type: ignore[operator]
    values: list[Any] = ["plain", {"prompt": "p", "id": 5}, {"messages": talk, "tag": {"a": [1]}}, request]
    rows, bad = read(write("a.jsonl", "\n".join(json.dumps(value) for value in values) + "\n"))
    assert bad == [] and [row.ask for row in rows] == ["plain", "p", talk, talk]
    assert rows[1].columns == {"id": 5} and rows[2].columns == {"tag": {"a": [1]}} and rows[2].prompt == "q"
    last = rows[3]
    assert (last.custom_id, last.thinking, last.changes) == ("r1", False, {"max_tokens": 9, "temperature": 0.1, "stop": ("END",)})
    assert asks(write("b.jsonl", '{"q": "x", "prompt": "y"}\n'), column="q") == ["x"]


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("{'prompt': 1}", "batches.not_json"),
        ('{"prompt": "a"', "batches.not_json"),
        ('{"prompt": "a", "x": NaN}', "batches.not_json"),
        ("[" * 100_000, "batches.not_json"),
        ("7" * 10_000, "batches.not_json"),
        ("7", "batches.json_kind"),
        ("null", "batches.json_kind"),
        ('{"text": "a"}', "batches.json_no_prompt"),
        ('{"prompt": 5}', "batches.json_prompt_kind"),
        ('{"prompt": "\\ud83d"}', "batches.broken_text"),
        ('{"messages": []}', "batches.messages_missing"),
        ('{"messages": [{"role": "wizard", "content": "x"}]}', "batches.message_role"),
        ('{"messages": [{"role": "user"}]}', "batches.message_content"),
        ('{"messages": [{"role": "user", "content": ["x"]}]}', "batches.message_content"),
        ('{"custom_id": "a", "body": {}}', "batches.messages_missing"),
        ('{"custom_id": 5, "body": {"messages": [{"role": "user", "content": "x"}]}}', "batches.request_custom_id"),
        ('{"custom_id": "a", "url": "/v1/embeddings", "body": {"input": "x"}}', "batches.request_url"),
        ('{"custom_id": "a", "body": {"messages": [{"role": "user", "content": "x"}], "tools": [{}]}}', "batches.request_field"),
        ('{"custom_id": "a", "body": {"messages": [{"role": "user", "content": "x"}], "n": 2}}', "batches.request_field"),
        ('{"custom_id": "a", "body": {"messages": [{"role": "user", "content": "x"}], "temperature": 7}}', "batches.request_value"),
    ],
)
def test_a_json_line_that_cannot_be_run_is_listed(write: Write, line: str, code: str) -> None:
    rows, bad = read(write("a.jsonl", f'"before"\n{line}\n"after"\n'))
    assert [row.ask for row in rows] == ["before", "after"] and codes(bad) == [(2, code)]


def test_json_lines_are_known_by_what_they_are(write: Write) -> None:
    assert asks(write("a.csv", '{"prompt": "x"}\n{"prompt": "y"}\n')) == ["x", "y"]
    assert asks(write("a.txt", '{"prompt": "x"}\n')) == ["x"]
    assert asks(write("a.txt", "{name} is a placeholder {here}\n")) == ["{name} is a placeholder {here}"]
    assert asks(write("a.dat", "x\n")) == ["x"]


def test_a_hundred_thousand_rows_are_read_in_little_memory(write: Write) -> None:
    content = "id,prompt,note\n" + "".join(f'{number},"What is {number}, and why?",{"n" * 100}\n' for number in range(100_000))
    path = write("a.csv", content)
    del content
    found = survey(open_source(path))
    assert found.rows == 100_000 and found.bad_rows == found.duplicates == 0 and len(found.first) == 5
    process, before = psutil.Process(), psutil.Process().memory_info().rss
    most = number = 0
    for number, _ in enumerate(open_source(path).rows(), start=1):
        if number % 1000 == 0:
            most = max(most, process.memory_info().rss)
    assert number == 100_000 and most < before + 12 * 2**20, "the file has 15 MB, its rows as objects several times that"


@pytest.mark.parametrize(
    ("encoding", "text"),
    [("gb18030", "为什么？"), ("gb18030", "id,问题\n1,请写一首诗"), ("big5", "為什麼？"), ("big5", "請寫一首詩"), ("euc_kr", "안녕하세요")],
)
def test_a_few_words_are_enough_to_tell_one_chinese_encoding_from_the_other(tmp_path: Path, encoding: str, text: str) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(text.encode(encoding))
    assert detect(path) == encoding
