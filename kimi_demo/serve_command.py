"""`serve`: the vLLM server alone, without a page, until Ctrl-C."""

import argparse
import asyncio
import os
import shlex
from dataclasses import replace
from typing import TYPE_CHECKING

from kimi_demo.console import PhaseConsole
from kimi_demo.dialect.failure import Failure
from kimi_demo.engines.launch import Launch
from kimi_demo.engines.launch_shown import KEY_VARIABLE, curls
from kimi_demo.engines.plan.surroundings import port_taken
from kimi_demo.flags import LOADING, add_flags, settings_from
from kimi_demo.interrupts import INTERRUPTED, cancel_on_signals
from kimi_demo.settings import Settings
from kimi_demo.ui.texts import texts

if TYPE_CHECKING:
    from kimi_demo.engines.server import Server

DEFAULT_PORT = 8000
_SETTINGS = (*LOADING, "server_port", "server_api_key", "data", "language")


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `serve`. Its handler returns 0 (stopped), 1 (could not start, or ended by itself), 2 (bad input), 130 (stopped as it started)."""
    line = texts().say("cli.serve")
    parser = subparsers.add_parser("serve", help=line, description=line, usage="%(prog)s [flags]", allow_abbrev=False)
    parser.add_argument("--anyway", action="store_true", help="start even where the plan says that the model does not fit")
    parser.add_argument("--json", action="store_true", help="print phases and the address as JSON, an object a line")
    add_flags(parser, _SETTINGS)
    parser.set_defaults(handler=_main)


def _main(given: argparse.Namespace) -> int:
    settings = settings_from(given)
    return asyncio.run(_serve(settings, PhaseConsole(texts(settings.language), as_json=given.json), anyway=given.anyway))


async def _serve(settings: Settings, console: PhaseConsole, *, anyway: bool) -> int:
    from kimi_demo.engines.model_folder import ModelFolder
    from kimi_demo.engines.server import Server

    cancel_on_signals(lambda: console.say("serve.stopping"))
    ready = False
    try:
        launch = replace(await _launch(settings, await ModelFolder(settings).path(console.event)), anyway=anyway)
        console.say("serve.command", command=shlex.join(launch.command()))
        server = await Server.start(launch, console.event)
        try:
            ready = True
            await _tell(server, console)
            await server.wait_exit()
            console.failure(server.failure())
            return 1
        finally:
            await server.stop()
    except asyncio.CancelledError:
        console.say("serve.stopped")
        return 0 if ready else INTERRUPTED
    except Failure as failure:
        console.failure(failure)
        if failure.code.startswith("plan."):
            console.say("serve.anyway")
        return 2 if failure.code in _BAD_INPUT else 1


_BAD_INPUT = frozenset(("server.argument_ours", "server.port_in_use", "model.path_missing"))


async def _launch(settings: Settings, model: str) -> Launch:
    """Raises Failure: server.argument_ours, server.port_in_use."""
    launch = Launch.from_settings(settings, model)
    if settings.server_port is None:
        launch = replace(launch, port=DEFAULT_PORT)
    if settings.server_api_key is None:
        launch = replace(launch, api_key=os.environ.get(KEY_VARIABLE, ""))
    if await asyncio.to_thread(port_taken, "127.0.0.1", launch.port):
        raise Failure("server.port_in_use", port=launch.port)
    # A folder of its own: a page with the same data folder writes its server's log beside it.
    return replace(launch, logs=launch.logs / f"serve-{launch.port}")


async def _tell(server: "Server", console: PhaseConsole) -> None:
    """Where it is, and the guide's requests ready to paste."""
    from kimi_demo.engines.endpoint import Endpoint

    endpoint = await Endpoint.connect(server.base_url, server.api_key or None, "vllm")
    await endpoint.aclose()
    console.say("serve.ready", log=server.launch.logs)
    for _, line in curls(server.base_url, endpoint.info.id, KEY_VARIABLE if server.api_key else ""):
        console.plain(line)
    if server.api_key:
        console.say("serve.key", variable=KEY_VARIABLE)
    console.result(server.base_url, event="ready", base_url=server.base_url, model=endpoint.info.id, pid=server.pid)
