"""Changes to the page, sent to the browser as JSON: ["set", id, html] and its kin. assets/live.js carries them out."""

Patch = tuple[str, str, str]
"""(what, element id, argument)."""


def set_html(target: str, html: str) -> Patch:
    """Replaces what is inside the element."""
    return ("set", target, html)


def add_html(target: str, html: str) -> Patch:
    """Adds at the end of the element."""
    return ("add", target, html)


def add_text(target: str, text: str) -> Patch:
    """Appends plain text to a running block of text; costs the same however long it already is."""
    return ("text", target, text)


def set_lazy(target: str, source: str) -> Patch:
    """What the element holds is at the address `source`, as HTML; it is fetched when the `<details>` around it is open."""
    return ("lazy", target, source)


def set_open(target: str, opened: bool) -> Patch:
    """Opens or closes a `<details>`, unless the person has done so."""
    return ("open", target, "1" if opened else "")


def set_state(target: str, state: str) -> Patch:
    """Sets `data-state`, by which the style sheet shows or hides parts."""
    return ("state", target, state)


def spinner(words: str, seconds: str) -> str:
    """A turning circle, what is being done, and for how long (both HTML)."""
    return f'<span class="spinner" aria-hidden="true"></span><span>{words}</span><span class="meta">{seconds}</span>'


def clock(elapsed: float, *, running: bool) -> str:
    """Seconds with one decimal; while `running` the browser counts on from there by itself."""
    attribute = f' data-elapsed="{elapsed:.2f}"' if running else ""
    return f'<span class="clock"{attribute}>{elapsed:.1f}</span>'
