"""`rehearsal build|data|train|evaluate`: the stand-in model's command line."""

import argparse
import os
import sys
import time
from pathlib import Path


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `rehearsal` to a program's commands. The chosen handler is in `arguments.handler`: it takes the arguments, returns an exit status."""
    parser = subparsers.add_parser("rehearsal", help="the tiny stand-in model: build, data, train, evaluate")
    add_commands(parser)


def add_commands(parser: argparse.ArgumentParser) -> None:
    commands = parser.add_subparsers(dest="rehearsal_command", required=True)

    build = commands.add_parser("build", help="merge base and adapter into a model folder and print its path")
    build.add_argument("--data-dir", type=Path, default=_data_folder(), help="data folder (KIMI_DEMO_DATA; default: data)")
    build.add_argument("--adapter", type=Path, help="folder of another adapter than the package's")
    build.set_defaults(handler=_build)


def _data_folder() -> Path:
    return Path(os.environ.get("KIMI_DEMO_DATA", "data"))


def _build(arguments: argparse.Namespace) -> int:
    from kimi_demo.engines.rehearsal.base import BaseMissing
    from kimi_demo.engines.rehearsal.build import build, cache_folder

    start = time.monotonic()
    try:
        path = build(cache_folder(arguments.data_dir), lambda phase: print(f"{phase} …", file=sys.stderr, flush=True), arguments.adapter)
    except BaseMissing as error:
        print(error, file=sys.stderr)
        return 1
    print(f"ready after {time.monotonic() - start:.1f} s", file=sys.stderr)
    print(path)
    return 0
