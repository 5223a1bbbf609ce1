"""Running the program as its own process, and reading what it prints line by line."""

import os
import queue
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[1]


class Program:
    """A started program. Every wait has a limit, and says what was printed when it runs out."""

    def __init__(self, arguments: Sequence[str], cwd: Path, environment: dict[str, str]) -> None:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("KIMI_DEMO_")}
        self.process = subprocess.Popen(
            [sys.executable, *arguments],
            cwd=cwd,
            env={**kept, "PYTHONPATH": str(ROOT), **environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.printed: list[str] = []
        self._lines: queue.Queue[str | None] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout
        for line in self.process.stdout:
            self._lines.put(line)
        self._lines.put(None)

    def wait_for(self, pattern: str, timeout_s: float = 60) -> re.Match[str]:
        """The first match of `pattern` in a line printed from now on."""
        while True:
            line = self._lines.get(timeout=timeout_s)
            assert line is not None, f"ended without {pattern!r}: {''.join(self.printed)}"
            self.printed.append(line)
            if found := re.search(pattern, line):
                return found

    def tell(self, line: str) -> None:
        assert self.process.stdin
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def ended(self, timeout_s: float = 60) -> tuple[int, str]:
        """(exit code, everything printed) once it has ended by itself."""
        code = self.process.wait(timeout_s)
        while (line := self._lines.get(timeout=timeout_s)) is not None:
            self.printed.append(line)
        return code, "".join(self.printed)

    def kill(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()


@contextmanager
def running(*arguments: str, cwd: Path, **environment: str) -> Iterator[Program]:
    program = Program(arguments, cwd, environment)
    try:
        yield program
    finally:
        program.kill()
