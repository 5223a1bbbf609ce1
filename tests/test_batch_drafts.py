"""A file on its way to a batch: pieces, what it is taken for, what is said of it before anything runs."""

import asyncio
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kimi_demo.batch_drafts import Draft, columns_of
from kimi_demo.batch_engines import Counting
from kimi_demo.batches.reading import Options
from kimi_demo.dialect.failure import Failure
from kimi_demo.ui.batch_tab import _started
from tests.batch_bench import ASKED, ME, OTHER, Bench, Words


async def sent(bench: Bench, name: str, data: bytes, piece: int = 7) -> Draft:
    draft = await bench.drafts.begin(ME, name, len(data))
    for at in range(0, len(data), piece):
        await bench.drafts.add(ME, draft.token, at, data[at : at + piece])
    return draft


async def test_a_file_comes_in_pieces_and_runs_with_its_columns(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.engines.counter = Counting(Words(), limit=100)
    draft = await sent(bench, "C:\\Users\\me\\表 1.csv", "id,question\n1,为什么？\n2,why?\n".encode("gb18030"))
    checked = await bench.drafts.check(draft, Options(), engine="server", thinking=True)
    assert (draft.name, checked.source.format, checked.source.encoding, checked.found.rows) == ("表 1.csv", "csv", "gb18030", 2)
    assert [(seen.prompt, seen.tokens) for seen in checked.first] == [("<为什么？>", 1), ("<why?>", 1)]
    entry = await bench.until(await bench.batches.start(ME, draft, ASKED), "done")
    await bench.drafts.remove(ME)
    assert entry.title == "表 1.csv" and bench.drafts.of(ME) is None and not draft.path.exists()
    assert [dict(one.columns) for one in (await bench.batches.table(entry)).in_file_order()] == [{"id": "1"}, {"id": "2"}]


async def test_pieces_may_come_twice_but_not_in_the_wrong_place(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    draft = await bench.drafts.begin(ME, "a.txt", 6)
    await bench.drafts.add(ME, draft.token, 0, b"abc")
    await bench.drafts.add(ME, draft.token, 0, b"abc")  # the answer was lost: the browser sends it again
    for at, piece in ((4, b"x"), (3, b"too long")):
        with pytest.raises(Failure, match="batch_page.out_of_order"):
            await bench.drafts.add(ME, draft.token, at, piece)
    with pytest.raises(Failure, match="batch_page.unfinished"):
        await bench.drafts.check(draft, Options(), engine="server", thinking=True)
    await bench.drafts.add(ME, draft.token, 3, b"def")
    assert draft.is_whole and draft.path.read_bytes() == b"abcdef"
    for owner, token in ((OTHER, draft.token), (ME, "0" * 32)):
        with pytest.raises(Failure, match="batch_page.no_draft"):
            bench.drafts.get(owner, token)
        with pytest.raises(Failure, match="batch_page.no_draft"):
            await bench.drafts.add(owner, token, 6, b"")


async def test_another_file_takes_the_place_of_the_first(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    first = await sent(bench, "a.txt", b"one")
    second = await sent(bench, "b.txt", b"two")
    assert bench.drafts.of(ME) is second and not first.path.exists()


async def test_sizes_have_limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(tmp_path, max_batch_file_mb=1, max_batch_rows=3)
    with pytest.raises(Failure, match="batch_page.too_large"):
        await bench.drafts.begin(ME, "a.txt", 1_000_001)
    with pytest.raises(Failure, match="batches.empty"):
        await bench.drafts.begin(ME, "a.txt", 0)
    draft = await sent(bench, "a.txt", b"1\n2\n3\n4\n")
    with pytest.raises(Failure) as many:
        await bench.batches.start(ME, draft, ASKED)
    assert many.value.params == {"rows": "4", "limit": "3"}
    with pytest.raises(Failure, match="batch.too_many_rows"):
        await bench.drafts.typed(ME, "1\n2\n3\n4")
    monkeypatch.setattr("kimi_demo.batch_drafts.shutil.disk_usage", lambda place: type("Usage", (), {"free": 1000})())
    with pytest.raises(Failure, match="batches.disk_full"):
        await bench.drafts.begin(ME, "a.txt", 100_000)


@pytest.mark.parametrize(
    ("name", "data", "code"),
    [
        ("a.csv", b"a,b\n1,2\n", "batches.which_column"),
        ("a.xlsx", b"PK\x03\x04....", "batches.workbook"),
        ("a.json", b"[\n1,\n2]", "batches.json_document"),
        ("a.txt", b"\n \n", None),
    ],
)
async def test_what_cannot_be_read_is_told_by_the_files_own_name(tmp_path: Path, name: str, data: bytes, code: str | None) -> None:
    bench = Bench(tmp_path)
    draft = await sent(bench, name, data)
    with pytest.raises(Failure) as told:
        if code is None:
            await bench.batches.start(ME, draft, ASKED)
        else:
            await bench.drafts.check(draft, Options(), engine="server", thinking=True)
    assert told.value.code == (code or "batches.no_rows")
    assert str(tmp_path) not in str(told.value.params) and told.value.params.get("path", name) == name


async def test_a_table_whose_column_is_not_clear_shows_its_columns(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    draft = await sent(bench, "a.csv", b'one,"two, and a half"\n1,2\n')
    assert columns_of(draft, Options()) == ("one", "two, and a half") and columns_of(draft, Options(format="txt")) == ()
    assert columns_of(draft, Options(encoding="no such")) == ()
    checked = await bench.drafts.check(draft, Options(column="two, and a half"), engine="server", thinking=True)
    assert checked.source.column == "two, and a half" and draft.options.column == "two, and a half"


async def test_rows_that_cannot_run_are_known_by_line(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.engines.counter = Counting(Words(), limit=100)
    lines = ['"fine"', '{"no": "prompt"}', '{"prompt": "' + "word " * 150 + '"}', "not json", '"fine too"']
    draft = await sent(bench, "a.jsonl", "\n".join(lines).encode(), piece=4096)
    checked = await bench.drafts.check(draft, Options(), engine="server", thinking=True)
    assert [bad.line for bad in checked.found.bad] == [2, 4] and [bad.line for bad in checked.long] == [3] and checked.cannot_run == 3
    with pytest.raises(Failure) as refused:
        await bench.batches.start(ME, draft, ASKED)
    assert refused.value.params == {"count": "3", "line": "2"}
    entry = await bench.until(await bench.batches.start(ME, draft, replace(ASKED, skip=True)), "done")
    assert [answer for _, answer in await bench.rows(entry)] == ["You said: fine", "You said: fine too"]


async def test_three_clicks_make_one_batch(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    draft = await sent(bench, "a.txt", b"one\ntwo\n")
    services: Any = SimpleNamespace(batches=bench.batches)
    told = await asyncio.gather(*(_started(services, ME, draft.token, "", ASKED) for _ in range(3)), return_exceptions=True)
    assert [failure.code for failure in told if isinstance(failure, Failure)] == ["batch_page.draft_taken"] * 2
    (entry,) = await bench.batches.all_of(ME)
    await bench.until(entry, "done")
    assert bench.drafts.of(ME) is None


async def test_a_file_that_made_no_batch_stays(tmp_path: Path) -> None:
    bench = Bench(tmp_path, max_batch_rows=1)
    draft = await sent(bench, "a.txt", b"one\ntwo\n")
    services: Any = SimpleNamespace(batches=bench.batches)
    for _ in range(2):
        with pytest.raises(Failure, match="too_many_rows"):
            await _started(services, ME, draft.token, "", ASKED)
    assert bench.drafts.get(ME, draft.token) is draft
