"""An event as the text of a row, and back."""

import json

from kimi_demo.dialect.events import EVENT, Event


def text_of(event: Event) -> str:
    """The event as JSON. Half a surrogate pair, which a model can write and UTF-8 cannot hold, stays as its JSON escape."""
    text = json.dumps(EVENT.dump_python(event), ensure_ascii=False, separators=(",", ":"), default=str)
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def event_of(text: str) -> Event:
    """Raises ValueError for a text that is no event."""
    return EVENT.validate_python(json.loads(text))


def whole(text: str) -> str:
    """`text` with U+FFFD for every half of a surrogate pair: JSON can bring one in, but UTF-8 holds none, and so neither does a
    column of the store nor a page."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
