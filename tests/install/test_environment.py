"""Mending, stamping and replacing the virtual environment; finding a Python for it."""

import ast
import os
import shutil
import sys
from pathlib import Path

import pytest

from scripts.installer import apt, browser, interpreter, main, pip, plan
from scripts.installer.environment import STAMP, Environment, mend
from scripts.installer.host import Kind
from scripts.installer.interpreter import Interpreter
from scripts.installer.stop import Stop

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = [ROOT / "scripts/install.py", *(ROOT / "scripts/installer").glob("*.py")]


def program(path: Path, body: str) -> Path:
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return path


def package(site: Path, name: str, record: str | None, files: tuple[str, ...] = ()) -> Path:
    folder = site / f"{name}-1.0.dist-info"
    folder.mkdir(parents=True)
    (folder / "METADATA").write_text(f"Name: {name}\nVersion: 1.0\n")
    if record is not None:
        (folder / "RECORD").write_text(record)
    for file in files:
        (site / file).write_text("")
    return folder


def test_half_written_packages_are_forgotten_and_whole_ones_kept(tmp_path: Path) -> None:
    whole = package(tmp_path, "whole", "whole.py,,\n__pycache__/whole.cpython-311.pyc,,\nwhole-1.0.dist-info/METADATA,,\n", ("whole.py",))
    package(tmp_path, "unrecorded", None, ("unrecorded.py",))
    package(tmp_path, "lost", "lost.py,,\n")
    package(tmp_path, "cut", "")
    (tmp_path / "~ld").mkdir()
    assert mend(tmp_path) == ["cut-1.0.dist-info", "lost-1.0.dist-info", "unrecorded-1.0.dist-info"]
    assert sorted(path.name for path in tmp_path.glob("*.dist-info")) == [whole.name]
    assert not (tmp_path / "~ld").exists()


def test_an_unreadable_stamp_counts_as_none(tmp_path: Path) -> None:
    environment = Environment(tmp_path)
    environment.python.parent.mkdir(parents=True)
    environment.python.touch()
    environment.complete("application", "print")
    assert environment.has("application", "print")
    assert not environment.has("application", "another") and not environment.has("tests", "print")
    environment.begin("application")
    assert not environment.has("application", "print")
    for text in ("", "{", "[]", "null"):
        (tmp_path / STAMP).write_text(text)
        assert not environment.has("application", "print")


def test_a_stamp_without_its_python_counts_as_none(tmp_path: Path) -> None:
    environment = Environment(tmp_path)
    environment.complete("application", "print")
    assert not environment.has("application", "print")


def test_a_folder_that_is_no_environment_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "letters.txt").write_text("mine")
    with pytest.raises(Stop, match="no virtual environment"):
        Environment(tmp_path).prepare(Kind.PAGE, interpreter.find)
    assert (tmp_path / "letters.txt").read_text() == "mine"


def test_an_environment_without_pip_or_of_another_kind_is_made_anew(tmp_path: Path, bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scripts.installer.environment.create", lambda python, folder: shutil.copytree(bare, folder, symlinks=True))
    environment = Environment(tmp_path / ".venv")
    environment.prepare(Kind.PAGE, interpreter.find)
    (environment.folder / "mark").touch()
    environment.prepare(Kind.PAGE, interpreter.find)
    assert (environment.folder / "mark").exists(), "a good one is kept"

    for file in (environment.site_packages() / "pip").glob("__*__.py"):
        file.unlink()
    environment.prepare(Kind.PAGE, interpreter.find)
    assert not (environment.folder / "mark").exists()

    (environment.folder / "mark").touch()
    environment.prepare(Kind.CPU, interpreter.find)
    assert not (environment.folder / "mark").exists()


def test_a_python_is_found_that_fits() -> None:
    found = interpreter.find()
    assert found.fits and found.whole


@pytest.mark.skipif(os.name == "nt", reason="the fake interpreters are shell scripts")
def test_a_python_that_does_not_run_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = program(tmp_path / "old", """echo '["/usr/bin/old", [3, 9], true]'""")
    shim = program(tmp_path / "python3.12", "echo 'pyenv: version is not installed' >&2; exit 127")
    good = program(tmp_path / "python3.13", """echo '["/opt/python3.13", [3, 13], true]'""")
    monkeypatch.setattr(sys, "executable", str(old))
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    assert interpreter.ask(str(shim)) is None
    assert interpreter.find(("python3.12", "python3.13")) == Interpreter("/opt/python3.13", (3, 13), True)
    good.unlink()
    with pytest.raises(Stop, match=r"found here: 3\.9\..*PYTHON="):
        interpreter.find(("python3.12",))


def test_a_python_without_its_venv_package_names_that_package() -> None:
    told = interpreter.missing([Interpreter("/usr/bin/python3", (3, 14), True), Interpreter("/usr/bin/python3.12", (3, 12), False)])
    assert "sudo apt install python3.12-venv" in told


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_the_installer_can_be_read_by_an_old_python(path: Path) -> None:
    ast.parse(path.read_text(encoding="utf-8"), feature_version=(3, 8))


def test_too_small_a_disk_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda path: type("Usage", (), {"free": plan.GIB})())
    with pytest.raises(Stop, match=r"Not enough disk: 6\.0 GiB are needed in .*, 1\.0 GiB are free"):
        main.room(tmp_path / ".venv", Kind.CPU)


def test_what_is_installed_already_needs_no_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".venv").mkdir()
    with (tmp_path / ".venv/big").open("wb") as file:
        file.truncate(plan.DISK[Kind.CPU])
    monkeypatch.setattr(shutil, "disk_usage", lambda path: type("Usage", (), {"free": 0})())
    main.room(tmp_path / ".venv", Kind.CPU)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device", "disk is full"),
        ("WARNING: Retrying after connection broken by 'NewConnectionError(…)'", "cannot be reached"),
        ("ERROR: No matching distribution found for torch==2.13.0+cpu", "does not have torch==2.13.0+cpu"),
        ("ERROR: Could not install packages due to an OSError: [Errno 13] Permission denied: '/x'", "another user"),
        ("ERROR: Invalid requirement: 'a b'", "Invalid requirement"),
    ],
)
def test_why_pip_failed_is_one_sentence(line: str, words: str) -> None:
    told = pip.sentence(["Collecting a", line, "done"], Path(".venv.log"))
    assert words in told and ".venv.log" in told and "\n" not in told


def test_the_fingerprint_follows_pins_and_kind_not_comments(tmp_path: Path) -> None:
    lock = tmp_path / plan.LOCKS[Kind.PAGE]

    def of(text: str, kind: Kind = Kind.PAGE) -> str:
        lock.write_text(text)
        return plan.fingerprint(plan.steps(Kind.PAGE, tmp_path), kind, tmp_path)

    assert of("# one\na==1\n") == of("# two\na==1\n")
    assert len({of("a==1\n"), of("a==2\n"), of("a==1\nb==1\n"), of("a==1\n", Kind.CPU)}) == 4


def test_torch_is_asked_for_plainly_first_and_alone() -> None:
    torch, rest = plan.steps(Kind.CPU, ROOT)
    assert torch.arguments == ("--no-deps", plan.TORCH)
    assert torch.instead[-1] == plan.TORCH and "--index-url" in torch.instead and "--extra-index-url" not in torch.instead
    assert rest.arguments[0] == "--no-deps" and not rest.instead


@pytest.mark.skipif(os.name == "nt", reason="the fake browsers are shell scripts")
def test_a_browser_that_does_not_start_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stub = program(tmp_path / "chromium-browser", "echo 'Command requires the chromium snap' >&2; exit 1")
    good = program(tmp_path / "google-chrome", "echo 'Chrome 156'")
    monkeypatch.delenv("KIMI_DEMO_CHROMIUM", raising=False)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin")
    monkeypatch.setattr(browser, "NAMES", (stub.name, good.name))
    assert browser.system_chromium() == str(good)
    monkeypatch.setenv("KIMI_DEMO_CHROMIUM", str(stub))
    assert browser.system_chromium() is None


def test_no_browser_to_be_had_is_said_plainly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KIMI_DEMO_CHROMIUM", str(tmp_path / "none"))
    monkeypatch.setattr(apt, "usable", lambda: False)
    with pytest.raises(Stop, match="neither apt nor Playwright"):
        browser.ensure(program(tmp_path / "python", "exit 1"), tmp_path / "log")
