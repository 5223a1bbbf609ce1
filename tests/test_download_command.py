"""`download` as a person meets it: a process of its own, a hub on this machine."""

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from kimi_demo import cli
from tests import local_hub
from tests.engines.hub.models import model_files
from tests.local_hub import LocalHub
from tests.programs import running

MODEL = ("--model", local_hub.MODEL)
SHARD = "model-00001-of-00002.safetensors"


@pytest.fixture
def hub() -> Iterator[LocalHub]:
    with local_hub.running(files=model_files()) as found:
        yield found


def variables(hub: LocalHub, tmp_path: Path, **more: str) -> dict[str, str]:
    return {"HF_ENDPOINT": hub.address, "MODELSCOPE_ENDPOINT": hub.address, "HOME": str(tmp_path)} | more


def test_it_prints_the_folder_and_takes_the_token_from_a_variable(hub: LocalHub, tmp_path: Path) -> None:
    hub.token = "hf_verysecretvalue"
    command = ("-m", "kimi_demo", "download", *MODEL, "--cache-dir", str(tmp_path / "to"), "--model-source", "modelscope")
    with running(*command, cwd=local_hub_root(), **variables(hub, tmp_path, KIMI_DEMO_HUB_TOKEN=hub.token)) as program:
        code, printed = program.ended(120)
    assert code == 0, printed
    assert printed.splitlines()[-1] == str(tmp_path / "to" / local_hub.MODEL)
    assert "Asking the hub for its files" in printed and "All files are there and checked." in printed
    assert "verysecret" not in printed


def test_ctrl_c_stops_it_and_the_same_command_goes_on(hub: LocalHub, tmp_path: Path) -> None:
    hub.files = model_files(size=24_000_000)
    hub.rate = 8_000_000
    command = ("-m", "kimi_demo", "download", *MODEL, "--cache-dir", str(tmp_path / "to"), "--json")
    with running(*command, cwd=local_hub_root(), **variables(hub, tmp_path)) as program:
        hub.wait_sent(SHARD, 14_000_000, 120)
        program.signal(signal.SIGINT)
        code, printed = program.ended(60)
        assert code == 130, printed
    hub.rate = None
    with running(*command, cwd=local_hub_root(), **variables(hub, tmp_path)) as program:
        code, printed = program.ended(120)
    assert code == 0, printed
    lines = [json.loads(line) for line in printed.splitlines() if line.startswith("{")]
    assert lines[-1] == {"event": "done", "folder": str(tmp_path / "to" / local_hub.MODEL)}
    assert any(line["event"] == "phase" and line["phase"] == "weights.downloading" and line["total"] for line in lines)
    assert any(asked.startswith("bytes=") and not asked.startswith("bytes=0") for asked in hub.ranges(SHARD))


def test_what_is_refused_ends_with_1_and_says_what_to_do(
    hub: LocalHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in variables(hub, tmp_path).items():
        monkeypatch.setenv(name, value)
    hub.status = {"listing": 403}
    assert cli.main(["download", *MODEL, "--cache-dir", str(tmp_path)]) == 1
    assert "accept its conditions" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--model", "nothing"), "nothing"),
        (("--model", "../x"), "../x"),
        ((*MODEL, "--workers", "0"), "--workers"),
        ((*MODEL, "--workers", "65"), "at most 64"),
    ],
)
def test_bad_input_ends_with_2(arguments: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["download", *arguments]) == 2
    assert said in capsys.readouterr().err


def test_help_names_the_model_that_is_downloaded_without_one(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main(["download", "--help"])
    printed = " ".join(capsys.readouterr().out.split())
    assert "--model TEXT Hub id of the model. Default: moonshotai/Kimi-K2.5. [KIMI_DEMO_MODEL]" in printed


def local_hub_root() -> Path:
    """Where `python -m kimi_demo` finds the package."""
    return Path(local_hub.__file__).parents[1]
