"""Server-sent events, as the browser's EventSource reads them."""

import json


def as_event(data: object, *, name: str = "") -> str:
    """One event. JSON holds no bare line break, so one `data:` line is enough; half a surrogate pair stays as its escape."""
    head = f"event: {name}\n" if name else ""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "backslashreplace").decode()
    return f"{head}data: {text}\n\n"
