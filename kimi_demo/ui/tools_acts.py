"""What the buttons and forms in tool conversations do. The one who presses must own the run that the button names."""

from typing import Literal

from fastapi import FastAPI, Request
from pydantic import Field

from kimi_demo.tools.people import Verdict
from kimi_demo.ui.acts import Given, add_act
from kimi_demo.ui.services import Services


class OfCall(Given):
    """round: the round's number in the run, from 0; call: the call's in the round."""

    run: str
    round: int = Field(ge=0)
    call: int = Field(ge=0)


class Decided(OfCall):
    decision: Literal["approved", "refused"]


class Answered(OfCall):
    text: str


def add_tools_acts(app: FastAPI, services: Services) -> None:
    async def say(request: Request, given: OfCall, verdict: Verdict) -> None:
        run = await services.registry.get(given.run, services.access.owner_of(request))
        services.people.answer(run.id, given.round, given.call, verdict)

    async def decide(request: Request, given: Decided) -> None:
        await say(request, given, Verdict(given.decision))

    async def answer(request: Request, given: Answered) -> None:
        await say(request, given, Verdict("answered", given.text))

    add_act(app, services, "tools_decide", Decided, decide)
    add_act(app, services, "tools_answer", Answered, answer)
