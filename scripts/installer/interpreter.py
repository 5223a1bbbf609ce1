"""Which Python the environment is made with."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from dataclasses import dataclass

from scripts.installer.stop import Stop

OLDEST, NEWEST = (3, 11), (3, 13)
NAMES = ("python3.12", "python3.11", "python3.13", "python3")
_ASK = """
import json, sys
try:
    import ensurepip, venv
    whole = True
except ImportError:
    whole = False
print(json.dumps([sys.executable, list(sys.version_info[:2]), whole]))
"""


@dataclass(frozen=True)
class Interpreter:
    """path: the executable. version: (major, minor). whole: it can make virtual environments (Debian packages that part apart)."""

    path: str
    version: tuple[int, int]
    whole: bool

    @property
    def fits(self) -> bool:
        return OLDEST <= self.version <= NEWEST


def ask(command: str) -> Interpreter | None:
    """What the interpreter says of itself; None if it does not run (a pyenv shim of a version that is not selected, for example)."""
    try:
        answer = subprocess.run([command, "-c", _ASK], capture_output=True, text=True, timeout=30, check=True)
        path, version, whole = json.loads(answer.stdout)
    except (OSError, subprocess.SubprocessError, ValueError):
        return None
    return Interpreter(path, (version[0], version[1]), whole)


def find(names: tuple[str, ...] = NAMES) -> Interpreter:
    """The interpreter that runs this file if it fits, else the first that does. Raises Stop."""
    found: list[Interpreter] = []
    for command in [sys.executable, *(path for path in map(shutil.which, names) if path)]:
        interpreter = ask(command)
        if interpreter is None:
            continue
        if interpreter.fits and interpreter.whole:
            return interpreter
        found.append(interpreter)
    raise Stop(missing(found))


def missing(found: list[Interpreter]) -> str:
    """What to do when none will do."""
    for interpreter in found:
        if interpreter.fits:
            name = "python{}.{}-venv".format(*interpreter.version)
            return f"{interpreter.path} cannot make virtual environments: sudo apt install {name}, then run this again."
    seen = ", ".join(sorted({"{}.{}".format(*interpreter.version) for interpreter in found})) or "none"
    return (
        f"Python 3.11, 3.12 or 3.13 is needed; found here: {seen}. Install one (on Debian or Ubuntu: sudo apt install python3.12-venv; "
        "anywhere: uv python install 3.12), then run this again, with PYTHON=/path/to/python3.12 if it is not on the PATH."
    )
