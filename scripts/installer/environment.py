"""The virtual environment: made, mended after an interruption, and stamped when whole."""

from __future__ import annotations

import csv
import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

from scripts.installer.host import Kind
from scripts.installer.interpreter import Interpreter, ask
from scripts.installer.stop import Stop

STAMP = "kimi-demo.json"


class Environment:
    """`.venv`. Its stamp file says which fingerprints are done, and is written last: half an installation never counts as whole."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def python(self) -> Path:
        return self.folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")

    def has(self, part: str, fingerprint: str) -> bool:
        """Whether this part ("application", "tests") was completed with this fingerprint and the interpreter is still there."""
        return self._stamp().get(part) == fingerprint and self.python.exists()

    def complete(self, part: str, fingerprint: str) -> None:
        self._write({**self._stamp(), part: fingerprint})

    def begin(self, part: str) -> None:
        """From here until `complete` the part counts as unfinished."""
        stamp = self._stamp()
        if stamp.pop(part, None) is not None:
            self._write(stamp)

    def prepare(self, kind: Kind, find: Callable[[], Interpreter]) -> None:
        """An environment with a working pip, for this kind. A stranger's folder of that name is left alone. Raises Stop."""
        if self.folder.exists() and not self._usable(kind):
            if not (self.folder / "pyvenv.cfg").is_file() and any(self.folder.iterdir()):
                raise Stop(f"{self.folder} exists and is no virtual environment: move it away, then run this again.")
            shutil.rmtree(self.folder)
        if not self.python.exists():
            create(find(), self.folder)
        self._write({**self._stamp(), "kind": kind.value})
        mend(self.site_packages())

    def site_packages(self) -> Path:
        found = sorted(self.folder.glob("Lib/site-packages" if os.name == "nt" else "lib/python3.*/site-packages"))
        if not found:
            raise Stop(f"{self.folder} has no site-packages folder: remove it, then run this again.")
        return found[0]

    def _usable(self, kind: Kind) -> bool:
        """Whether what lies there can be gone on with: a Python that fits, a pip that runs, and no engine of another kind (both engines
        install the same files)."""
        interpreter = ask(str(self.python))
        if interpreter is None or not interpreter.fits:
            return False
        if self._stamp().get("kind", kind.value) != kind.value:
            return False
        pip = subprocess.run([str(self.python), "-m", "pip", "--version"], capture_output=True, check=False)
        return pip.returncode == 0

    def _stamp(self) -> dict[str, str]:
        try:
            stamp = json.loads((self.folder / STAMP).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return stamp if isinstance(stamp, dict) else {}

    def _write(self, stamp: dict[str, str]) -> None:
        partial = self.folder / (STAMP + ".partial")
        partial.write_text(json.dumps(stamp, indent=1) + "\n", encoding="utf-8")
        os.replace(partial, self.folder / STAMP)


def create(interpreter: Interpreter, folder: Path) -> None:
    made = subprocess.run([interpreter.path, "-m", "venv", str(folder)], capture_output=True, text=True, check=False)
    if made.returncode != 0:
        lines = (made.stdout + made.stderr).strip().splitlines()
        raise Stop(f"{interpreter.path} could not make a virtual environment: {lines[-1] if lines else made.returncode}")


def mend(site_packages: Path) -> list[str]:
    """Forget packages that an interrupted pip left half written, so that pip writes them again. Returns their folders' names.

    pip writes a package's RECORD last, yet takes any package with a METADATA file for installed.
    """
    forgotten = []
    for folder in sorted(site_packages.glob("*.dist-info")):
        if not whole(folder):
            shutil.rmtree(folder)
            forgotten.append(folder.name)
    for leftover in site_packages.glob("~*"):  # what pip was about to delete
        shutil.rmtree(leftover, ignore_errors=True)
    return forgotten


def whole(folder: Path) -> bool:
    """Whether every file that the package's RECORD names is there."""
    try:
        with (folder / "RECORD").open(encoding="utf-8", newline="") as record:
            names = [row[0] for row in csv.reader(record) if row]
    except OSError:
        return False
    return bool(names) and all((folder.parent / name).exists() for name in names if not name.endswith(".pyc"))
