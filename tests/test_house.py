"""What the house asks of every file: ruff and mypy have nothing to say, and the documents' links lead somewhere."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from kimi_demo.settings import Settings
from kimi_demo.settings_table import table
from tests.programs import ROOT

DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("kimi_demo/**/*.md")])
LINK = re.compile(r"\]\(([^)\s]+)\)")


@pytest.mark.parametrize("command", ["ruff check .", "ruff format --check .", "mypy"])
def test_the_checkers_have_nothing_to_say(command: str) -> None:
    told = subprocess.run([sys.executable, "-m", *command.split()], cwd=ROOT, capture_output=True, text=True, timeout=900)
    assert told.returncode == 0, told.stdout + told.stderr


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_to_files_and_headings_that_are_there(document: Path) -> None:
    for link in LINK.findall(document.read_text(encoding="utf-8")):
        if link.startswith(("http://", "https://")):
            continue
        name, _, heading = link.partition("#")
        target = (document.parent / name) if name else document
        assert target.exists(), link
        if heading:
            titles = re.findall(r"^#+ (.+)$", target.read_text(encoding="utf-8"), re.MULTILINE)
            assert heading in {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}, link


def test_the_table_of_settings_is_that_of_the_program() -> None:
    written = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
    assert written == table(), "python -m kimi_demo.settings_table > docs/settings.md"
    assert all(f"`KIMI_DEMO_{name.upper()}`" in written for name in Settings.model_fields)
