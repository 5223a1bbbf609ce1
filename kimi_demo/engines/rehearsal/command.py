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

    data = commands.add_parser("data", help="write the training set as JSON lines")
    data.add_argument("--out", type=Path, required=True, help="file to write")
    data.add_argument("--count", type=int, help="only the first so many conversations (default: all)")
    data.add_argument("--seed", type=int, help="another seed than the published adapter's")
    data.set_defaults(handler=_data)

    train = commands.add_parser("train", help="train the adapter (one GPU, minutes)")
    train.add_argument("--out", type=Path, required=True, help="folder for the adapter")
    train.add_argument("--base", type=Path, help="GGUF file of the base (default: the installed package's)")
    train.add_argument("--count", type=int, help="conversations to train on")
    train.add_argument("--minutes", type=float, default=60.0, help="end the schedule after so many minutes at the latest")
    train.add_argument("--rate", type=float, help="peak learning rate")
    train.add_argument("--rank", type=int, help="rank of the adapter (24 keeps it below 16 MB)")
    train.add_argument("--batch", type=int, help="rows of 2,048 tokens a step")
    train.add_argument("--attention", choices=("flex", "mask"), default="flex", help="mask: slower, runs anywhere")
    train.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="processes that make the data")
    train.set_defaults(handler=_train)


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


def _data(arguments: argparse.Namespace) -> int:
    from kimi_demo.engines.rehearsal.data import mixture

    count = arguments.count or mixture.COUNT
    seed = mixture.SEED if arguments.seed is None else arguments.seed
    with arguments.out.open("w", encoding="utf-8") as file:
        for conversation in mixture.conversations(mixture.maker(), count, seed):
            file.write(conversation.to_json() + "\n")
    print(f"{count:,} conversations in {arguments.out}")
    return 0


def _train(arguments: argparse.Namespace) -> int:
    from kimi_demo.engines.rehearsal.base import find_base
    from kimi_demo.engines.rehearsal.training.train import Plan, train

    chosen = {name: getattr(arguments, name) for name in ("count", "minutes", "rate", "rank", "batch", "attention", "workers")}
    plan = Plan(**{name: value for name, value in chosen.items() if value is not None})
    train(arguments.base or find_base().path, arguments.out, plan, lambda line: print(line, flush=True))
    return 0
