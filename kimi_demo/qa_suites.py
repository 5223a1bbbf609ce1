"""The suites that the page offers: the shipped ones, and the files in the data folder's `suites`, broken ones with what is wrong."""

from dataclasses import dataclass
from pathlib import Path

from kimi_demo.dialect.failure import Failure
from kimi_demo.qa.case import Suite, planned
from kimi_demo.qa.reading import SHIPPED, find_suite, own_suites, shipped

_Mark = tuple[int, int, int]
"""(mtime in ns, bytes, inode): a file with the same mark is the one that was read."""


@dataclass(frozen=True)
class Offered:
    """key: a shipped name, or an own file's name without its ending. suite, or failure: why it cannot be run. cases: as they are run,
    those that `each` makes counted."""

    key: str
    own: bool
    suite: Suite | None
    failure: Failure | None = None
    cases: int = 0


class Catalogue:
    """Blocking; reads a file again when it has changed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._shipped: tuple[Offered, ...] = ()
        self._own: dict[str, tuple[_Mark, Offered]] = {}

    def look(self) -> tuple[Offered, ...]:
        """As the files stand now: shipped ones first, own ones by name."""
        self._shipped = self._shipped or tuple(_offered(name, shipped(name), own=False) for name in SHIPPED)
        found: dict[str, tuple[_Mark, Offered]] = {}
        for key, path in own_suites(self.folder).items():
            try:
                stat = path.stat()
            except OSError:  # gone since it was listed
                continue
            if not path.is_file():
                continue
            mark = (stat.st_mtime_ns, stat.st_size, stat.st_ino)
            known = self._own.get(key)
            found[key] = known if known is not None and known[0] == mark else (mark, self._read(key, path))
        self._own = found
        return (*self._shipped, *(offered for _, offered in found.values()))

    def suite(self, key: str) -> Suite:
        """The suite of an offered key. Raises Failure: qa.no_suite, and what is wrong with its file."""
        offered = self.look()
        one = next((one for one in offered if one.key == key), None)
        if one is None:
            raise Failure("qa.no_suite", name=key[:100], known=", ".join(one.key for one in offered))
        if one.suite is None:
            raise one.failure or Failure("qa.no_suite", name=key[:100], known="")
        return one.suite

    def _read(self, key: str, path: Path) -> Offered:
        try:
            return _offered(key, find_suite(key, self.folder), own=True)
        except Failure as failure:  # the page names the file, not where the data folder is
            return Offered(key, True, None, Failure(failure.code, **{**failure.params, "path": path.name}))


def _offered(key: str, suite: Suite, *, own: bool) -> Offered:
    return Offered(key, own, suite, cases=len(planned(suite)))
