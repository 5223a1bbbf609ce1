"""The browser that the page's tests drive: a system Chromium, else Playwright's own."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from scripts.installer import apt
from scripts.installer.stop import Stop

NAMES = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")
PACKAGES = ["chromium", "fonts-noto-cjk", "fonts-noto-color-emoji"]
_PLAYWRIGHTS_OWN = """
from playwright.sync_api import sync_playwright
with sync_playwright() as playwright:
    print(playwright.chromium.executable_path)
"""


def system_chromium() -> str | None:
    """Path of a Chromium or Chrome that starts; KIMI_DEMO_CHROMIUM names another. None: use Playwright's own.

    (Ubuntu's apt package is a stub that only tells to install a snap, hence "that starts".)
    """
    named = os.environ.get("KIMI_DEMO_CHROMIUM")
    for path in [named] if named else map(shutil.which, NAMES):
        if path and _starts(path):
            return path
    return None


def ensure(python: Path, log: Path) -> str:
    """Have a browser; returns its path. python: the environment's, with playwright. Raises Stop, saying what failed."""
    found = system_chromium() or _playwrights_own(python)
    if found and _draws_chinese():
        return found
    if apt.usable():
        packages = PACKAGES if not found else PACKAGES[1:]
        apt.install(packages, log)
        found = system_chromium() or found
    if not found:
        found = _install_playwrights_own(python, log)
    if not found:
        raise Stop(
            "The browser tests need Chromium, and neither apt nor Playwright could bring it: install Chromium or Chrome yourself "
            f"(or name it with KIMI_DEMO_CHROMIUM), then run this again. ({log})"
        )
    return found


def _starts(path: str) -> bool:
    try:
        return subprocess.run([path, "--version"], capture_output=True, timeout=60, check=False).returncode == 0
    except (OSError, subprocess.SubprocessError):
        return False


def _draws_chinese() -> bool:
    """Whether some font has Chinese characters; True where there is no `fc-list` to ask (macOS has them)."""
    lister = shutil.which("fc-list")
    return lister is None or bool(subprocess.run([lister, ":lang=zh"], capture_output=True, check=False).stdout.strip())


def _playwrights_own(python: Path) -> str | None:
    asked = subprocess.run([str(python), "-c", _PLAYWRIGHTS_OWN], capture_output=True, text=True, check=False)
    path = asked.stdout.strip()
    return path if path and _starts(path) else None


def _install_playwrights_own(python: Path, log: Path) -> str | None:
    command = [str(python), "-m", "playwright", "install", "chromium", *(["--with-deps"] if apt.usable() else [])]
    with log.open("a", encoding="utf-8") as record:
        print("$", *command, file=record, flush=True)
        subprocess.run(command, stdin=subprocess.DEVNULL, stdout=record, stderr=record, check=False)
    return _playwrights_own(python)
