"""Asking a question in the tools tab, stopping it, and starting afresh; assets/composer.js calls these."""

import asyncio

from fastapi import FastAPI, Request

from kimi_demo.ui.acts import Given, add_act
from kimi_demo.ui.parameters import sampling
from kimi_demo.ui.services import Services


class Question(Given):
    """approve: whether the box of leave was ticked when the question was sent."""

    text: str
    approve: bool


def add_tools_send(app: FastAPI, services: Services) -> None:
    owner_of, starting = services.access.owner_of, asyncio.Lock()

    async def ask(request: Request, given: Question) -> None:
        owner = owner_of(request)
        use = await services.tool_use(owner, approve=given.approve)
        async with starting:  # two clicks at once must not both find it idle
            await services.require_idle(owner, "tools")
            services.start_tools(
                owner, await services.desk.group(owner, "tools"), given.text, services.within(owner, sampling("tools"), "tools"), use=use
            )

    async def stop(request: Request, given: Given) -> None:
        await services.stop(owner_of(request), "tools")

    async def clear(request: Request, given: Given) -> None:
        owner = owner_of(request)
        await services.stop(owner, "tools")
        services.desk.begin(owner, "tools")

    add_act(app, services, "tools_ask", Question, ask)
    add_act(app, services, "tools_stop", Given, stop)
    add_act(app, services, "tools_clear", Given, clear)
