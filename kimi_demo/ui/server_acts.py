"""What the buttons of the Server tab do. Each asks first whether it is the operator who pressed it."""

import asyncio
from contextlib import suppress
from functools import partial
from typing import Any, get_args

from fastapi import FastAPI

from kimi_demo.dialect.failure import Failure
from kimi_demo.engines.availability import find_vllm
from kimi_demo.engines.hub.job import Source
from kimi_demo.engines.launch_objection import Objection, needs_parser, objection
from kimi_demo.engines.launch_options import LaunchOptions
from kimi_demo.engines.launch_shown import docker, shell
from kimi_demo.server_plan import warned
from kimi_demo.ui.acts import Given
from kimi_demo.ui.operators import add_operator_act
from kimi_demo.ui.server_options import label_of, options_in
from kimi_demo.ui.services import Services
from kimi_demo.ui.view.notice import notice_html

SOURCES: tuple[Source, ...] = get_args(Source)


_PARSER_S = 25.0
"""How long an answer waits for vLLM's import; a browser gives up after 60 s, and on a busy machine that may be too few."""


class Takeover(Given):
    takeover: bool = False


class Form(Given):
    """options: the fields of `LaunchOptions`, as a form has them."""

    options: dict[str, str | bool]
    model: str
    takeover: bool = False


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


def add_server_acts(app: FastAPI, services: Services) -> None:
    control, texts = services.control, services.texts

    act = partial(add_operator_act, app, services)

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
        """The launch as lines, what may go wrong with it, and the field that is wrong; ask: whether vLLM's parser has to be asked
        (`server_arguments`). A port that is taken here leaves the lines as they are: they may be for another machine.
        """
        try:
            options = options_in(given.options, texts)
            launch = await control.launch_of(options, given.model)
        except Failure as failure:
            what, hint = texts.failure(failure.code, failure.params)
            field = {"launch.field": failure.params.get("name", ""), "server.argument_ours": "extra"}.get(failure.code, "model")
            return {"field": field, "problem": what if field != "model" else f"{what} {hint}"}
        build = find_vllm()
        version = build.version if build is not None else "0.32.0"
        told = await asyncio.to_thread(warned, launch, options, texts, ours=control.serves)
        found: dict[str, str | bool] = {"shell": shell(launch), "docker": docker(launch, version), "ask": needs_parser(options)}
        found["warned"] = "".join(notice_html("warning", sentence) for sentence in told)
        try:
            await control.refuse_taken_port(options)
        except Failure as failure:
            found |= {"field": "server_port", "problem": texts.failure(failure.code, failure.params)[0]}
        return found

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

    async def download(given: Download) -> None:
        source = next((known for known in SOURCES if known == given.source), None)
        if source is None:
            raise Failure("acts.malformed", problem="source")
        control.weights.start(source, given.model, given.revision, given.token)

    async def stop_download(given: Given) -> None:
        await control.weights.stop()

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
