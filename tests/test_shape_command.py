"""`shape` as a person and a program meet it."""

import json
from pathlib import Path

import pytest

from kimi_demo import cli


def test_a_folder_and_what_to_do_with_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["shape", "--tiny", "--layers", "2", "--out", str(tmp_path / "model")]) == 0
    told = capsys.readouterr()
    assert told.out.strip() == str(tmp_path / "model")
    assert "2 layers with 16 experts" in told.err and "--vllm-args '--load-format dummy'" in told.err
    assert json.loads((tmp_path / "model" / "config.json").read_text())["num_hidden_layers"] == 2


def test_the_plan_reads_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = ["shape", "--layers", "fit", "--gpus", "1", "--gpu-memory-gb", "141", "--out", str(tmp_path / "model"), "--json"]
    assert cli.main(line) == 0
    made = json.loads(capsys.readouterr().out)
    assert cli.main(["plan", "--model", str(tmp_path / "model"), "--gpus", "1", "--gpu-memory-gb", "141", "--json"]) == 0
    planned = json.loads(capsys.readouterr().out)
    assert planned["weights_gb_per_gpu"] == pytest.approx(made["weights_bytes_per_gpu"] / 1e9, abs=0.1)
    assert planned["kv_bytes_per_token_per_gpu"] == 576 * 2 * made["layers"]


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (["--layers", "-1"], "--layers must be 1 or more, not -1."),
        (["--layers", "many"], "neither a number nor 'fit'"),
        (["--bits", "8"], "--bits takes 4 or 16, not 8."),
        (["--layers", "fit", "--gpu-memory-gb", "0"], "--gpu-memory-gb"),
        (["--layers", "fit", "--gpu-memory-gb", "1"], "Not even the smallest number of layers fits on 1 GPUs of 1 GB."),
    ],
)
def test_bad_input_names_its_flag(tmp_path: Path, capsys: pytest.CaptureFixture[str], flags: list[str], told: str) -> None:
    try:
        code = cli.main(["shape", "--out", str(tmp_path / "model"), *flags])
    except SystemExit as ended:
        code = int(str(ended.code))
    assert code == 2 and told in capsys.readouterr().err
    assert not (tmp_path / "model").exists()


def test_a_folder_that_cannot_be_written_is_a_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    assert cli.main(["shape", "--tiny", "--out", str(tmp_path / "file" / "model")]) == 1
    assert "could not be written" in capsys.readouterr().err
