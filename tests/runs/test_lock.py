"""One application per data folder, and the folder is free again however the application ended."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kimi_demo.dialect.failure import Failure
from kimi_demo.runs.lock import DataLock

HOLDER = """
import os, sys, time
from pathlib import Path
from kimi_demo.runs.lock import DataLock
lock = DataLock(Path(sys.argv[1]))
if sys.argv[2] == "fork":
    child = os.fork()
    if child == 0:
        sys.stdin.readline()
        os._exit(0)
print("held", flush=True)
time.sleep(600)
"""


def holder(folder: Path, mode: str = "alone") -> "subprocess.Popen[str]":
    process = subprocess.Popen([sys.executable, "-c", HOLDER, str(folder), mode], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stdout.readline() == "held\n"
    return process


def refusal(folder: Path) -> Failure:
    with pytest.raises(Failure) as raised:
        DataLock(folder)
    return raised.value


def test_the_second_is_refused_until_the_first_lets_go(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "data"
    with DataLock(folder):
        assert (refusal(folder).code, refusal(folder).params) == ("data.locked", {"folder": str(folder)})
    DataLock(folder).release()


def test_the_folder_is_made_for_its_user_only(tmp_path: Path) -> None:
    with DataLock(tmp_path / "data"):
        assert (tmp_path / "data").stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("mode", ["alone", "fork"])
def test_kill_9_frees_the_folder_even_when_a_forked_child_lives_on(tmp_path: Path, mode: str) -> None:
    process = holder(tmp_path, mode)
    try:
        assert refusal(tmp_path).code == "data.locked"
        process.kill()
        process.wait(30)
        DataLock(tmp_path).release()
    finally:
        process.kill()
        process.communicate("\n")  # lets the child go


def test_a_forked_child_that_ends_does_not_free_the_folder(tmp_path: Path) -> None:
    with DataLock(tmp_path):
        child = os.fork()
        if child == 0:
            os._exit(0)
        os.waitpid(child, 0)
        assert refusal(tmp_path).code == "data.locked"


@pytest.mark.parametrize("place", ["file", "file/below"])
def test_a_folder_that_cannot_be_is_named(tmp_path: Path, place: str) -> None:
    (tmp_path / "file").touch()
    failure = refusal(tmp_path / place)
    assert failure.code == "data.unwritable"
    assert failure.params["folder"] == str(tmp_path / place) and failure.params["error"]
