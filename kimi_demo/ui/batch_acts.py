"""What the buttons of a batch do (kimi_demo/batch_queue.py does it). The one who presses must own the batch."""

from typing import Literal

from fastapi import FastAPI, Request
from pydantic import Field

from kimi_demo.batch_queue import Asked
from kimi_demo.batches.shelf import EngineName
from kimi_demo.batches.versions import Which
from kimi_demo.ui.acts import Given, add_act
from kimi_demo.ui.parameters import max_tokens_given, optional, sampling
from kimi_demo.ui.services import Services


class OfBatch(Given):
    batch: str


class GoOn(OfBatch):
    takeover: Literal["true", ""] = ""


class Named(OfBatch):
    title: str = Field(max_length=10_000)


class Again(OfBatch):
    which: Which
    preset: str
    max_tokens: int | float | None
    thinking: bool
    engine: EngineName
    temperature: str = Field("", max_length=40)


def add_batch_acts(app: FastAPI, services: Services) -> None:
    batches, owner_of = services.batches, services.access.owner_of

    async def stop(request: Request, given: OfBatch) -> None:
        await batches.stop(owner_of(request), given.batch)

    async def pause(request: Request, given: OfBatch) -> None:
        await batches.pause(owner_of(request), given.batch)

    async def resume(request: Request, given: OfBatch) -> None:
        await batches.resume(owner_of(request), given.batch)

    async def delete(request: Request, given: OfBatch) -> None:
        entry = await batches.get(owner_of(request), given.batch)
        await services.published.withdraw_all(entry.owner, "batch", entry.id)
        await batches.delete(entry.owner, entry.id)

    async def rename(request: Request, given: Named) -> None:
        await batches.rename(owner_of(request), given.batch, given.title)

    async def go_on(request: Request, given: GoOn) -> None:
        if given.takeover:
            services.access.require_operator(request)
        await batches.go_on(owner_of(request), given.batch, takeover=bool(given.takeover))

    async def again(request: Request, given: Again) -> dict[str, str]:
        owner = owner_of(request)
        before = await batches.get(owner, given.batch)
        warmth, limit = optional("temperature", given.temperature), max_tokens_given(given.max_tokens)
        chosen = sampling(given.preset, max_tokens=limit, temperature=warmth, seed=before.sampling.seed)
        asked = Asked(given.preset, chosen, given.thinking, given.engine)
        return {"batch": (await batches.again(owner, given.batch, given.which, asked)).id}

    async def unload(request: Request, given: Given) -> None:
        """Frees the GPUs for the chat server, which starts again when somebody asks it something."""
        services.access.require_operator(request)
        await batches.engines.unload()

    add_act(app, services, "batch_unload", Given, unload)
    add_act(app, services, "batch_stop", OfBatch, stop)
    add_act(app, services, "batch_pause", OfBatch, pause)
    add_act(app, services, "batch_resume", OfBatch, resume)
    add_act(app, services, "batch_delete", OfBatch, delete)
    add_act(app, services, "batch_rename", Named, rename)
    add_act(app, services, "batch_go_on", GoOn, go_on)
    add_act(app, services, "batch_again", Again, again)
