"""The output of a child process: split into lines, kept in memory (the last ones) and in a file that does not grow without end."""

import codecs
import logging
from collections import deque
from contextlib import suppress
from itertools import islice
from logging.handlers import RotatingFileHandler
from pathlib import Path

from kimi_demo.engines.log_lines import Line, parse
from kimi_demo.engines.masking import Mask

_KEPT_LINES = 2000
_KEPT_BYTES = 4 * 2**20
_LONGEST_LINE = 8192


class Lines:
    """Bytes in, lines out. A carriage return ends a line too: progress bars are redrawn by one. Empty lines are left out."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self.rest = ""
        """What has no end yet. A progress bar stays here until it is redrawn."""

    def feed(self, data: bytes, last: bool = False) -> list[str]:
        """The lines that end in `data`; with `last`, the unfinished one too. A line longer than 8,192 characters is cut into several."""
        *lines, self.rest = (self.rest + self._decoder.decode(data, last)).replace("\r", "\n").split("\n")
        if last or len(self.rest) > _LONGEST_LINE:
            lines.append(self.rest)
            self.rest = ""
        pieces = [line[at : at + _LONGEST_LINE] for line in lines for at in range(0, len(line), _LONGEST_LINE)]
        return [piece.rstrip() for piece in pieces if piece.strip()]


class _File(RotatingFileHandler):
    def handleError(self, record: logging.LogRecord) -> None:
        """A full disk costs the file, never the server: nothing is raised, nothing is printed per line."""


class Logbook:
    """The last 2,000 lines in memory, and `file`: 4 MiB, then it becomes `file`.1 and starts anew. The one before is kept as that, too.

    Secrets are made unreadable before anything is kept. Written by one thread, read by any.
    """

    def __init__(self, file: Path, mask: Mask | None = None) -> None:
        self.file = file
        self._mask = mask or Mask()
        self._lines: deque[Line] = deque(maxlen=_KEPT_LINES)
        self._raw: deque[str] = deque(maxlen=_KEPT_LINES)
        self._handler: _File | None = None
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            self._handler = _File(file, maxBytes=_KEPT_BYTES, backupCount=1, encoding="utf-8", errors="replace")
            if file.stat().st_size:
                self._handler.doRollover()
        except OSError:
            self._handler = None

    def write(self, line: str) -> None:
        line = self._mask.hide(line)
        before = self._lines[-1] if self._lines else None
        self._raw.append(line)
        self._lines.append(parse(before.number + 1 if before else 1, line, before.level if before else "info"))
        if self._handler is not None:
            self._handler.handle(logging.LogRecord("vllm", logging.INFO, "", 0, line, None, None))

    def tail(self, count: int) -> list[str]:
        """The last `count` lines, oldest first."""
        return list(self._raw)[-count:] if count > 0 else []

    def since(self, number: int) -> list[Line]:
        """The kept lines after line `number`, oldest first; [] at once where there is nothing new."""
        kept = self._lines.copy()  # one step for the interpreter: the writer cannot come between
        if not kept or kept[-1].number <= number:
            return []
        return list(islice(kept, max(0, number + 1 - kept[0].number), None))

    def close(self) -> None:
        if self._handler is not None:
            with suppress(OSError):  # what could not be written is flushed once more here
                self._handler.close()


def whole_log(file: Path) -> list[Path]:
    """The files that hold the log, in order of time; those that are there."""
    return [path for path in (file.with_name(file.name + ".1"), file) if path.is_file()]
