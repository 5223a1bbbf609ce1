"""MCP servers of a running demo: listed, called, and gone with it, also when it is killed."""

import os
import signal
import sys
import time
from pathlib import Path

import httpx
import psutil

from tests import scripted_server
from tests.demo import running
from tests.programs import ROOT

PROGRAM = ROOT / "tests" / "tools" / "mcp_program.py"
WAIT_S = 60.0


def children(parent: int) -> list[psutil.Process]:
    return [child for child in psutil.Process(parent).children(recursive=True) if str(PROGRAM) in child.cmdline()]


def gone(process: psutil.Process) -> bool:
    return not process.is_running() or bool(process.status() == psutil.STATUS_ZOMBIE)


def shown(address: str, words: str) -> str:
    """The picker, once it says `words`."""
    deadline = time.monotonic() + WAIT_S
    while time.monotonic() < deadline:
        html = str(httpx.get(f"{address}/kimi/tools", timeout=60).json()["html"])
        if words in html:
            return html
        time.sleep(0.2)
    raise AssertionError(f"the picker never said {words!r}")


def test_servers_are_shown_and_end_with_a_demo_that_is_killed(tmp_path: Path) -> None:
    with scripted_server.running() as scripted:
        # One that stays when its input ends, and one that is none.
        stubborn = f"stubborn={sys.executable} {PROGRAM} stubborn"
        flags = ("--base-url", scripted.base_url, "--mcp", stubborn, "--mcp", "none=/no/such/program")
        with running(tmp_path, *flags, KIMI_DEMO_API_KEY="sk-of-ours") as demo:
            html = shown(demo.address, "stubborn__add")
            assert "not there: there is no program /no/such/program" in html
            (child,) = children(demo.program.process.pid)
            assert "sk-of-ours" not in child.environ().values()
            os.kill(demo.program.process.pid, signal.SIGKILL)
            demo.program.process.wait()
            deadline = time.monotonic() + WAIT_S
            while not gone(child):
                assert time.monotonic() < deadline, "the server outlives the demo"
                time.sleep(0.1)
