"""What `qa` shares with `qa --requests`: exit codes, and what Ctrl-C does."""

import asyncio
import signal
import sys
from collections.abc import Callable

PASSED, FAILED, COULD_NOT_RUN, INTERRUPTED = 0, 1, 2, 130


def catch_signals(stop: Callable[[], None]) -> None:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        if sys.platform != "win32":
            loop.add_signal_handler(number, stop)
