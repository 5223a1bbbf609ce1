"""What only the operator gets: acts and answers that first look who asks. A hidden button protects nothing."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from fastapi import FastAPI, Request
from fastapi.responses import PlainTextResponse, Response

from kimi_demo.dialect.failure import Failure
from kimi_demo.ui.acts import NO_STORE, Given, add_act
from kimi_demo.ui.services import Services

G = TypeVar("G", bound=Given)


def add_operator_act(app: FastAPI, services: Services, name: str, given: type[G], do: Callable[[G], Awaitable[object]]) -> None:
    """As `add_act`; others than the operator are told so in a sentence."""

    async def checked(request: Request, values: G) -> object:
        services.access.require_operator(request)
        return await do(values)

    add_act(app, services, name, given, checked)


def refused(services: Services, request: Request) -> Response | None:
    """The answer to whoever is not the operator; None for the operator."""
    try:
        services.access.require_operator(request)
    except Failure as failure:
        return PlainTextResponse(services.texts.sentence(failure), 403, NO_STORE)
    return None
