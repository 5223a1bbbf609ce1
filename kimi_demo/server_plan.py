"""Will a launch fit, here or on a machine from the list: the same figures as the command `plan`, for the options of the Server tab."""

from dataclasses import replace
from pathlib import Path

from kimi_demo.dialect.failure import Failure
from kimi_demo.engines.accelerators import free_host_memory, gpus
from kimi_demo.engines.launch import Launch
from kimi_demo.engines.launch_options import LaunchOptions
from kimi_demo.engines.plan.arguments import layout_of, missing_flags
from kimi_demo.engines.plan.fit import plan, plan_on_cpu
from kimi_demo.engines.plan.known import K25
from kimi_demo.engines.plan.layout import Layout
from kimi_demo.engines.plan.machines import machine, this_machine
from kimi_demo.engines.plan.model import find_model
from kimi_demo.engines.plan.report import PlanReport
from kimi_demo.engines.plan.surroundings import surroundings
from kimi_demo.plan_command import described
from kimi_demo.ui.texts import Texts

HERE = "here"


def planned(launch: Launch, options: LaunchOptions, place: str, words: Texts, *, kimi: bool = False) -> PlanReport:
    """place: HERE, or the key of a machine; kimi: for Kimi K2.5 itself, whose figures are known, in place of the launch's model.

    Reads the disk and asks the driver: not for the event loop.
    Raises Failure: plan.unknown_machine, model.path_missing, server.argument_wrong, those of the model's config.json.
    """
    there = this_machine(gpus()) if place == HERE else machine(place)
    if place != HERE and there is None:
        raise Failure("plan.unknown_machine", name=place[:60], known=HERE)
    model = find_model(K25 if kimi else launch.model)
    arguments = options.arguments()
    # The stand-in takes a share of its own, unless one was chosen.
    share = options.gpu_memory_utilization if kimi else launch.gpu_memory_utilization
    layout = layout_of(
        arguments,
        Layout(tensor=options.tensor_parallel_size, context=options.max_model_len, utilization=share),
    )
    if there is None:
        made = plan_on_cpu(model.shape, layout, free_host_memory(), options.cpu_kv_cache_gb, model.on_disk)
    else:
        made = plan(model.shape, layout, there, model.on_disk)
    spoken = replace(model.shape, kimi=model.shape.kimi or (launch.rehearsal and not kimi))  # the stand-in speaks as Kimi does
    remarks = [*made.remarks, *missing_flags([*_flags(launch), "--trust-remote-code", *arguments], spoken)]
    if place == HERE:
        remarks += surroundings("127.0.0.1", 0, layout.tensor if there is not None else 1)
    return described(made, Path(model.name).name, remarks, words)


_OF_NOW = frozenset(("plan.gpu_in_use", "plan.host_memory"))
"""Refusals that go by the memory that is free at this moment."""


def warned(launch: Launch, options: LaunchOptions, words: Texts, *, ours: bool) -> list[str]:
    """What can be known to go wrong with a start on this machine, as sentences; nothing of a model that cannot be planned. `port_taken`
    is not among it (`ServerControl.refuse_taken_port`). ours: whether a server of our own is up, which gives its memory back first.

    Reads the disk and asks the driver: not for the event loop.
    """
    try:
        found = planned(launch, options, HERE, words)
    except Failure:
        return []
    certain = not found.fits and not (ours and found.reason_code in _OF_NOW)
    return [*([words.say("server_plan.will_not", reason=found.reason)] if certain else []), *found.warnings]


def _flags(launch: Launch) -> list[str]:
    """What the demo's launch line has beside the options."""
    command = launch.command()
    return command[: len(command) - len(launch.extra)] if launch.extra else command
