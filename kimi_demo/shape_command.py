"""`shape`: a folder of Kimi K2.5's shape with no weights, for trying memory, speed and the split over GPUs before 595 GB are there."""

import argparse
import shlex
from dataclasses import fields, replace
from pathlib import Path

from kimi_demo.console import PhaseConsole
from kimi_demo.dialect.failure import Failure
from kimi_demo.engines.accelerators import gpus
from kimi_demo.engines.kimi_shape import DUMMY, FULL, TINY, KimiShape, check, config, most_layers, write
from kimi_demo.engines.plan.layout import Layout
from kimi_demo.engines.plan.machines import Machine, this_machine
from kimi_demo.engines.plan.shape import shape_of
from kimi_demo.engines.plan.weights import bytes_per_gpu
from kimi_demo.flags import add_flags, settings_from
from kimi_demo.settings import Settings
from kimi_demo.ui.texts import texts

FIT = "fit"
_SETTINGS = ("tensor_parallel_size", "max_model_len", "gpu_memory_utilization", "language")
_WORDS = {
    "hidden": "hidden size",
    "heads": "attention heads",
    "inner": "width of a dense layer's MLP",
    "experts": "routed experts of a layer",
    "active": "experts that a token takes",
    "expert_inner": "width of an expert",
    "dense": "dense layers before the first mixture of experts",
    "query_rank": "rank of the queries",
    "latent_rank": "rank of the cached latent",
    "nope": "part of a head without positions",
    "rope": "part of a head with positions",
    "value": "width of a head's values",
    "vocabulary": "tokens of the vocabulary",
    "context": "longest context, in tokens",
    "bits": "bits of an expert's weight: 4, or 16 (all that a CPU has)",
}


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `shape`. Its handler returns 0 (written), 1 (could not be written), 2 (bad input)."""
    line = texts().say("cli.shape")
    parser = subparsers.add_parser("shape", help=line, description=line, usage="%(prog)s --out FOLDER [flags]", allow_abbrev=False)
    add = parser.add_argument
    add("--out", type=Path, required=True, metavar="FOLDER", help="where to: a new or empty folder, or an earlier shape's")
    add("--tiny", action="store_true", help="begin from one that a CPU loads in a minute, not from Kimi K2.5's own figures")
    add("--layers", type=_layers, metavar="N", help=f"layers, or `{FIT}`: as many as the GPUs hold by the plan")
    for name, words in _WORDS.items():
        add("--" + name.replace("_", "-"), type=int, metavar="N", help=f"{words} (default: {getattr(FULL, name):,})")
    add("--gpus", type=int, default=None, metavar="N", help=f"for --layers {FIT}: GPUs (default: those of this machine)")
    add("--gpu-memory-gb", type=float, default=None, metavar="X", help=f"for --layers {FIT}: memory of each in GB of 10^9 bytes")
    add("--json", action="store_true", help="print the figures as JSON")
    add_flags(parser, _SETTINGS)
    parser.set_defaults(handler=_main)


def _layers(text: str) -> int | str:
    if text == FIT:
        return FIT
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is neither a number nor {FIT!r}") from None


def _main(given: argparse.Namespace) -> int:
    settings = settings_from(given)
    console = PhaseConsole(texts(settings.language), as_json=given.json)
    try:
        shape = _chosen(given, settings)
        check(shape)
        write(given.out, shape)
    except Failure as failure:
        console.failure(failure)
        return 1 if failure.code in ("shape.unwritable", "shape.no_base") else 2
    ranks = settings.tensor_parallel_size or 1
    weights = bytes_per_gpu(shape_of(config(shape)), Layout(tensor=ranks))
    folder = given.out.expanduser().absolute()
    console.say("shape.written", layers=shape.layers, experts=shape.experts, weights=f"{weights / 1e9:.1f}", ranks=ranks)
    for command in ("plan", "serve"):
        line = ["python", "-m", "kimi_demo", command, "--model", str(folder), "--tensor-parallel-size", str(ranks)]
        console.plain(shlex.join([*line, *(["--vllm-args", " ".join(DUMMY)] if command == "serve" else [])]))
    console.result(str(folder), event="done", folder=str(folder), weights_bytes_per_gpu=weights, **vars(shape))
    return 0


def _chosen(given: argparse.Namespace, settings: Settings) -> KimiShape:
    """Raises Failure: those of `check`, plan.number, shape.no_gpu, shape.nothing_fits."""
    asked = {field.name: getattr(given, field.name) for field in fields(KimiShape)}
    shape = replace(TINY if given.tiny else FULL, **{name: value for name, value in asked.items() if value not in (None, FIT)})
    if given.layers != FIT:
        return shape
    check(shape)
    machine = _machine(given)
    layout = Layout(
        tensor=settings.tensor_parallel_size or machine.gpus,
        context=settings.max_model_len,
        utilization=settings.gpu_memory_utilization,
    )
    most = most_layers(shape, machine, layout)
    if not most:
        raise Failure("shape.nothing_fits", size=f"{machine.gpu_bytes / 1e9:.0f}", gpus=machine.gpus)
    return replace(shape, layers=most)


def _machine(given: argparse.Namespace) -> Machine:
    for flag, value in (("--gpus", given.gpus), ("--gpu-memory-gb", given.gpu_memory_gb)):
        if value is not None and not 0 < value <= 100_000:
            raise Failure("plan.number", flag=flag, value=value)
    there = this_machine(gpus())
    if given.gpu_memory_gb is not None:
        size = round(given.gpu_memory_gb * 1e9)
    elif there is not None:
        size = there.gpu_bytes
    else:
        raise Failure("shape.no_gpu")
    return Machine("given", "", given.gpus or (there.gpus if there is not None else 1), size)
