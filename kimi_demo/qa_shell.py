"""What `qa` shares with `qa --requests`: exit codes, what Ctrl-C does, and printing."""

import asyncio
import os
import re
import signal
import sys
from collections.abc import Callable

PASSED, FAILED, COULD_NOT_RUN, INTERRUPTED = 0, 1, 2, 130


def catch_signals(stop: Callable[[], None]) -> None:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        if sys.platform != "win32":
            loop.add_signal_handler(number, stop)


def put(line: str) -> None:
    """Prints a line to stdout. Where nobody reads on (`| head`), the run goes on all the same: its reports are wanted."""
    try:
        print(plain(line), flush=True)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


_MOVES = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
"""Control characters, and those that turn the direction of writing."""


def plain(text: str) -> str:
    """`text` as it may go to a terminal: a model's words must not move the cursor or change the window's title."""
    encoding = sys.stdout.encoding or "utf-8"
    return _MOVES.sub("\ufffd", text).encode(encoding, "replace").decode(encoding)
