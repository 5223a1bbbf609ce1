"""`bench`: what the page costs, each figure against the raw way. Measures from a source checkout, with the tests' server and browser."""

import argparse
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from kimi_demo.dialect.failure import Failure
from kimi_demo.ui.texts import texts

_ROOT = Path(__file__).resolve().parent.parent
MEASUREMENTS = ("start", "streams", "presses", "floor", "peers", "bytes", "lengths", "memory", "real", "batch")


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `bench`. Its handler returns 0 (measured), 1 (a measurement failed), 2 (cannot measure from here), 130 (interrupted)."""
    line = texts().say("cli.bench")
    parser = subparsers.add_parser("bench", help=line, description=line, usage="%(prog)s --json FILE [flags]", allow_abbrev=False)
    add = parser.add_argument
    add("--json", type=Path, required=True, metavar="FILE", help="where the figures go, with the raw numbers that they are made of")
    add("--quick", action="store_true", help="as little as shows that every measurement works; the figures then mean nothing")
    add("--only", action="append", choices=MEASUREMENTS, default=[], help="measure this alone; may be repeated")
    add("--base-url", metavar="URL", help="a real vLLM, for the one line that is measured on it")
    parser.set_defaults(handler=_main)


def _main(given: argparse.Namespace) -> int:
    try:
        _refuse(given.json)
    except Failure as failure:
        print(texts().sentence(failure), file=sys.stderr)
        return 2
    if str(_ROOT) not in sys.path:
        sys.path.insert(0, str(_ROOT))
    # By name, since nothing in the package may depend on scripts/ and tests/, which only a checkout has.
    measure = import_module("scripts.bench.main").main
    return int(measure(given.json, quick=given.quick, only=given.only, base_url=given.base_url))


def _refuse(into: Path) -> None:
    """Raises Failure: bench.no_checkout, bench.no_packages, bench.unwritable; before minutes of measuring, not after."""
    if not (_ROOT / "tests" / "scripted_server.py").is_file():
        raise Failure("bench.no_checkout")
    if missing := [name for name in ("playwright", "rich") if find_spec(name) is None]:
        raise Failure("bench.no_packages", packages=", ".join(missing))
    try:
        with into.open("a", encoding="utf-8"):
            pass
    except OSError as error:
        raise Failure("bench.unwritable", path=into, error=error.strerror or error) from error
