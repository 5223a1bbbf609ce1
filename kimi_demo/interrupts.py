"""Ctrl-C and SIGTERM for commands on an event loop: the first one cancels, the second one ends at once."""

import asyncio
import os
import signal
import sys
from collections.abc import Callable

INTERRUPTED = 130


def cancel_on_signals(on_first: Callable[[], None]) -> None:
    """Cancels the current task at the first signal, after `on_first`; the second ends the process (guardians tidy up)."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None
    told = False

    def interrupt() -> None:
        nonlocal told
        if told:
            os._exit(INTERRUPTED)
        told = True
        on_first()
        task.cancel()

    if sys.platform != "win32":
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, interrupt)
