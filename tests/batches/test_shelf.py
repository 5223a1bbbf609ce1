"""Batches on disk: what is kept, what a start makes of an application that died, what is nobody's business."""

from pathlib import Path

import pytest

from kimi_demo.batches.indices import Indices
from kimi_demo.batches.shelf import Entry, Shelf, input_name, lineage
from kimi_demo.dialect.failure import Failure
from kimi_demo.dialect.sampling import Sampling

ME, OTHER = "a" * 32, "b" * 32


def entry(owner: str = ME, **more: object) -> Entry:
    known = {"title": "t", "input": "input.txt", "engine": "server", "preset": "tools", "sampling": Sampling(), "thinking": True, "rows": 2}
    return Entry(owner=owner, **(known | more))


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    return Shelf(tmp_path / "batches")


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "given.txt"
    path.write_text("one\ntwo\n")
    return path


def test_a_batch_is_kept_with_its_file_and_its_rows(shelf: Shelf, source: Path) -> None:
    made = entry(options={"column": None, "keep_blank": True}, title="<b>名</b>")
    shelf.add(made, source, Indices([1]))
    source.unlink()
    (kept,) = shelf.entries(ME)
    assert kept == made and shelf.entries(OTHER) == []
    wanted = shelf.wanted(kept)
    assert wanted is not None and list(wanted) == [1]
    assert [row.prompt for row in shelf.source(kept).rows()] == ["one", "two"]  # type: ignore[union-attr]
    shelf.remove(kept)
    assert shelf.entries(ME) == []


def test_a_start_finds_what_was_going_interrupted_and_sweeps_what_is_no_batch(shelf: Shelf, source: Path) -> None:
    states = ("queued", "running", "paused", "done", "stopped", "failed")
    made = [entry(state=state) for state in states]
    for one in made:
        shelf.add(one, source)
    half = shelf.place(ME, "c" * 32)
    half.mkdir()
    (half / "input.csv").write_text("an upload that nobody ran")
    line = b'{"index": 0, "line": 1, "prompt": "one", "finish_reason": "length"}\n'
    shelf.results(made[1]).write_bytes(line + b'{"index": 1, "torn')
    shelf.results(made[2]).write_bytes(b"no result\n")
    damaged = shelf.place(ME, made[-1].id) / "batch.json"
    damaged.write_text("{}")
    shelf.recover()
    entries = shelf.entries(ME)
    found = {one.id: one.state for one in entries}
    assert [found.get(one.id) for one in made] == ["interrupted", "interrupted", "interrupted", "done", "stopped", None]
    assert {one.id: (one.done, one.cut_off) for one in entries}[made[1].id] == (1, 1), "as the journal says, not the card"
    assert not half.exists() and damaged.exists(), "what cannot be read may still hold results"


@pytest.mark.parametrize("name", ["..", "../" + "a" * 32, "A" * 32, "a" * 31, "", "a" * 32 + "/x"])
def test_nothing_else_is_the_name_of_a_batch(shelf: Shelf, name: str) -> None:
    with pytest.raises(Failure, match="batch_page.unknown"):
        shelf.place(ME, name)
    with pytest.raises(Failure, match="batch_page.unknown"):
        shelf.place(name, ME)


def test_a_card_in_another_owners_folder_is_not_theirs(shelf: Shelf, source: Path) -> None:
    made = entry()
    shelf.add(made, source)
    (shelf.folder / OTHER).mkdir()
    shelf.place(ME, made.id).rename(shelf.folder / OTHER / made.id)
    assert shelf.entries(OTHER) == []


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("a.CSV", "input.csv"),
        ("../../etc/passwd", "input.txt"),
        ("x.jsonl", "input.jsonl"),
        ("x.jsonl/../y.exe", "input.txt"),
        ("\0.tsv", "input.tsv"),
    ],
)
def test_of_a_name_only_a_known_ending_is_kept(given: str, kept: str) -> None:
    assert input_name(given) == kept


def test_versions_in_order() -> None:
    first = entry()
    first = first.changed(root=first.id)
    third, second, stranger = entry(root=first.id, version=3), entry(root=first.id, version=2), entry()
    assert [one.version for one in lineage([third, stranger, first, second], third)] == [1, 2, 3]


def test_a_full_disk_leaves_no_half_batch(shelf: Shelf, source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: Shelf, entry: Entry) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Shelf, "save", full)
    made = entry()
    with pytest.raises(Failure, match="batches.disk_full"):
        shelf.add(made, source)
    assert not shelf.place(ME, made.id).exists()
