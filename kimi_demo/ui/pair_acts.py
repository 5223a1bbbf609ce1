"""Asking one prompt in two ways at once, stopping both, and the choices of the two columns; assets/pair.js calls these."""

from functools import partial

from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse, Response

from kimi_demo.dialect.conversation import ChatRequest, user
from kimi_demo.dialect.events import Asked
from kimi_demo.dialect.failure import Failure
from kimi_demo.dialect.sampling import Sampling
from kimi_demo.runs.conversations import shortened
from kimi_demo.runs.run import Run
from kimi_demo.tasks import chat, chat_elsewhere
from kimi_demo.ui.acts import NO_STORE, Given, add_act
from kimi_demo.ui.parameters import max_tokens_given, sampling
from kimi_demo.ui.services import Services
from kimi_demo.ui.view.pair_view import SIDES, Side, sides_html

KIND = "pair"


class Way(Given):
    """How one column asks. server: a base URL that the operator keeps; "" is what answers the chat."""

    preset: str
    thinking: bool
    server: str = ""


class Prompt(Given):
    """max_tokens: what stands in its field; None in an empty one."""

    text: str
    max_tokens: float | str | None
    left: Way
    right: Way


def add_pair(app: FastAPI, services: Services) -> None:
    access, registry, control = services.access, services.registry, services.control
    owner_of = access.owner_of

    @app.get("/kimi/pair/sides")
    async def sides(request: Request) -> Response:
        addresses = control.addresses() if access.is_operator(request) else []
        return HTMLResponse(sides_html(addresses, services.texts), headers=NO_STORE)

    async def run(request: Request, given: Prompt) -> None:
        owner = owner_of(request)
        ways: dict[Side, Way] = {"left": given.left, "right": given.right}
        if any(way.server for way in ways.values()):
            access.require_operator(request)
            for way in ways.values():
                if way.server and way.server not in control.addresses():
                    raise Failure("pair.no_server", address=way.server[:200])
        services.chats.check(given.text)
        chosen = {side: sampling(way.preset, max_tokens=max_tokens_given(given.max_tokens)) for side, way in ways.items()}
        if registry.active(owner, KIND):
            raise Failure("runs.busy")
        group = services.desk.begin(owner, KIND)
        begun: list[Run] = []
        try:
            for side in SIDES:
                begun.append(start(services, owner, group, side, given.text, chosen[side], ways[side]))
        except Failure:
            for other in begun:
                other.cancel()
            raise

    async def stop(request: Request, given: Given) -> None:
        for each in registry.active(owner_of(request), KIND):
            each.cancel()

    add_act(app, services, "pair_run", Prompt, run)
    add_act(app, services, "pair_stop", Given, stop)


def start(services: Services, owner: str, group: str, side: Side, text: str, chosen: Sampling, way: Way) -> Run:
    """One column's reply. Raises Failure: runs.too_many, runs.closing."""
    request = ChatRequest([user(text)], chosen, thinking=way.thinking)

    async def work(run: Run) -> None:
        if way.server:
            await chat_elsewhere(run, services.chat_engine, partial(services.control.connected, way.server), request)
        else:
            await chat(run, services.chat_engine, request)

    about = {"side": side, "preset": way.preset, "thinking": way.thinking, **({"server": way.server} if way.server else {})}
    asked = Asked(text, {**chosen.model_dump(exclude_none=True), **about})
    return services.registry.start(owner, KIND, work, title=shortened(text, 80), asked=asked, group=group)
