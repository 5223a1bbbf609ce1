"""What people are to call the model, in place of its id, which is often a folder of the machine that serves it. Pure."""

from dataclasses import replace
from pathlib import PurePath

from kimi_demo.dialect.events import Event, RoundStarted


def shown_name(identity: str, title: str = "") -> str:
    """The operator's title for it, else the last part of its id."""
    return title or PurePath(identity.rstrip("/")).name or identity


def under_its_name(event: Event, title: str = "") -> Event:
    """The event without the model's id."""
    if not isinstance(event, RoundStarted) or not isinstance(identity := event.request.get("model"), str):
        return event
    return replace(event, request={**event.request, "model": shown_name(identity, title)})
