"""The installation from start to end. What is done already is not done again, and then needs no network."""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from scripts.installer import browser, native, pip, plan
from scripts.installer.environment import Environment
from scripts.installer.host import Kind, kind_of, this_host
from scripts.installer.interpreter import find
from scripts.installer.lock import alone
from scripts.installer.stop import Stop

ROOT = Path(__file__).resolve().parent.parent.parent


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code: 0 installed, 1 not (the reason is on stderr), 130 interrupted."""
    parser = argparse.ArgumentParser(prog="scripts/install.py", description="Install the demo into .venv; what is there already is kept.")
    parser.add_argument("--tests", action="store_true", help="also what the tests need: their packages and a browser")
    parser.add_argument("--tools", action="store_true", help="also the tests' packages, without a browser (for ruff and mypy)")
    parser.add_argument("--kind", choices=[kind.value for kind in Kind], help="instead of what this machine is taken for (KIMI_DEMO_KIND)")
    chosen = parser.parse_args(arguments)
    try:
        install(ROOT, chosen.kind or os.environ.get("KIMI_DEMO_KIND"), packages=chosen.tests or chosen.tools, with_browser=chosen.tests)
    except Stop as stop:
        print(stop, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("Stopped. Run this again to go on where it stopped.", file=sys.stderr)
        return 130
    except OSError as error:
        print(f"{error.strerror or error}{f': {error.filename}' if error.filename else ''}", file=sys.stderr)
        return 1
    return 0


def install(root: Path, kind_name: str | None, packages: bool, with_browser: bool) -> None:
    """Environment, application, rehearsal model; on request the tests' packages and a browser. Raises Stop."""
    kind = choose(kind_name)
    environment = Environment(root / ".venv")
    log = root / ".venv.log"
    with alone(root / ".venv.lock", lambda: say("Another installation runs in this folder; waiting for it.")) as held:
        application = plan.steps(kind, root)
        do("application", application, kind, environment, log, held)
        if packages:
            do("tests", plan.test_steps(root), kind, environment, log, held)
        if kind is not Kind.PAGE:
            native.ensure(log)
            build_rehearsal(root, environment.python)
        if with_browser:
            with timed("a browser"):
                browser.ensure(environment.python, log)


def choose(name: str | None) -> Kind:
    """The kind asked for, else this machine's; says so when that is the page alone. Raises Stop for an unknown name."""
    if name:
        if name not in [kind.value for kind in Kind]:
            raise Stop(f"KIMI_DEMO_KIND is {name!r}: it can be cpu, gpu or page.")
        return Kind(name)
    kind, reason = kind_of(this_host())
    if reason:
        say(reason)
    return kind


def do(part: str, steps: list[plan.Step], kind: Kind, environment: Environment, log: Path, held: int) -> None:
    """One part of the environment, unless its stamp says that it is whole."""
    fingerprint = plan.fingerprint(steps, kind, environment.folder.parent)
    if environment.has(part, fingerprint):
        return
    if part == "application":
        room(environment.folder, kind)
        with timed("the virtual environment .venv"):
            environment.prepare(kind, find)
    environment.begin(part)
    scratch = environment.folder / "tmp"
    for step in steps:
        with timed(step.title):
            pip.install(environment.python, step, log, held, scratch)
    shutil.rmtree(scratch, ignore_errors=True)
    environment.complete(part, fingerprint)


def room(folder: Path, kind: Kind) -> None:
    """Raises Stop if the disk cannot hold what is still to come."""
    taken = sum(path.lstat().st_size for path in folder.rglob("*") if not path.is_symlink()) if folder.exists() else 0
    needed = plan.DISK[kind] - taken
    free = shutil.disk_usage(folder.parent).free
    if free < needed:
        has = f"{needed / plan.GIB:.1f} GiB are needed in {folder.parent}, {free / plan.GIB:.1f} GiB are free"
        raise Stop(f"Not enough disk: {has}. Make room, then run this again.")


def build_rehearsal(root: Path, python: Path) -> None:
    """The rehearsal model in the data folder (KIMI_DEMO_DATA); at once if it is there. Raises Stop with the builder's own last line."""
    with timed("the rehearsal model"):
        command = [str(python), "-m", "kimi_demo", "rehearsal", "build"]
        built = subprocess.run(command, cwd=root, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
        if built.returncode != 0:
            lines = built.stderr.strip().splitlines()
            raise Stop(f"The rehearsal model could not be built: {lines[-1] if lines else f'exit code {built.returncode}'}")


@contextmanager
def timed(title: str) -> Iterator[None]:
    """Name what is done and how long it took; nothing at all if that is under a second, so that a second start is quiet."""
    start = time.monotonic()
    if sys.stderr.isatty():
        print(f"  {title} …", end="", file=sys.stderr, flush=True)
    done = "failed"
    try:
        yield
        done = "done"
    finally:
        seconds = time.monotonic() - start
        if sys.stderr.isatty():
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
        if seconds >= 1 or done == "failed":
            say(f"  {title}: {done} in {seconds:.0f} s")


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
