"""What people are to call the model, in place of its id, which is often a folder of the machine that serves it. Pure."""

import re
from dataclasses import replace

from kimi_demo.dialect.events import Event, RoundStarted

_SLASH = re.compile(r"[/\\]")


def shown_name(identity: str, title: str = "") -> str:
    """The operator's title for it, else the last part of its id."""
    return title or last_part(identity)


def last_part(text: str) -> str:
    """Of a path, with either kind of slash; any other text as it is."""
    parts = [part for part in _SLASH.split(text) if part]
    return parts[-1] if parts else text


def under_its_name(event: Event, title: str = "") -> Event:
    """The event without the model's id."""
    if not isinstance(event, RoundStarted) or not isinstance(identity := event.request.get("model"), str):
        return event
    return replace(event, request={**event.request, "model": shown_name(identity, title)})
