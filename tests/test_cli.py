"""The command line as a person meets it: `python app.py …` as its own process, with no variable set."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from kimi_demo import __version__, cli
from kimi_demo.flags import flag_of, variable_of
from kimi_demo.runs.lock import DataLock
from kimi_demo.settings import Settings
from tests.programs import ROOT, running

APP = str(ROOT / "app.py")


def ended(tmp_path: Path, *arguments: str, **environment: str) -> tuple[int, str]:
    with running(*arguments, cwd=tmp_path, **environment) as program:
        return program.ended()


def one_line(printed: str) -> str:
    (line,) = printed.splitlines()
    return line


@pytest.mark.parametrize("program", [[APP], [APP, "ui"], ["-m", "kimi_demo"], ["-m", "kimi_demo", "ui"]])
def test_help_lists_every_flag_with_its_variable(program: list[str], tmp_path: Path) -> None:
    code, printed = ended(tmp_path, *program, "--help")
    assert code == 0
    for name in Settings.model_fields:
        assert flag_of(name) in printed and variable_of(name) in printed
    for command in cli.COMMANDS:
        assert command in printed


def test_version(tmp_path: Path) -> None:
    assert ended(tmp_path, APP, "--version") == (0, f"kimi_demo {__version__}\n")


def test_every_command_is_there_and_explains_itself(capsys: pytest.CaptureFixture[str]) -> None:
    for command in cli.COMMANDS:
        with pytest.raises(SystemExit) as left:
            cli.main([command, "--help"])
        assert left.value.code == 0 and command in capsys.readouterr().out


def test_a_command_imports_neither_another_nor_gradio() -> None:
    listing = "import sys; from kimi_demo import cli\ntry: cli.main(['ui', '--help'])\nexcept SystemExit: print('MODULES', *sys.modules)"
    printed = subprocess.run([sys.executable, "-c", listing], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    found = printed.split("MODULES")[1].split()
    assert "kimi_demo.ui.command" in found
    assert not {"gradio", "vllm", "torch", "openai", "transformers", "kimi_demo.engines.rehearsal.command"} & set(found)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["--port", "abc"], "argument --port: "),
        (["--port", "70000"], "argument --port: "),
        (["--tensor-parallel-size", "0"], "argument --tensor-parallel-size: "),
        (["--endpoint-kind", "other"], "argument --endpoint-kind: "),
        (["--auth", "s3cret"], "argument --auth: must be USER:PASSWORD"),
        (["--no-such-flag"], "unrecognized arguments: --no-such-flag"),
        (["--por", "1"], "unrecognized arguments: --por 1"),
        (
            ["surprise"],
            "there is no command 'surprise': choose from ui, batch, tools, plan, shape, qa, download, serve, check, bench, password, "
            "rehearsal",
        ),
        (["--port"], "argument --port: expected one argument"),
    ],
)
def test_a_bad_value_is_one_line_and_exit_code_2(arguments: list[str], named: str, tmp_path: Path) -> None:
    code, printed = ended(tmp_path, APP, *arguments)
    assert code == 2
    assert one_line(printed).startswith("python app.py") and f"error: {named}" in printed and "s3cret" not in printed


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize(
    ("arguments", "codes"),
    [
        (("plan", "--model", "moonshotai/Kimi-K2.5", "--machine", "8xh200"), {141}),
        (("qa", "--list"), {0}),  # goes on, since a run's reports are wanted all the same
        (("--help",), {0, 141}),  # argparse swallows it where it comes early
    ],
)
def test_a_reader_that_has_gone_needs_no_words(arguments: tuple[str, ...], codes: set[int], unbuffered: str, tmp_path: Path) -> None:
    """As in `… | head -1`, whoever of the two is first."""
    read, write = os.pipe()
    os.close(read)
    environment = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    try:
        ended = subprocess.run(
            [sys.executable, APP, *arguments], cwd=tmp_path, env=environment, stdout=write, stderr=subprocess.PIPE, text=True, timeout=120
        )
    finally:
        os.close(write)
    assert ended.stderr == "" and ended.returncode in codes


def test_a_bad_variable_is_named(tmp_path: Path) -> None:
    code, printed = ended(tmp_path, APP, KIMI_DEMO_MAX_MODEL_LEN="many")
    assert code == 2 and "error: variable KIMI_DEMO_MAX_MODEL_LEN: " in one_line(printed)


def test_a_port_in_use_is_one_sentence(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, printed = ended(tmp_path, APP, "--port", str(port))
    assert code == 1 and f"Port {port} is in use by another program." in one_line(printed)


@pytest.mark.parametrize("flags", [["--host", "0.0.0.0"], ["--host", ""], ["--host", "::"], ["--share"]])
def test_letting_others_in_without_a_password_is_refused(flags: list[str], tmp_path: Path) -> None:
    code, printed = ended(tmp_path, APP, "--port", "0", *flags)
    assert code == 1 and "so a password is needed" in one_line(printed) and "--auth" in printed


def test_an_address_of_another_machine_is_one_sentence(tmp_path: Path) -> None:
    code, printed = ended(tmp_path, APP, "--port", "0", "--host", "192.0.2.1", "--auth", "a:b")
    assert code == 1 and '"192.0.2.1" is not an address of this machine' in one_line(printed)


def test_a_second_app_on_the_same_data_folder_is_one_sentence(tmp_path: Path) -> None:
    with DataLock(tmp_path / "data"):
        code, printed = ended(tmp_path, APP, "--port", "0", "--data", str(tmp_path / "data"))
    assert code == 1 and str(tmp_path / "data") in one_line(printed)


def test_the_port_answers_at_once(tmp_path: Path, record_property: Callable[[str, object], None]) -> None:
    began = time.monotonic()
    with running(APP, "--port", "0", "--data", str(tmp_path / "data"), "--base-url", "http://127.0.0.1:9/v1", cwd=tmp_path) as program:
        address = program.wait_for(r"http://127\.0\.0\.1:\d+/")[0]
        assert httpx.get(address, timeout=30).status_code == 200
        seconds = time.monotonic() - began
    record_property("first_byte_s", round(seconds, 2))
    print(f"first byte after {seconds:.2f} s")
    assert seconds < 30  # 5 s on a warm cache; this only catches waiting for an engine
