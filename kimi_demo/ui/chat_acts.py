"""What the buttons in the chat do (kimi_demo/chats.py does it). The one who presses must own what the button names."""

from dataclasses import replace
from typing import Literal

from fastapi import FastAPI, Request
from pydantic import Field

from kimi_demo.chats import Asking
from kimi_demo.dialect.failure import Failure
from kimi_demo.owners import is_viewer
from kimi_demo.ui.acts import Given, add_act
from kimi_demo.ui.services import Services

MOST_SYSTEM_CHARS = 40_000


class OfRun(Given):
    run: str


class OfChat(Given):
    chat: str


class Again(OfRun):
    mode: Literal["same", "other"]


class Edited(OfRun):
    text: str


class Named(OfChat):
    title: str = Field(max_length=10_000)


class Instructed(OfChat):
    text: str


def add_chat_acts(app: FastAPI, services: Services) -> None:
    chats, owner_of = services.chats, services.access.owner_of

    async def again(request: Request, given: Again) -> None:
        def change(asking: Asking) -> Asking:
            return asking if given.mode == "same" else replace(asking, thinking=not asking.thinking)

        await chats.again(owner_of(request), given.run, change)

    async def edit(request: Request, given: Edited) -> None:
        await chats.again(owner_of(request), given.run, lambda asking: replace(asking, text=given.text))

    async def version(request: Request, given: OfRun) -> None:
        await chats.turn_to(owner_of(request), given.run)

    async def take_back(request: Request, given: OfRun) -> None:
        await chats.take_back(owner_of(request), given.run)

    async def bring_back(request: Request, given: OfChat) -> None:
        await chats.bring_back(owner_of(request), given.chat)

    async def send_waiting(request: Request, given: OfChat) -> None:
        await chats.send_waiting(owner_of(request), given.chat)

    async def rename(request: Request, given: Named) -> None:
        chats.conversations.rename(await chats.conversations.get(given.chat, owner_of(request)), given.title)

    async def delete(request: Request, given: OfChat) -> None:
        await chats.delete(owner_of(request), given.chat)

    async def restore(request: Request, given: OfChat) -> None:
        await chats.restore(owner_of(request), given.chat)

    async def system(request: Request, given: Instructed) -> None:
        most = services.settings.public_prompt_chars if is_viewer(owner_of(request)) else MOST_SYSTEM_CHARS
        if len(given.text) > most:
            raise Failure("conversations.system_too_long", characters=len(given.text), limit=most)
        chats.conversations.instruct(await chats.conversations.open(given.chat, owner_of(request)), given.text)

    add_act(app, services, "chat_again", Again, again)
    add_act(app, services, "chat_edit", Edited, edit)
    add_act(app, services, "chat_version", OfRun, version)
    add_act(app, services, "chat_take_back", OfRun, take_back)
    add_act(app, services, "chat_bring_back", OfChat, bring_back)
    add_act(app, services, "chat_send_waiting", OfChat, send_waiting)
    add_act(app, services, "chat_rename", Named, rename)
    add_act(app, services, "chat_delete", OfChat, delete)
    add_act(app, services, "chat_restore", OfChat, restore)
    add_act(app, services, "chat_system", Instructed, system)
