"""`rehearsal …` as a person meets it: what is wrong is said in a line before any work begins."""

from pathlib import Path

import httpx2
import pytest
from openai import APIConnectionError

from kimi_demo import cli
from kimi_demo.engines.rehearsal.evaluation import served


@pytest.mark.parametrize(
    "arguments",
    [("data", "--out", "nowhere/set.jsonl"), ("evaluate", "--json", "nowhere/f.json"), ("evaluate", "--json", "f", "--wrong", "nowhere/w")],
)
def test_a_file_that_cannot_be_written_is_told_first(
    arguments: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli.main(["rehearsal", *arguments]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("nowhere/") and "cannot be written: No such file or directory" in line


@pytest.mark.parametrize(("command", "flag"), [("data", "--count"), ("train", "--count"), ("evaluate", "--limit")])
@pytest.mark.parametrize("value", ["0", "-1", "some"])
def test_a_count_is_above_zero(command: str, flag: str, value: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = "--json" if command == "evaluate" else "--out"
    with pytest.raises(SystemExit) as left:
        cli.main(["rehearsal", command, out, str(tmp_path / "out"), f"{flag}={value}"])
    assert left.value.code == 2 and f"{flag}: " in capsys.readouterr().err and not (tmp_path / "out").exists()


def test_so_many_conversations_of_each_stage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["rehearsal", "data", "--out", str(tmp_path / "set.jsonl"), "--count", "2"]) == 0
    assert len((tmp_path / "set.jsonl").read_text(encoding="utf-8").splitlines()) == 8 and "8 conversations" in capsys.readouterr().out


@pytest.mark.parametrize(("more", "hint"), [((), "With --replies FILE"), (("--replies", "kept"), "Run the same command to go on.")])
def test_a_server_that_dies_in_mid_evaluation_is_one_sentence(
    more: tuple[str, ...],
    hint: str,
    tmp_path: Path,
    standin_model: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def dies(*_: object) -> None:
        raise APIConnectionError(request=httpx2.Request("POST", "http://127.0.0.1/v1/chat/completions"))

    monkeypatch.chdir(tmp_path)
    (tmp_path / "rehearsal").symlink_to(standin_model.parent)
    monkeypatch.setattr(served, "with_server", dies)
    assert cli.main(["rehearsal", "evaluate", "--json", "f", "--limit", "1", "--data-dir", str(tmp_path), *more]) == 1
    told = capsys.readouterr().err
    assert "The model server stopped answering (Connection error.); its log is in " in told and hint in told and "Traceback" not in told
