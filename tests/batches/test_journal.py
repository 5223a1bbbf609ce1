"""The results file as a journal: what is told is on disk; a resume gives exactly the missing rows, or refuses."""

import errno
import json
import os
import resource
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from kimi_demo.batches.indices import Indices
from kimi_demo.batches.journal import Journal, standing
from kimi_demo.batches.manifest import Manifest, read_manifest, sidecar
from kimi_demo.batches.results import Result, from_line, read_results
from kimi_demo.dialect.failure import Failure
from tests.batches.scripted_engine import manifest, prompts
from tests.programs import ROOT


@pytest.fixture
def made(tmp_path: Path) -> Manifest:
    return manifest(prompts(tmp_path, 10))


def row(made: Manifest, index: int, answer: str = "a") -> Result:
    return Result(index, index + 1, f"prompt {index}", answer=answer, run=made.fingerprint, completion_tokens=3, prompt_tokens=2)


def refused(path: Path, made: Manifest, *, resume: bool = True) -> Failure:
    with pytest.raises(Failure) as failed:
        Journal.resume(path, made) if resume else Journal.create(path, made)
    return failed.value


def filled(path: Path, made: Manifest, *indices: int) -> Path:
    with Journal.create(path, made) as journal:
        journal.append([row(made, index) for index in indices])
    return path


def test_indices_are_a_set() -> None:
    some = Indices([5, 0, 70_000, 5])
    assert len(some) == 3 and 70_000 in some and 1 not in some and 10**9 not in some and list(some) == [0, 5, 70_000]
    assert some.add(1) and not some.add(1)


def test_results_survive_a_round_trip() -> None:
    whole = Result(3, 7, "问\n\u2028\x00", "id", [{"role": "user", "content": "x"}], "<x>", "why", "答 \ud83d", "stop", 1, 2, 3, 0.5)
    whole = replace(whole, columns={"n": [1, None], "=x": "y"}, parameters={"stop": ["a"]}, error_params={"a": "b"})
    line = whole.to_line()
    assert line.count(b"\n") == 1 and from_line(line) == whole
    assert from_line(line[:-2] + b', "of a later version": 1}\n') == whole
    for wrong in (b"{}", b"7", b'{"index": -1, "line": 1, "prompt": ""}', b'{"index": 1}', b'{"index": true}', b"\xff"):
        with pytest.raises(ValueError):
            from_line(wrong)


def test_a_finished_row_is_on_disk_when_append_returns(tmp_path: Path, made: Manifest, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []
    path = tmp_path / "out.jsonl"
    with Journal.create(path, made) as journal:
        monkeypatch.setattr(os, "fsync", lambda descriptor: synced.append(path.stat().st_size))
        journal.append([row(made, 4), row(made, 2)])
        assert synced == [path.stat().st_size] and synced[0] > 0
        assert list(journal.done) == [2, 4] and (journal.prompt_tokens, journal.completion_tokens) == (4, 6)
    assert [result.index for result in read_results(path)] == [4, 2]


def test_an_existing_file_is_not_overwritten(tmp_path: Path, made: Manifest) -> None:
    path = filled(tmp_path / "out.jsonl", made, 1)
    before = path.read_bytes()
    assert refused(path, made, resume=False).code == "batches.exists" and path.read_bytes() == before


def test_two_processes_do_not_write_into_one_file(tmp_path: Path, made: Manifest) -> None:
    with Journal.create(tmp_path / "out.jsonl", made):
        assert refused(tmp_path / "out.jsonl", made).code == "batches.in_use"
    Journal.resume(tmp_path / "out.jsonl", made).close()


def test_a_resume_knows_what_is_done_and_begins_anew_where_nothing_is(tmp_path: Path, made: Manifest) -> None:
    with Journal.resume(tmp_path / "out.jsonl", made) as journal:
        assert len(journal.done) == 0
        journal.append([replace(row(made, 3), error="batch.row_rejected"), replace(row(made, 0), finish_reason="length")])
    with Journal.resume(tmp_path / "out.jsonl", made) as journal:
        assert list(journal.done) == [0, 3] and (journal.failed, journal.cut_off, journal.repaired) == (1, 1, 0)
        journal.append([row(made, 1)])
    found, done = standing(tmp_path / "out.jsonl")
    assert found.fingerprint == made.fingerprint and list(done) == [0, 1, 3]


@pytest.mark.parametrize("cut", [1, 2, 30, -1])
def test_a_torn_last_line_is_repaired_and_its_row_is_missing(tmp_path: Path, made: Manifest, cut: int) -> None:
    path = filled(tmp_path / "out.jsonl", made, 0, 1, 2)
    data = path.read_bytes()
    last = len(data.splitlines(keepends=True)[-1])
    path.write_bytes(data[: len(data) - (cut if cut > 0 else last - 1)])
    assert [result.index for result in read_results(path)] == [0, 1], "readers do without it as well"
    assert list(standing(path)[1]) in ([0, 1], [0, 1, 2])
    with Journal.resume(path, made) as journal:
        assert list(journal.done) == [0, 1] and journal.repaired == last - (cut if cut > 0 else last - 1)
        journal.append([row(made, 2)])
    assert [result.index for result in read_results(path)] == [0, 1, 2]


def test_zeros_after_a_power_cut_are_a_torn_line_too(tmp_path: Path, made: Manifest) -> None:
    path = filled(tmp_path / "out.jsonl", made, 0)
    with path.open("ab") as file:
        file.write(bytes(4096))
    with Journal.resume(path, made) as journal:
        assert list(journal.done) == [0] and journal.repaired == 4096


def test_a_damaged_line_in_the_middle_or_a_doubled_row_is_refused(tmp_path: Path, made: Manifest) -> None:
    path = filled(tmp_path / "out.jsonl", made, 0, 1, 2)
    lines = path.read_bytes().splitlines(keepends=True)
    for damaged in (lines[0] + b"{broken\n" + lines[2], lines[0] + lines[0] + lines[2]):
        path.write_bytes(damaged)
        failure = refused(path, made)
        assert (failure.code, failure.params["line"]) == ("batches.damaged", "2") and path.read_bytes() == damaged


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"sampling": {"temperature": 1.0}}, "temperature: 0.5 → 1.0"),
        ({"thinking": False}, "thinking: True → False"),
        ({"model": "other"}, "model: scripted-1 → other"),
        ({"input_sha256": "0"}, "input: another content"),
        ({"reading": {"column": "b"}}, "column: None → b"),
        ({"rows": 9}, "rows: 10 → 9"),
        ({"selection": {"which": "failed"}}, "which: None → failed"),
    ],
)
def test_a_resume_with_anything_else_is_refused_and_says_what(tmp_path: Path, made: Manifest, change: dict[str, object], told: str) -> None:
    path = filled(tmp_path / "out.jsonl", made, 0)
    before = path.read_bytes()
    failure = refused(path, replace(made, **change))  # type: ignore[arg-type]
    assert failure.code == "batches.other_run" and told in failure.params["differences"] and path.read_bytes() == before
    Journal.resume(path, replace(made, input="/moved/in.txt", engine="server", created_at="later")).close()


def test_rows_of_another_run_are_noticed_and_so_is_a_lost_or_changed_manifest(tmp_path: Path, made: Manifest) -> None:
    path = filled(tmp_path / "out.jsonl", made, 0)
    beside = sidecar(path)
    kept = beside.read_text()
    assert read_manifest(path) == made
    beside.write_text(kept.replace('"temperature": 0.5', '"temperature": 0.6'))
    assert refused(path, made).code == "batches.bad_manifest"
    beside.unlink()
    assert refused(path, made).code == "batches.no_manifest"
    beside.write_text(kept)
    with path.open("ab") as file:
        file.write(replace(row(made, 1), run="another").to_line())
    assert refused(path, made).code == "batches.other_run"


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
@pytest.mark.parametrize("where", ["write", "half", "fsync"])
def test_a_full_disk_loses_and_doubles_nothing(
    tmp_path: Path, made: Manifest, monkeypatch: pytest.MonkeyPatch, number: int, where: str
) -> None:
    path = tmp_path / "out.jsonl"
    with Journal.create(path, made) as journal:
        journal.append([row(made, 0)])
        before = path.read_bytes()
        real_write = os.write
        calls: list[int] = []

        def write(descriptor: int, data: bytes) -> int:
            calls.append(len(data))
            if where == "half" and len(calls) == 1:
                return real_write(descriptor, bytes(data[: len(data) // 2]))
            raise OSError(number, "full")

        def fsync(descriptor: int) -> None:
            raise OSError(number, "full")

        with monkeypatch.context() as full:
            full.setattr(os, "fsync" if where == "fsync" else "write", fsync if where == "fsync" else write)
            for _ in range(2):
                with pytest.raises(Failure) as failed:
                    journal.append([row(made, 1), row(made, 2)])
                assert failed.value.code == "batches.disk_full"
        assert path.read_bytes() == before and list(journal.done) == [0]
        journal.append([row(made, 1), row(made, 2)])
    assert [result.index for result in read_results(path)] == [0, 1, 2]


LIMITED = """
import resource, sys
from pathlib import Path
from kimi_demo.batches.journal import Journal
from kimi_demo.dialect.failure import Failure
from tests.batches.scripted_engine import manifest
from tests.batches.test_journal import row
from kimi_demo.batches.reading import open_source
folder = Path(sys.argv[1])
made = manifest(open_source(folder / "in.txt"))
with Journal.create(folder / "out.jsonl", made) as journal:
    resource.setrlimit(resource.RLIMIT_FSIZE, (3000, resource.RLIM_INFINITY))
    written = 0
    try:
        while True:
            journal.append([row(made, written)]); written += 1
    except Failure as failure:
        print(failure.code, written)
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    journal.append([row(made, written)])
"""


def test_a_file_that_may_not_grow_for_real(tmp_path: Path, made: Manifest) -> None:
    """The kernel's own refusal, in the middle of a line: a limit on the file's size, which needs no privilege."""
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] == resource.RLIM_INFINITY
    ran = subprocess.run([sys.executable, "-c", LIMITED, str(tmp_path)], cwd=ROOT, capture_output=True, text=True, check=True)
    code, written = ran.stdout.split()
    assert code == "batches.disk_full" and int(written) > 1
    found = list(read_results(tmp_path / "out.jsonl"))
    assert [result.index for result in found] == list(range(int(written) + 1))
    assert (tmp_path / "out.jsonl").stat().st_size > 3000


def test_a_folder_that_is_not_there_is_a_failure(tmp_path: Path, made: Manifest) -> None:
    assert refused(tmp_path / "none" / "out.jsonl", made, resume=False).code == "batches.unwritable"
    assert json.loads(made.to_json())["fingerprint"] == made.fingerprint
