"""`POST /kimi/room`: how many tokens a message would leave for the reply, counted by the server that would answer it."""

from dataclasses import dataclass

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from kimi_demo.dialect.conversation import ChatRequest, Message, user
from kimi_demo.dialect.failure import Failure
from kimi_demo.dialect.sampling import Sampling
from kimi_demo.engines.endpoint import Endpoint
from kimi_demo.ui.services import Services
from kimi_demo.ui.texts import Texts


class Drafted(BaseModel):
    """What stands in the fields at the moment. conversation: the id of the one that the tab has open."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    conversation: str
    text: str
    thinking: bool
    max_tokens: int = Field(ge=1)


@dataclass(frozen=True)
class Room:
    """tokens: of the prompt; limit: of the context."""

    tokens: int
    limit: int

    @property
    def left(self) -> int:
        return max(0, self.limit - self.tokens)

    def words(self, wanted: int, texts: Texts) -> str:
        """What a person is told who asks for `wanted` tokens."""
        if self.left == 0:
            return texts.say("parameters.room_none", tokens=f"{self.tokens:,}", limit=f"{self.limit:,}")
        key = "parameters.room" if wanted <= self.left else "parameters.room_lowered"
        return texts.say(key, room=f"{self.left:,}", limit=f"{self.limit:,}", wanted=f"{wanted:,}")


async def room_for(messages: list[Message], *, thinking: bool, endpoint: Endpoint | None) -> Room | None:
    """None where nobody can tell: no connection, a server that does not count or does not say how long its context is."""
    if endpoint is None or endpoint.info.max_model_len is None:
        return None
    tokens = await endpoint.count_tokens(ChatRequest(messages, Sampling(), thinking=thinking))
    return None if tokens is None else Room(tokens, endpoint.info.max_model_len)


def add_room(app: FastAPI, services: Services) -> None:
    @app.post("/kimi/room")
    async def room(request: Request) -> JSONResponse:
        try:
            drafted = Drafted.model_validate_json(await request.body())
        except ValidationError:
            return JSONResponse({"words": "", "tight": False}, headers={"cache-control": "no-store"})
        owner = services.access.owner_of(request)
        messages = await services.chats.before(owner, drafted.conversation)
        if drafted.text.strip() and len(drafted.text) <= services.settings.max_prompt_chars:
            messages.append(user(drafted.text, services.attachments.chosen(owner)))
        try:
            whole = await services.attachments.expanded(owner, ChatRequest(messages, Sampling()))
        except Failure:
            whole = ChatRequest([], Sampling())
        messages = list(whole.messages)
        found = await room_for(messages, thinking=drafted.thinking, endpoint=services.chat_engine.endpoint) if messages else None
        words = "" if found is None else found.words(drafted.max_tokens, services.texts)
        tight = found is not None and drafted.max_tokens > found.left
        return JSONResponse({"words": words, "tight": tight}, headers={"cache-control": "no-store"})
