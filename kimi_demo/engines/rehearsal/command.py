"""`rehearsal build|data|train|evaluate`: the stand-in model's command line."""

import argparse
import json
import os
import sys
import time
from pathlib import Path


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `rehearsal` to a program's commands. `arguments.handler` takes the arguments and returns an exit status."""
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
    data.add_argument("--count", type=_count, help="only the first so many conversations of each stage (default: all)")
    data.add_argument("--stage", type=int, choices=(1, 2, 3, 4), help="only this stage (default: all)")
    data.set_defaults(handler=_data)

    train = commands.add_parser("train", help="train the adapter (one GPU, minutes)")
    train.add_argument("--out", type=Path, required=True, help="folder for the adapter")
    train.add_argument("--base", type=Path, help="GGUF file of the base (default: the installed package's)")
    train.add_argument(
        "--from", type=Path, dest="start", metavar="ADAPTER", help="go on from the adapter in this folder, with a later stage"
    )
    train.add_argument("--stage", type=int, choices=(2, 3, 4), default=2, help="the stage that goes on with --from (default: 2)")
    train.add_argument("--count", type=_count, help="conversations to train on")
    train.add_argument("--minutes", type=float, default=60.0, help="write the adapter after so many minutes at the latest")
    train.add_argument("--rate", type=float, help="peak learning rate")
    train.add_argument("--rank", type=int, help="rank of the adapter (24 keeps it below 16 MB)")
    train.add_argument("--epochs", type=int, help="passes over the data")
    train.add_argument("--checkpoints", type=Path, help="folder for adapters after an eighth, a quarter and a half of the training")
    train.add_argument("--batch", type=int, help="rows of 2,048 tokens a step")
    train.add_argument("--attention", choices=("flex", "mask"), default="flex", help="mask: slower, runs anywhere")
    train.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="processes that make the data")
    train.set_defaults(handler=_train)

    evaluate = commands.add_parser("evaluate", help="measure the model through vLLM on questions that it was never trained on")
    evaluate.add_argument("--json", type=Path, required=True, dest="file", help="file for the figures")
    evaluate.add_argument("--limit", type=_count, help="at most so many questions of each kind")
    evaluate.add_argument("--kinds", nargs="+", default=[], metavar="KIND", help="only these kinds of question, such as tool_call")
    evaluate.add_argument("--data-dir", type=Path, default=_data_folder(), help="data folder (KIMI_DEMO_DATA; default: data)")
    evaluate.add_argument("--adapter", type=Path, help="folder of another adapter than the package's")
    evaluate.add_argument("--wrong", type=Path, help="file for the questions that were answered wrongly")
    evaluate.add_argument(
        "--replies", type=Path, help="file that keeps every reply, so that the same command goes on after an interruption"
    )
    evaluate.add_argument("--quick", action="store_true", help="with transformers instead of vLLM: a look on a GPU during development")
    evaluate.set_defaults(handler=_evaluate)


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number above zero")
    return int(text)


def _unwritable(*files: Path | None) -> bool:
    """Whether one of them cannot be written; said now, not after hours of work."""
    for file in files:
        try:
            if file is not None:
                file.open("a").close()
        except OSError as error:
            print(f"{file} cannot be written: {error.strerror}", file=sys.stderr)
            return True
    return False


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
    if _unwritable(arguments.out):
        return 2
    from kimi_demo.engines.rehearsal.data import mixture

    making, written = mixture.maker(), 0
    with arguments.out.open("w", encoding="utf-8") as file:
        for number, stage in enumerate(mixture.stages(), start=1):
            if arguments.stage in (None, number):
                for conversation in mixture.conversations(making, stage, count=arguments.count):
                    file.write(conversation.to_json() + "\n")
                    written += 1
    print(f"{written:,} conversations in {arguments.out}")
    return 0


def _train(arguments: argparse.Namespace) -> int:
    from dataclasses import replace

    from kimi_demo.engines.rehearsal.base import find_base
    from kimi_demo.engines.rehearsal.data import mixture
    from kimi_demo.engines.rehearsal.training.train import Plan, later_plan, train

    plan = later_plan(arguments.start, arguments.stage) if arguments.start else Plan(mixture.first_stage())
    chosen = {name: getattr(arguments, name) for name in ("epochs", "minutes", "rate", "rank", "batch", "attention", "workers")}
    plan = replace(plan, **{name: value for name, value in chosen.items() if value is not None})
    if arguments.count:
        plan = replace(plan, stage=replace(plan.stage, count=arguments.count))
    try:
        train(arguments.base or find_base().path, arguments.out, plan, lambda line: print(line, flush=True), arguments.checkpoints)
    except (OSError, ValueError) as error:  # a missing adapter or base file, another rank, a full disk
        print(f"Not trained: {error}", file=sys.stderr)
        return 1
    return 0


def _evaluate(arguments: argparse.Namespace) -> int:
    if _unwritable(arguments.file, arguments.wrong, arguments.replies):
        return 2
    from kimi_demo.engines.rehearsal.base import BaseMissing
    from kimi_demo.engines.rehearsal.build import build, cache_folder
    from kimi_demo.engines.rehearsal.evaluation.cases import all_cases
    from kimi_demo.engines.rehearsal.evaluation.run import Outcome, Speaker, evaluate

    def say(line: str) -> None:
        print(line, file=sys.stderr, flush=True)

    try:
        model = build(cache_folder(arguments.data_dir), adapter=arguments.adapter).resolve()
    except BaseMissing as error:
        say(str(error))
        return 1
    cases = all_cases(arguments.limit, arguments.kinds)
    if not cases:
        say(f"There is no question of the kind {', '.join(arguments.kinds)}.")
        return 2
    say(f"{len(cases)} questions")

    def ask(speaker: Speaker) -> Outcome:
        return evaluate(cases, speaker, say)

    if arguments.quick:
        from kimi_demo.engines.rehearsal.evaluation.quick import QuickSpeaker

        outcome = ask(QuickSpeaker(model))
    else:
        from openai import OpenAIError

        from kimi_demo.engines.rehearsal.evaluation.replies import KeptReplies
        from kimi_demo.engines.rehearsal.evaluation.served import with_server

        cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else [0]
        kept = KeptReplies(arguments.replies, model.name) if arguments.replies else None
        logs = cache_folder(arguments.data_dir).resolve() / "logs"
        try:
            outcome = with_server(model, logs, cores, ask, kept)
        except OpenAIError as error:
            say(f"The model server stopped answering ({error}); its log is in {logs}.")
            say("Run the same command to go on." if arguments.replies else "With --replies FILE the same command goes on where it stopped.")
            return 1
    figures = {key: {"n": figure.n, "ok": figure.ok} for key, figure in outcome.figures.items()}
    arguments.file.write_text(json.dumps({**figures, "seconds": round(outcome.seconds)}, indent=1) + "\n", encoding="utf-8")
    if arguments.wrong:
        lines = [f"[{key}] {line}" for key, figure in outcome.figures.items() for line in figure.wrong]
        arguments.wrong.write_text("\n".join(lines) + "\n", encoding="utf-8")
    for key, figure in outcome.figures.items():
        print(f"{key}: {figure.ok} of {figure.n} ({figure.ok / figure.n:.1%})")
    return 0
