"""Sending a message, and stopping the reply. The page's script calls these, not Gradio's events: a message is then tied to its own
answer, so that one that could not be sent comes back into the field without touching what has been typed since."""

from fastapi import FastAPI, Request
from pydantic import Field

from kimi_demo.chats import Asking
from kimi_demo.limits.rules import Wanted
from kimi_demo.owners import is_viewer
from kimi_demo.ui.acts import Given, add_act
from kimi_demo.ui.parameter_panel import Panel
from kimi_demo.ui.services import Services

MOST_VALUES = 100


class Sent(Given):
    """chat: the conversation that the tab has open; values: of the parameters' fields, in the panel's order."""

    chat: str
    text: str
    values: list[str | bool | int | float | None] = Field(max_length=MOST_VALUES)


class OfChat(Given):
    chat: str


class OfMessage(OfChat):
    message: str


def add_chat_send(app: FastAPI, services: Services) -> None:
    owner_of, attachments = services.access.owner_of, services.attachments

    async def send(request: Request, given: Sent) -> None:
        owner = owner_of(request)
        sampling, thinking = Panel.chosen(given.values)
        sampling = services.within(owner, sampling, str(given.values[1]))
        await services.require_shelf(owner, given.chat)
        images = attachments.chosen(owner)
        if services.gate is not None and is_viewer(owner):  # also for what is to wait behind a reply that is being written
            services.gate.rules.check(Wanted(given.text, sampling.max_tokens, images=len(images)))
        attachments.sent(owner, images)  # before anything is waited for: another message at the same moment must not have them too
        try:
            await services.chats.send(owner, given.chat, Asking(given.text, sampling, thinking=thinking, images=images))
        except BaseException:
            attachments.put_back(owner, images)
            raise

    async def stop(request: Request, given: OfChat) -> None:
        await services.chats.stop(owner_of(request), given.chat)

    async def unqueue(request: Request, given: OfMessage) -> None:
        message = await services.chats.unqueue(owner_of(request), given.chat, given.message)
        attachments.put_back(owner_of(request), message.images)

    add_act(app, services, "chat_send", Sent, send)
    add_act(app, services, "chat_stop", OfChat, stop)
    add_act(app, services, "chat_unqueue", OfMessage, unqueue)
