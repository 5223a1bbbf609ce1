"""What the buttons of the Server tab do. Each asks first whether it is the operator who pressed it."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any, TypeVar, get_args

from fastapi import FastAPI, Request
from pydantic import ValidationError

from kimi_demo.dialect.failure import Failure
from kimi_demo.engines.availability import find_vllm
from kimi_demo.engines.hub.job import Source
from kimi_demo.engines.launch_objection import Objection, needs_parser, objection
from kimi_demo.engines.launch_options import LaunchOptions
from kimi_demo.engines.launch_shown import PORT, docker, shell
from kimi_demo.engines.nodes import Way, gpus_in, hosts_in, node_commands
from kimi_demo.engines.plan.known import K25
from kimi_demo.server_plan import planned
from kimi_demo.ui.acts import Given, add_act
from kimi_demo.ui.services import Services
from kimi_demo.ui.texts import Texts
from kimi_demo.ui.view.server_nodes import nodes_html
from kimi_demo.ui.view.server_plan import plan_html

SOURCES: tuple[Source, ...] = get_args(Source)
WAYS: tuple[Way, ...] = get_args(Way)


_PARSER_S = 25.0
"""How long an answer waits for vLLM's import; a browser gives up after 60 s, and on a busy machine that may be too few."""


class Takeover(Given):
    takeover: bool = False


class Form(Given):
    """options: the fields of `LaunchOptions`, as a form has them."""

    options: dict[str, str | bool]
    model: str
    takeover: bool = False


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


class Download(Given):
    """token: for this download alone; it is kept nowhere."""

    source: str
    model: str
    revision: str = ""
    token: str = ""


class Named(Given):
    name: str


class Profile(Given):
    name: str
    options: dict[str, str | bool]


class Where(Given):
    address: str
    key: str = ""


class Forgotten(Given):
    address: str


class ParserSilent(Exception):
    """vLLM's parser could not be asked; its text is a sentence in the page's language."""


G = TypeVar("G", bound=Given)


def add_server_acts(app: FastAPI, services: Services) -> None:
    control, texts = services.control, services.texts

    def act(name: str, given: type[G], do: Callable[[G], Awaitable[object]]) -> None:
        async def checked(request: Request, values: G) -> object:
            services.access.require_operator(request)
            return await do(values)

        add_act(app, services, name, given, checked)

    async def start(given: Form) -> None:
        options = options_in(given.options, texts)
        with suppress(ParserSilent, TimeoutError):  # then the start itself shows what vLLM thinks of it
            found = await against(options, given.model)
            if found is not None:
                raise Failure("launch.field", name=found.field, label=label_of(found.field, texts), problem=told_of(found))
        await control.start(options, given.model, takeover=given.takeover)

    async def against(options: LaunchOptions, model: str) -> Objection | None:
        """Raises ParserSilent where vLLM cannot be asked, TimeoutError where it has not said yet; its answer is kept for the next time."""
        if not needs_parser(options):
            return None
        launch = await control.launch_of(options, model)
        try:
            async with asyncio.timeout(_PARSER_S):
                return await objection(control.parser, launch, options)
        except Failure as failure:
            raise ParserSilent(texts.sentence(failure)) from failure

    def told_of(found: Objection) -> str:
        return texts.say("launch_problem.vllm", words=found.words)

    async def arguments(given: Form) -> dict[str, str | bool]:
        """What vLLM's own parser says: the field that is wrong and why, or a sentence for below the arguments; wait: ask again."""
        build = find_vllm()
        try:
            found = await against(options_in(given.options, texts), given.model)
        except TimeoutError:
            return {"wait": True}
        except ParserSilent as silent:
            return {"told": texts.say("server_page.arguments.unknown", reason=silent)}
        if found is not None:
            return {"field": found.field, "problem": told_of(found)}
        return {"told": texts.say("server_page.arguments.taken", version=build.version if build is not None else "")}

    async def restart(given: Takeover) -> None:
        await control.restart(takeover=given.takeover)

    async def stop(given: Given) -> None:
        await control.stop()

    async def use(given: Where) -> None:
        await control.use(given.address, given.key)

    async def forget(given: Forgotten) -> None:
        control.forget(given.address)

    async def preview(given: Form) -> dict[str, str | bool]:
        """The launch as lines, or the field that is wrong and why; ask: whether vLLM's parser has to be asked (`server_arguments`)."""
        try:
            options = options_in(given.options, texts)
            launch = await control.launch_of(options, given.model)
            await control.refuse_taken_port(options)
        except Failure as failure:
            what, hint = texts.failure(failure.code, failure.params)
            field = (
                failure.params.get("name", "")
                if failure.code in ("launch.field", "launch.port_taken")
                else "extra"
                if failure.code == "server.argument_ours"
                else "model"
            )
            return {"field": field, "problem": what if field != "model" else f"{what} {hint}"}
        build = find_vllm()
        version = build.version if build is not None else "0.32.0"
        return {"shell": shell(launch), "docker": docker(launch, version), "ask": needs_parser(options)}

    async def save(given: Profile) -> dict[str, str]:
        return {"name": control.saved.save_profile(given.name, options_in(given.options, texts))}

    async def delete(given: Named) -> None:
        control.saved.delete_profile(given.name)

    async def load(given: Named) -> dict[str, Any]:
        return {"options": control.saved.profile(given.name).model_dump()}

    async def check(given: Given) -> None:
        control.start_check()

    async def stop_check(given: Given) -> None:
        await control.stop_check()

    async def ask(given: Given) -> None:
        if control.engine.endpoint is None:
            raise Failure("server.off")
        control.ask()

    async def key(given: Given) -> dict[str, str]:
        """Of our own server, for the clipboard: it is made anew at every start and drawn nowhere."""
        server = control.engine.server
        if server is None or server.exited:
            raise Failure("server.off")
        return {"key": server.api_key}

    async def plan(given: Plan) -> dict[str, str]:
        options = options_in(given.options, texts)
        launch = await control.launch_of(options, given.model)
        found = await asyncio.to_thread(planned, launch, options, given.place, texts, kimi=given.kimi)
        return {"html": plan_html(found, texts)}

    async def download(given: Download) -> None:
        source = next((known for known in SOURCES if known == given.source), None)
        if source is None:
            raise Failure("acts.malformed", problem="source")
        control.weights.start(source, given.model, given.revision, given.token)

    async def stop_download(given: Given) -> None:
        await control.weights.stop()

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
        if given.kimi:
            launch = replace(launch, model=K25, named=True)
        return {"html": nodes_html(node_commands(launch, hosts, gpus, way), way, texts)}

    act("server_plan", Plan, plan)
    act("server_nodes", Nodes, nodes)
    act("server_weights", Download, download)
    act("server_weights_stop", Given, stop_download)
    act("server_start", Form, start)
    act("server_restart", Takeover, restart)
    act("server_stop", Given, stop)
    act("server_use", Where, use)
    act("server_forget", Forgotten, forget)
    act("server_preview", Form, preview)
    act("server_arguments", Form, arguments)
    act("server_profile_save", Profile, save)
    act("server_profile_delete", Named, delete)
    act("server_profile_load", Named, load)
    act("server_check", Given, check)
    act("server_check_stop", Given, stop_check)
    act("server_ask", Given, ask)
    act("server_key", Given, key)


_PROBLEMS = {
    "int_parsing": "whole",
    "int_parsing_size": "whole",
    "int_from_float": "whole",
    "float_parsing": "number",
    "finite_number": "number",
    "greater_than_equal": "at_least",
    "greater_than": "more_than",
    "less_than_equal": "at_most",
    "string_too_long": "too_long",
    "string_pattern_mismatch": "letters",
}


def options_in(fields: dict[str, str | bool], texts: Texts) -> LaunchOptions:
    """The form's fields. Raises Failure("launch.field", name=…, label=…, problem=…) for the first that is wrong."""
    try:
        return LaunchOptions.model_validate(fields)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        name = str(first["loc"][0]) if first["loc"] else "extra"
        known = _PROBLEMS.get(first["type"])
        limits = {key: value for key, value in first.get("ctx", {}).items() if isinstance(value, int | float)}
        limit = next(iter(limits.values()), "")
        problem = (
            texts.say(f"launch_problem.{known}", limit=limit) if known else _told(str(first["msg"]).removeprefix("Value error, "), texts)
        )
        label = label_of(name, texts)
        raise Failure("launch.field", name=name, label=label, problem=problem) from None


def label_of(name: str, texts: Texts) -> str:
    """What the form calls the field `name` of `LaunchOptions`."""
    return texts.strings.get(f"launch_option.{name}.label", name)


def _told(words: str, texts: Texts) -> str:
    """What a check of `LaunchOptions` said: "is not JSON: Expecting value", both parts in the page's language where they are known."""
    what, _, why = words.partition(": ")
    return f"{texts.problem(what)} ({texts.problem(why)})" if why else texts.problem(what)
