"""What the Server tab works out without starting anything: whether a launch fits, and the lines for several machines."""

import asyncio
from dataclasses import replace
from typing import get_args

from fastapi import FastAPI

from kimi_demo.dialect.failure import Failure
from kimi_demo.engines.launch_shown import PORT
from kimi_demo.engines.nodes import Way, gpus_in, hosts_in, node_commands
from kimi_demo.engines.plan.known import K25
from kimi_demo.server_plan import planned
from kimi_demo.ui.acts import Given
from kimi_demo.ui.operators import add_operator_act
from kimi_demo.ui.server_options import options_in
from kimi_demo.ui.services import Services
from kimi_demo.ui.view.server_nodes import nodes_html
from kimi_demo.ui.view.server_plan import plan_html

WAYS: tuple[Way, ...] = get_args(Way)


class Plan(Given):
    options: dict[str, str | bool]
    model: str
    place: str
    kimi: bool = False


class Nodes(Given):
    options: dict[str, str | bool]
    model: str
    hosts: str
    gpus: str
    way: str
    kimi: bool = False


def add_server_plan_acts(app: FastAPI, services: Services) -> None:
    control, texts = services.control, services.texts

    async def plan(given: Plan) -> dict[str, str]:
        options = options_in(given.options, texts)
        launch = await control.launch_of(options, given.model)
        found = await asyncio.to_thread(planned, launch, options, given.place, texts, kimi=given.kimi)
        return {"html": plan_html(found, texts)}

    async def nodes(given: Nodes) -> dict[str, str]:
        """The lines for each host, or the field that is wrong and why."""
        way = next((known for known in WAYS if known == given.way), None)
        if way is None:
            raise Failure("acts.malformed", problem="way")
        options = options_in(given.options, texts).model_copy(update={"pipeline_parallel_size": 1, "data_parallel_size": 1})
        launch = replace(await control.launch_of(options, given.model), on_cpu=False, port=options.server_port or PORT)
        try:
            hosts, gpus = hosts_in(given.hosts), gpus_in(given.gpus)
        except Failure as failure:
            what, hint = texts.failure(failure.code, failure.params)
            return {"field": "gpus" if failure.code == "nodes.gpus" else "hosts", "problem": f"{what} {hint}"}
        if given.kimi:  # the stand-in's share of a GPU is its own
            launch = replace(launch, model=K25, named=True, gpu_memory_utilization=options.gpu_memory_utilization)
        return {"html": nodes_html(node_commands(launch, hosts, gpus, way), way, launch.port, texts)}

    add_operator_act(app, services, "server_plan", Plan, plan)
    add_operator_act(app, services, "server_nodes", Nodes, nodes)
