"""Acts: what buttons inside live views do. The browser posts to /kimi/act/{name}; the button carries what the act needs to know.

A button is written as `act_button(…)` (view/act.py); assets/live.js sends it, then looks at the tab again, or shows the failure.
"""

import logging
from collections.abc import Awaitable, Callable
from typing import TypeVar

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, ValidationError

from kimi_demo.dialect.failure import Failure
from kimi_demo.ui.services import Services

log = logging.getLogger(__name__)

NO_STORE = {"cache-control": "no-store"}


class Given(BaseModel):
    """Base of what an act is given: the button's values, exactly those that the act names."""

    model_config = ConfigDict(extra="forbid", frozen=True)


G = TypeVar("G", bound=Given)


def add_act(app: FastAPI, services: Services, name: str, given: type[G], act: Callable[[Request, G], Awaitable[object]]) -> None:
    """Makes `POST /kimi/act/{name}` call `act` with the body as a `given`; `act` does it or raises Failure.

    What it returns goes to the browser when it is a dict (of JSON).

    Whose it is, and whether the visitor may, is for `act` to check.
    """

    @app.post(f"/kimi/act/{name}", name=f"act {name}")
    async def post(request: Request) -> JSONResponse:
        try:
            values = given.model_validate_json(await request.body())
        except ValidationError as error:
            return _told(services, Failure("acts.malformed", problem=error.errors()[0]["msg"]), 400)
        try:
            told = await act(request, values)
        except Failure as failure:
            return _told(services, failure, 422)
        except Exception as error:
            log.exception("%s failed", name)
            return _told(services, Failure("unexpected", error=error), 500)
        return JSONResponse(told if isinstance(told, dict) else {}, headers=NO_STORE)


def _told(services: Services, failure: Failure, status: int) -> JSONResponse:
    return JSONResponse({"html": services.notice(failure)}, status, headers=NO_STORE)
