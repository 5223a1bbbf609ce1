"""Images in messages: kept as references, so that a request can be stored and shown without its megabytes. Pure."""

from collections.abc import Callable, Sequence
from typing import Any

SCHEME = "kimi-image:"
"""An image of the visitor's own, by its id, where the server gets a data URL."""


def content(text: str, images: Sequence[str]) -> str | list[dict[str, Any]]:
    """The content of a user's message: plain text, or parts, the images (by id) first, as Kimi's README has them."""
    if not images:
        return text
    parts: list[dict[str, Any]] = [{"type": "image_url", "image_url": {"url": SCHEME + image}} for image in images]
    return [*parts, {"type": "text", "text": text}] if text.strip() else parts


def image_ids(value: Any) -> list[str]:
    """The ids of all images that a request (or a part of one) refers to, in order."""
    found: list[str] = []
    replaced(value, lambda image: found.append(image) or "")  # type: ignore[func-returns-value]
    return found


def replaced(value: Any, url_of: Callable[[str], str]) -> Any:
    """`value` (JSON) with the URL `url_of(id)` in place of every reference to an image."""
    if isinstance(value, dict):
        if value.get("type") == "image_url" and isinstance(image := value.get("image_url"), dict):
            url = image.get("url")
            if isinstance(url, str) and url.startswith(SCHEME):
                return value | {"image_url": image | {"url": url_of(url.removeprefix(SCHEME))}}
        return {name: replaced(each, url_of) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [replaced(each, url_of) for each in value]
    return value
