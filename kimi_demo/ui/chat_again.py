"""What the buttons under a reply that is not whole do: ask again with more tokens or a briefer thought, or go on where it ended."""

import re
from dataclasses import replace

from fastapi import FastAPI, Request
from pydantic import Field

from kimi_demo.chats import Asking
from kimi_demo.dialect.conversation import ChatRequest
from kimi_demo.dialect.events import CarriedOver, Ended
from kimi_demo.dialect.failure import Failure
from kimi_demo.dialect.reply import rounds
from kimi_demo.runs.run import Run
from kimi_demo.tasks import go_on
from kimi_demo.ui.acts import Given, add_act
from kimi_demo.ui.services import Services
from kimi_demo.ui.view.again import may_continue

_CHINESE = re.compile(r"[\u4e00-\u9fff]")


class OfRun(Given):
    run: str


class More(OfRun):
    max_tokens: int = Field(ge=1)


def add_chat_again(app: FastAPI, services: Services) -> None:
    chats, owner_of = services.chats, services.access.owner_of

    async def give_more(request: Request, given: More) -> None:
        def change(asking: Asking) -> Asking:
            return replace(asking, sampling=asking.sampling.model_copy(update={"max_tokens": given.max_tokens}))

        await chats.again(owner_of(request), given.run, change)

    async def keep_brief(request: Request, given: OfRun) -> None:
        await chats.again(owner_of(request), given.run, lambda asking: replace(asking, text=asked_briefly(asking.text)))

    async def continue_(request: Request, given: OfRun) -> None:
        before = carried_over(await services.registry.get(given.run, owner_of(request)))

        async def work(run: Run, asked: ChatRequest) -> None:
            await go_on(run, services.chat_engine, asked, before)

        await chats.again(owner_of(request), given.run, work=work)

    add_act(app, services, "chat_give_more", More, give_more)
    add_act(app, services, "chat_keep_brief", OfRun, keep_brief)
    add_act(app, services, "chat_continue", OfRun, continue_)


def asked_briefly(text: str) -> str:
    """The question with the wish for a short thought, in its own language."""
    if _CHINESE.search(text):
        return f"{text}请简短思考。"
    return f"{text} Keep your reasoning brief."


def carried_over(run: Run) -> CarriedOver:
    """What the run has written, to go on from. Raises Failure("chat.cannot_continue") where there is nothing or nothing is missing."""
    replies, last = rounds(run.entries), run.entries[-1].event
    if not replies or not isinstance(last, Ended) or not may_continue(last, replies[-1]):
        raise Failure("chat.cannot_continue")
    reply = replies[-1]
    tokens = reply.usage.reasoning_tokens if reply.usage is not None else None
    if reply.carried is not None:
        tokens = reply.carried.reasoning_tokens
    elif tokens is None and reply.usage is not None and not reply.answer:
        tokens = reply.usage.completion_tokens
    return CarriedOver(run.id, reply.thought, reply.answer, reply.thinking_seconds, tokens)
