"""Sending a raw prompt, stopping it, and the prompt that the chat template makes of a conversation; assets/raw.js calls these."""

import asyncio
from dataclasses import replace

from fastapi import FastAPI, Request

from kimi_demo.dialect.conversation import ChatRequest, Message, user
from kimi_demo.dialect.events import Asked, RoundStarted
from kimi_demo.dialect.failure import Failure
from kimi_demo.dialect.images import image_ids
from kimi_demo.dialect.sampling import Sampling
from kimi_demo.runs.conversations import shortened
from kimi_demo.runs.run import Run
from kimi_demo.tasks import complete
from kimi_demo.ui.acts import Given, add_act
from kimi_demo.ui.parameters import max_tokens_given, needed, sampling
from kimi_demo.ui.services import Services
from kimi_demo.ui.view.notice import notice_html


class Prompt(Given):
    """temperature, max_tokens: what stands in their fields; None in an empty one."""

    text: str
    temperature: float | str | None
    max_tokens: float | str | None


class Rendered(Given):
    """chat: the conversation that the tab has open; text: what stands in the field, for where there is none."""

    chat: str
    text: str


def add_raw_send(app: FastAPI, services: Services) -> None:
    owner_of, starting = services.access.owner_of, asyncio.Lock()

    async def run(request: Request, given: Prompt) -> None:
        owner = owner_of(request)
        chosen = sampling(
            "tools", temperature=needed("temperature", given.temperature), max_tokens=max_tokens_given(given.max_tokens), top_p=1.0
        )
        async with starting:  # two clicks at once must not both find it idle
            await services.require_idle(owner, "raw")
            start_raw(services, owner, await services.desk.group(owner, "raw"), given.text, chosen)

    async def stop(request: Request, given: Given) -> None:
        await services.stop(owner_of(request), "raw")

    async def render(request: Request, given: Rendered) -> dict[str, str]:
        """prompt: for the field; html: a notice, "" where there is nothing to say."""
        prompt, images = await rendered_conversation(services, owner_of(request), given.chat, given.text)
        html = notice_html("info", services.texts.say("raw.images_left_out", count=images)) if images else ""
        return {"prompt": prompt, "html": html}

    add_act(app, services, "raw_run", Prompt, run)
    add_act(app, services, "raw_stop", Given, stop)
    add_act(app, services, "raw_render", Rendered, render)


def start_raw(services: Services, owner: str, group: str, prompt: str, chosen: Sampling) -> Run:
    """A completion of `prompt`. Raises Failure: prompt.empty, prompt.too_long, runs.too_many."""
    services.chats.check(prompt)

    async def work(run: Run) -> None:
        await complete(run, services.chat_engine, prompt, chosen)

    asked = Asked(prompt, chosen.model_dump(exclude_none=True))
    return services.registry.start(owner, "raw", work, title=shortened(prompt, 80), asked=asked, group=group)


async def rendered_conversation(services: Services, owner: str, conversation_id: str, typed: str) -> tuple[str, int]:
    """The prompt that the chat template made of the last turn of the open conversation; of `typed` as a message where there is none.

    With the number of images in it that were left out: a raw prompt is text. Raises Failure: prompt.empty, raw.not_ready, raw.no_template.
    """
    endpoint = services.chat_engine.endpoint
    if endpoint is None:
        raise Failure("raw.not_ready")
    request = await _last_request(services, owner, conversation_id)
    if request is None:
        services.chats.check(typed)
        request = ChatRequest([user(typed)], Sampling())
    prompt = await endpoint.render(replace(request, messages=[text_of(message) for message in request.messages]))
    if prompt is None:
        raise Failure("raw.no_template")
    return prompt, len(image_ids(list(request.messages)))


def text_of(message: Message) -> Message:
    """The message without its images."""
    content = message.get("content")
    if not isinstance(content, list):
        return message
    return message | {"content": "".join(part.get("text", "") for part in content if part.get("type") == "text")}


async def _last_request(services: Services, owner: str, conversation_id: str) -> ChatRequest | None:
    chats = services.chats
    found = await (chats.conversations.find(conversation_id, owner) if conversation_id else chats.conversations.latest(owner))
    if found is None or found.deleted:
        return None
    for run in reversed((await chats.shown(found)).runs):
        sent = next((item.event for item in run.entries if isinstance(item.event, RoundStarted)), None)
        messages: list[Message] | None = sent.request.get("messages") if sent is not None else None
        if messages and run.asked is not None:
            return ChatRequest(messages, Sampling(), thinking=bool(run.asked.parameters.get("thinking", True)))
    return None
