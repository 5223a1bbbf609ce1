"""Smoke and Guide for real: the stand-in on vLLM, through the running page's server."""

from pathlib import Path

import pytest

from kimi_demo.engines.server_note import ServerNote
from kimi_demo.qa.report import read_report
from tests.demo import Demo
from tests.engines.living import until
from tests.programs import ROOT, Program

LIMIT_S = 300.0


@pytest.mark.parametrize("suite", ["smoke", "guide"])
def test_the_stand_in_passes(suite: str, demo: Demo, tmp_path: Path) -> None:
    """The command finds the page's server by itself, and leaves it running."""
    assert until(lambda: ServerNote(demo.data).read() is not None, LIMIT_S), "the page's server did not come up"
    out = tmp_path / "report.json"
    program = Program(["-m", "kimi_demo", "qa", suite, "--data", str(demo.data), "--json", str(out)], ROOT, {"PYTHONUNBUFFERED": "1"})
    try:
        code, printed = program.ended(LIMIT_S)
    finally:
        program.kill()
    assert code == 0, printed
    assert "the server that the page has started" in printed
    report = read_report(out)
    assert set(report.counts) == {"pass"} and report.server.version and "--reasoning-parser" in report.server.flags
    assert ServerNote(demo.data).read() is not None
