"""What the buttons and forms in tool conversations do. The one who presses must own the run that the button names."""

from typing import Literal

from fastapi import FastAPI, Request
from pydantic import Field

from kimi_demo.dialect.failure import Failure
from kimi_demo.tools.people import Verdict
from kimi_demo.tools.replay import all_rounds
from kimi_demo.ui.acts import Given, add_act
from kimi_demo.ui.services import Services
from kimi_demo.ui.tool_runs import ToolRuns, edited, from_round

MOST_EDITED_CHARS = 200_000


class OfCall(Given):
    """round: the round's number in the run, from 0; call: the call's in the round."""

    run: str
    round: int = Field(ge=0)
    call: int = Field(ge=0)


class Decided(OfCall):
    """decision: "all" is leave for this call and all that follow in the run."""

    decision: Literal["approved", "refused", "all"]


class Answered(OfCall):
    text: str


class OfRun(Given):
    run: str


class Again(OfRun):
    """round: the first to be asked for again; max_tokens: in place of the limit that was set."""

    round: int = Field(default=0, ge=0)
    max_tokens: int | None = Field(default=None, ge=1)


class Edited(OfCall):
    what: Literal["arguments", "result"]
    text: str


class Repeated(OfRun):
    times: int


def add_tools_acts(app: FastAPI, services: Services) -> None:
    runs, owner_of = ToolRuns(services), services.access.owner_of

    async def say(request: Request, given: OfCall, verdict: Verdict) -> None:
        run = await services.registry.get(given.run, services.access.owner_of(request))
        services.people.answer(run.id, given.round, given.call, verdict)

    async def decide(request: Request, given: Decided) -> None:
        if given.decision == "all":
            run = await services.registry.get(given.run, owner_of(request))
            services.people.trust(run.id, given.round, given.call)
        else:
            await say(request, given, Verdict(given.decision))

    async def answer(request: Request, given: Answered) -> None:
        await say(request, given, Verdict("answered", given.text))

    async def again(request: Request, given: Again) -> None:
        await runs.again(owner_of(request), given.run, from_round(given.round), max_tokens=given.max_tokens)

    async def go_on(request: Request, given: OfRun) -> None:
        await runs.again(owner_of(request), given.run, all_rounds)

    async def edit(request: Request, given: Edited) -> None:
        if len(given.text) > MOST_EDITED_CHARS:
            raise Failure("tools.edit_too_long", characters=f"{len(given.text):,}", limit=f"{MOST_EDITED_CHARS:,}")
        await runs.again(owner_of(request), given.run, edited(given.round, given.call, given.what, given.text))

    async def version(request: Request, given: OfRun) -> None:
        await runs.choose(owner_of(request), given.run)

    async def plain(request: Request, given: OfRun) -> None:
        await runs.plain(owner_of(request), given.run)

    async def repeat(request: Request, given: Repeated) -> None:
        await runs.repeat(owner_of(request), given.run, given.times)

    add_act(app, services, "tools_decide", Decided, decide)
    add_act(app, services, "tools_again", Again, again)
    add_act(app, services, "tools_go_on", OfRun, go_on)
    add_act(app, services, "tools_edit", Edited, edit)
    add_act(app, services, "tools_version", OfRun, version)
    add_act(app, services, "tools_plain", OfRun, plain)
    add_act(app, services, "tools_repeat", Repeated, repeat)
    add_act(app, services, "tools_answer", Answered, answer)
