"""Accounts: lines that can be read, passwords that are not in them, and the command that makes a line."""

import subprocess
import sys
from pathlib import Path

import pytest

from kimi_demo.accounts import hashed, is_password, read_accounts
from kimi_demo.dialect.failure import Failure
from tests.programs import ROOT

GOOD = hashed("a good password")


def test_a_password_is_known_by_its_hash_alone() -> None:
    assert is_password("a good password", GOOD) and not is_password("another one", GOOD)
    assert "good" not in GOOD and hashed("a good password") != GOOD  # salted


@pytest.mark.parametrize("hash", ["", "plain", "scrypt$14$8$5$AAAA", "scrypt$30$8$5$" + GOOD.split("$", 4)[4], GOOD[:-4]])
def test_what_is_no_hash_lets_nobody_in(hash: str) -> None:
    assert not is_password("a good password", hash)


def test_accounts_come_from_a_file_or_as_they_are(tmp_path: Path) -> None:
    lines = f"# who may\n\nann:operator:{GOOD}\nbob:viewer:{GOOD}\n"
    (tmp_path / "accounts").write_text(lines)
    for given in (lines, str(tmp_path / "accounts")):
        accounts = read_accounts(given)
        found = accounts.of_password("ann", "a good password")
        assert found is not None and found.role == "operator"
        assert accounts.of_password("ann", "a bad password") is None and accounts.of_password("eve", "") is None


@pytest.mark.parametrize(
    ("given", "code"),
    [
        (f"ann:owner:{GOOD}", "accounts.line"),
        (f"ann:viewer:{GOOD}\nann:operator:{GOOD}", "accounts.line"),
        ("ann:viewer:secret$1", "accounts.line"),
        ("# a:b:$", "accounts.none"),
        ("/no/such/file", "accounts.unreadable"),
    ],
)
def test_a_line_that_is_wrong_is_named_and_not_shown(given: str, code: str) -> None:
    with pytest.raises(Failure) as caught:
        read_accounts(given)
    assert caught.value.code == code and "secret" not in str(caught.value)


def test_the_command_makes_a_line_of_what_is_piped_in() -> None:
    def run(password: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "kimi_demo", "password", "ann", "--role", "operator"]
        return subprocess.run(command, input=password, cwd=ROOT, capture_output=True, text=True, timeout=60)

    made = run("correct horse battery\n")
    assert made.returncode == 0 and read_accounts(made.stdout).of_password("ann", "correct horse battery") is not None
    short = run("short\n")
    assert short.returncode == 2 and "10 to 1024 characters" in short.stderr
