"""What a viewer of a public page may use, and how much of it is left: `GET /kimi/limits`; and the button that deletes what is theirs."""

from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse, Response

from kimi_demo.ui.acts import NO_STORE, Given, add_act
from kimi_demo.ui.leftovers import Leftovers
from kimi_demo.ui.services import Services
from kimi_demo.ui.view.limits_view import limits_html


def add_limits(app: FastAPI, services: Services, leftovers: Leftovers) -> None:
    owner_of = services.access.owner_of

    @app.get("/kimi/limits")
    async def limits(request: Request) -> Response:
        gate = services.gate
        assert gate is not None
        left = gate.left(owner_of(request))
        return HTMLResponse(limits_html(services.settings, left, gate.line.waiting, services.texts), headers=NO_STORE)

    async def forget(request: Request, given: Given) -> None:
        await leftovers.forget(owner_of(request))

    add_act(app, services, "forget_me", Given, forget)
