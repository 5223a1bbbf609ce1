"""`plan`: will a model fit, on this machine or on another, before anything is loaded."""

import argparse
import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import get_args

from kimi_demo.dialect.failure import Failure
from kimi_demo.engines.accelerators import free_host_memory, gpus
from kimi_demo.engines.launch import Launch
from kimi_demo.engines.nodes import Way, hosts_in, node_commands
from kimi_demo.engines.plan.arguments import layout_of, missing_flags
from kimi_demo.engines.plan.fit import Plan, plan, plan_on_cpu
from kimi_demo.engines.plan.layout import Layout
from kimi_demo.engines.plan.machines import MACHINES, Machine, machine, this_machine
from kimi_demo.engines.plan.model import PlannedModel, find_model
from kimi_demo.engines.plan.remark import Remark
from kimi_demo.engines.plan.report import NodeLine, PlanReport, report
from kimi_demo.engines.plan.surroundings import surroundings
from kimi_demo.flags import LOADING, add_flags, settings_from
from kimi_demo.settings import Settings
from kimi_demo.ui.texts import Texts, texts
from kimi_demo.ui.view.server_nodes import nodes_note

FITS, DOES_NOT, BAD_INPUT = 0, 1, 2

_SETTINGS = (*LOADING, "data", "language")
_LARGEST_GB = 10_000.0


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `plan`. Its handler returns 0 (fits), 1 (does not), 2 (bad input)."""
    line = texts().say("cli.plan")
    parser = subparsers.add_parser("plan", help=line, description=line, usage="%(prog)s --model FOLDER_OR_NAME [flags]", allow_abbrev=False)
    add = parser.add_argument
    add("--gpus", type=int, metavar="N", help="GPUs to plan for (default: those of this machine)")
    add("--gpu-memory-gb", type=float, metavar="X", help="memory of each in GB of 10^9 bytes (default: this machine's)")
    add("--machine", metavar="NAME", help=f"instead of both, one of: {', '.join(one.key for one in MACHINES)}")
    add("--pipeline-parallel-size", type=int, default=None, metavar="N", help="stages (default: 1, or the hosts of --machine)")
    add("--data-parallel-size", type=int, metavar="N", help="replicas (default: 1, or the hosts with --way replicas or router)")
    add("--hosts", metavar="A,B,…", help="several machines, each with the GPUs above: also print what to run on each of them")
    add("--way", choices=get_args(Way), default="stages", help="over several machines: stages, the same by Ray, replicas, or a router")
    add("--server-port", type=int, metavar="N", help="also look whether this port is free here")
    add("--json", action="store_true", help="print the figures as JSON")
    add_flags(parser, _SETTINGS)
    parser.set_defaults(handler=_main)


def _main(given: argparse.Namespace) -> int:
    settings = settings_from(given)
    words = texts(settings.language)
    try:
        found = _planned(given, settings, words)
    except Failure as failure:
        print(words.sentence(failure), file=sys.stderr)
        return BAD_INPUT
    if given.json:
        print(found.model_dump_json(indent=2))
    else:
        print("\n".join(shown(found, words)))
    return FITS if found.fits else DOES_NOT


def _planned(given: argparse.Namespace, settings: Settings, words: Texts) -> PlanReport:
    hosts = hosts_in(given.hosts) if given.hosts is not None else []
    chosen = _machine(given)
    if hosts:
        if chosen is None:
            raise Failure("plan.no_gpu_memory")
        if chosen.hosts == 1:
            name = f"{len(hosts)} × ({chosen.name})"
            chosen = replace(chosen, name=name, gpus=chosen.gpus * len(hosts), hosts=len(hosts), free=None)
        elif chosen.hosts != len(hosts):
            raise Failure("nodes.other_count", machine=chosen.key, hosts=chosen.hosts, count=len(hosts))
        if given.way in ("replicas", "router") and given.data_parallel_size is None:
            given.data_parallel_size, given.pipeline_parallel_size = len(hosts), given.pipeline_parallel_size or 1
    given.data_parallel_size = 1 if given.data_parallel_size is None else given.data_parallel_size
    model = _model(settings)
    here = given.gpus is None and given.gpu_memory_gb is None and given.machine is None
    arguments = shlex.split(settings.vllm_args)
    layout = layout_of(arguments, _layout(given, settings, chosen))
    if chosen is None:
        made = plan_on_cpu(model.shape, layout, free_host_memory(), settings.cpu_kv_cache_gb, model.on_disk)
    else:
        made = plan(model.shape, layout, chosen, model.on_disk)
    remarks = [*made.remarks, *missing_flags([*_OURS, *arguments], model.shape)]
    if model.damage:
        remarks.append(Remark("incomplete", {"file": model.damage[0].file, "count": str(len(model.damage))}))
    if here or given.server_port is not None:
        remarks += surroundings("127.0.0.1", given.server_port or 0, layout.tensor if chosen is not None else 1)
    found = described(made, model.name, remarks, words)
    if hosts and chosen is not None:
        launch = _launch(settings, model.name)
        nodes = node_commands(launch, hosts, chosen.gpus // len(hosts), given.way)
        lines = tuple(NodeLine(host=node.host, line=node.line) for node in nodes)
        found = found.model_copy(update={"nodes": lines, "nodes_note": nodes_note(given.way, launch.port, words)})
    return found


def _launch(settings: Settings, model: str) -> Launch:
    """As it would be on the first host."""
    return Launch(
        model=model,
        logs=settings.data,
        named=True,
        model_source=settings.model_source,
        max_model_len=settings.max_model_len,
        gpu_memory_utilization=settings.gpu_memory_utilization,
        extra=tuple(shlex.split(settings.vllm_args)),
        on_cpu=False,
        port=settings.server_port or 8000,
    )


_OURS = ("--tool-call-parser=kimi_k2", "--reasoning-parser=kimi_k2", "--enable-auto-tool-choice", "--trust-remote-code")
"""What the demo's own launch line always has; --vllm-args may take it back."""


def _model(settings: Settings) -> PlannedModel:
    if settings.model is None:
        from kimi_demo.engines.rehearsal.build import build, cache_folder

        return find_model(str(build(cache_folder(settings.data.resolve()))))

    def fetch(name: str) -> Path:
        from kimi_demo.engines.hub.config import fetch_config

        return fetch_config(settings.model_source, name)

    return find_model(settings.model, fetch)


def _machine(given: argparse.Namespace) -> Machine | None:
    """None: the CPU of this machine."""
    if given.machine is not None:
        found = machine(given.machine)
        if found is None:
            raise Failure("plan.unknown_machine", name=given.machine, known=", ".join(one.key for one in MACHINES))
        return found
    if given.gpus is not None and not 1 <= given.gpus <= 100_000:
        raise Failure("plan.number", flag="--gpus", value=given.gpus)
    if given.gpu_memory_gb is not None and not 0 < given.gpu_memory_gb <= _LARGEST_GB:
        raise Failure("plan.number", flag="--gpu-memory-gb", value=given.gpu_memory_gb)
    there = this_machine(gpus())
    if given.gpus is None and given.gpu_memory_gb is None:
        return there
    if given.gpu_memory_gb is None and there is None:
        raise Failure("plan.no_gpu_memory")
    count = given.gpus if given.gpus is not None else there.gpus if there is not None else 1
    size = round(given.gpu_memory_gb * 10**9) if given.gpu_memory_gb is not None else there.gpu_bytes if there is not None else 0
    return Machine("given", f"{count} × {size / 10**9:g} GB", count, size)


def _layout(given: argparse.Namespace, settings: Settings, chosen: Machine | None) -> Layout:
    for flag, value in (("--pipeline-parallel-size", given.pipeline_parallel_size), ("--data-parallel-size", given.data_parallel_size)):
        if value is not None and not 1 <= value <= 100_000:
            raise Failure("plan.number", flag=flag, value=value)
    pipeline = given.pipeline_parallel_size or (chosen.hosts if chosen is not None else 1)
    tensor = settings.tensor_parallel_size
    if tensor is None:
        tensor = 1 if chosen is None else max(1, chosen.gpus // (pipeline * given.data_parallel_size))
    return Layout(
        tensor=tensor,
        pipeline=pipeline,
        data=given.data_parallel_size,
        context=settings.max_model_len,
        utilization=settings.gpu_memory_utilization,
    )


def described(made: Plan, model: str, remarks: list[Remark], words: Texts) -> PlanReport:
    """The plan with its sentences in the language of `words`."""
    if made.refusal is not None:
        reason = words.sentence(made.refusal)
    else:
        requests = f"{made.cache.concurrency * made.replicas:,.1f}"
        context, tokens = f"{made.layout.context:,}", f"{made.cache.tokens * made.replicas:,}"
        reason = words.say("plan.fits", tokens=tokens, requests=requests, context=context)
    return report(made, model, reason, [words.say(f"plan.warn.{remark.name}", **remark.params) for remark in remarks])


def shown(found: PlanReport, words: Texts) -> list[str]:
    """A plan for a terminal, line by line."""
    say = words.say
    told = {"model": found.model, "machine": found.machine, "attention": found.attention, "tensor": found.tensor_parallel_size}
    lines = [say("plan.title", **told, pipeline=found.pipeline_parallel_size, data=found.data_parallel_size)]
    lines += [f"{say('plan.yes') if found.fits else say('plan.no')} {found.reason}", "", say("plan.per_gpu")]
    rows = {
        "weights": found.weights_gb_per_gpu,
        "activations": found.activations_gb_per_gpu,
        "graphs": found.graphs_gb_per_gpu,
        "runtime": found.runtime_gb_per_gpu,
        "cache": found.kv_cache_gb_per_gpu,
    }
    lines += [f"  {size:8.1f} GB  {say(f'plan.part.{name}')}" for name, size in rows.items() if size]
    size, share = f"{found.gpu_memory_gb:.1f}", f"{found.gpu_memory_utilization:g}"
    lines.append("  " + (say("plan.of_host", size=size) if found.on_cpu else say("plan.of", size=size, share=share)))
    lines += ["", say("plan.cache", bytes=f"{found.kv_bytes_per_token_per_gpu:,}", tokens=f"{found.kv_cache_tokens:,}")]
    at_once = [(f"{at.context:>9,}", f"{at.requests:>9,.1f}") for at in found.concurrency_by_context]
    lines += ["  " + say("plan.at_once", context=context, requests=requests) for context, requests in at_once]
    lines += ["", *(f"! {warning}" for warning in found.warnings)] if found.warnings else []
    lines += ["", say("plan.estimate")]
    if found.nodes:
        lines += ["", say("plan.nodes"), *(f"  {node.host}:\n    {node.line}" for node in found.nodes), found.nodes_note]
    return lines
