"""Images for the next message: chosen in the browser, kept here until it is sent, then part of it.

Which ones a visitor has chosen is known here and not in a tab, so that they survive a reload; image_routes.py is where they come and go.
"""

import asyncio
import base64
from collections.abc import Sequence
from dataclasses import replace
from html import escape
from typing import Any

from kimi_demo.dialect.conversation import ChatRequest
from kimi_demo.dialect.failure import Failure
from kimi_demo.dialect.images import image_ids, replaced
from kimi_demo.engines.vision import Vision
from kimi_demo.runs.images import Images
from kimi_demo.runs.run import Run
from kimi_demo.runs.store import Store
from kimi_demo.settings import Settings
from kimi_demo.ui.texts import Texts

_PICTURE = (
    '<svg viewBox="0 0 24 24" width="20" height="20" fill="none" stroke="currentColor" stroke-width="1.7" aria-hidden="true">'
    '<rect x="3" y="4" width="18" height="16" rx="2.5"/><circle cx="9" cy="10" r="1.6"/><path d="M4 18l5.5-5 3.5 3 3-2.5 4.5 4"/></svg>'
)

SHOWN_AT = "kimi/images/"
"""Where the page finds an image of the visitor's own, by its id."""


class Attachments:
    """most: images of one message. Belongs to the event loop's thread; files are handled on others, two at a time."""

    def __init__(self, images: Images, store: Store, *, most: int) -> None:
        self.images = images
        self.vision = Vision()
        self.most = most
        self._store = store
        self._chosen: dict[str, tuple[str, ...]] = {}
        self._decoding = asyncio.Semaphore(2)

    def chosen(self, owner: str) -> tuple[str, ...]:
        """Ids of the images that go with the owner's next message."""
        return self._chosen.get(owner, ())

    async def add(self, owner: str, data: bytes) -> None:
        """Raises Failure of the `images.` family."""
        if len(self.chosen(owner)) >= self.most:
            raise Failure("images.too_many", limit=self.most)
        async with self._decoding:
            image = await asyncio.to_thread(self.images.add, owner, data)
        chosen = self.chosen(owner)
        if image.id not in chosen:
            if len(chosen) >= self.most:
                await self._forget(owner, [image.id])
                raise Failure("images.too_many", limit=self.most)
            self._chosen[owner] = (*chosen, image.id)

    async def remove(self, owner: str, image: str) -> None:
        self._chosen[owner] = tuple(each for each in self.chosen(owner) if each != image)
        await self._forget(owner, [image])

    def sent(self, owner: str, images: tuple[str, ...]) -> None:
        """They belong to a message now."""
        self._chosen[owner] = tuple(each for each in self.chosen(owner) if each not in images)

    def put_back(self, owner: str, images: Sequence[str]) -> None:
        """A waiting message was taken back: its images go with the next one again, as far as that has room."""
        fresh = [image for image in images if image not in self.chosen(owner)]
        self._chosen[owner] = (*self.chosen(owner), *fresh)[: self.most]

    async def expanded(self, owner: str, request: ChatRequest) -> ChatRequest:
        """`request` with the images themselves in place of references. Raises Failure("images.gone")."""
        messages = list(request.messages)
        if not image_ids(messages):
            return request
        whole = await asyncio.to_thread(replaced, messages, lambda image: self.images.data_url(owner, image))
        return replace(request, messages=whole)

    async def deleted(self, run: Run) -> None:
        """A run is gone: so are its images, unless another message has them too."""
        images = run.asked.parameters.get("images") if run.asked is not None else None
        await self._forget(run.owner, [image for image in images or () if isinstance(image, str)])

    async def taken_in(self, owner: str, urls: Sequence[str]) -> list[str]:
        """Keeps images of an imported message (data URLs); their ids. Raises Failure of the `images.` family."""
        found = []
        for url in urls:
            try:
                data = base64.b64decode(url.partition(",")[2], validate=True)
            except ValueError:
                raise Failure("images.unreadable") from None
            async with self._decoding:
                found.append((await asyncio.to_thread(self.images.add, owner, data)).id)
        return found

    def sweep(self) -> None:
        """At the start: removes images of messages that were never sent."""
        self.images.sweep(self._store.mentions)

    async def _forget(self, owner: str, images: list[str]) -> None:
        for image in images:
            if image not in self.chosen(owner) and not await asyncio.to_thread(self._store.mentions, owner, image):
                await asyncio.to_thread(self.images.remove, owner, image)


def picker_html(texts: Texts, settings: Settings) -> str:
    """The button that chooses images; assets/images.js takes pasted and dropped ones as well."""
    add, reading, asking = (escape(texts.say(f"images.{name}")) for name in ("add", "reading", "asking"))
    side = settings.max_image_side
    return (
        f'<button type="button" class="act pick" data-pick-image data-side="{side}" aria-label="{add}" title="{add}">{_PICTURE}</button>'
        f'<input type="file" accept="image/png,image/jpeg,image/webp,image/gif" multiple hidden aria-label="{add}">'
        f'<span class="fine picking" role="status" data-reading="{reading}" data-asking="{asking}"></span>'
    )


def shown_html(parameters: dict[str, Any], texts: Texts) -> str:
    """The images of a sent message."""
    images = [image for image in parameters.get("images") or () if isinstance(image, str)]
    tags = "".join(
        f'<a href="{SHOWN_AT}{escape(image)}" target="_blank"><img src="{SHOWN_AT}{escape(image)}" loading="lazy" '
        f'alt="{escape(texts.say("images.shown", number=number, count=len(images)))}"></a>'
        for number, image in enumerate(images, start=1)
    )
    return f'<div class="shown-images">{tags}</div>' if tags else ""


def strip_html(images: tuple[str, ...], texts: Texts) -> str:
    """The chosen images as thumbnails, each with a button that removes it."""
    remove = escape(texts.say("images.remove"))
    shown = [escape(texts.say("images.shown", number=number, count=len(images))) for number in range(1, len(images) + 1)]
    return "".join(
        f'<span class="thumbnail"><img src="kimi/images/{image}" alt="{words}">'
        f'<button type="button" data-remove-image="{image}" aria-label="{remove}" title="{remove}">×</button></span>'
        for image, words in zip(images, shown, strict=True)
    )
