"""Lines of a text file whose encoding is known, none of them longer in memory than a limit."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from kimi_demo.batches.encoding import MARKED, unreadable

LONGEST = 16 * 2**20
"""Characters of one line, or of one cell. A longer one is an unclosed quote or no text; read whole it could take all memory."""

_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass
class Lines:
    """Iterates over the lines of `path` with their line ends (\\n, \\r\\n or a lone \\r, also mixed).

    number: of the line given last, from 1. cut: whether a line since the last `reset` was too long; its rest is left out.
    ended: whether the file's end has been reached. Bytes that the encoding does not know come as lone surrogates.
    """

    path: Path
    encoding: str
    longest: int = LONGEST
    number: int = 0
    cut: bool = False
    ended: bool = False

    def __iter__(self) -> Iterator[str]:
        try:
            # newline="": a quoted cell keeps the line ends that it holds.
            with self.path.open(encoding=self.encoding, errors=MARKED, newline="") as file:
                while line := file.readline(self.longest):
                    self.number += 1
                    if len(line) >= self.longest and not line.endswith(("\n", "\r")):
                        self.cut = True
                        while (rest := file.readline(1 << 16)) and not rest.endswith(("\n", "\r")):
                            pass
                    # Files put together from several have a byte order mark at the beginning of each.
                    yield line.lstrip("\ufeff")
        except OSError as error:
            raise unreadable(self.path, error) from error
        self.ended = True


def is_broken(text: str) -> bool:
    """Whether `text` holds half a character: bytes that were no text in the file's encoding, or a cut escape in JSON."""
    return not text.isascii() and _SURROGATE.search(text) is not None
