"""The script that measures what a live thought costs: that it runs, and prints a line for each way of showing it."""

import asyncio
import re
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[1] / "scripts" / "measure_live_thought.py"


async def test_each_way_of_showing_a_thought_is_measured() -> None:
    arguments = ("--tokens", "60", "--history", "4", "--runs", "1")
    program = await asyncio.create_subprocess_exec(sys.executable, str(SCRIPT), *arguments, stdout=asyncio.subprocess.PIPE)
    printed = (await asyncio.wait_for(program.communicate(), 240))[0].decode()
    assert program.returncode == 0
    for name in ("bare page", "own element", "gr.Chatbot"):
        assert re.search(rf"^{re.escape(name)} +[1-9]\d* us/tok +[1-9]\d* /tok +-?\d+ ms$", printed, re.MULTILINE), printed
