"""Buttons inside live views. assets/live.js sends what they carry to /kimi/act/{name}; kimi_demo/ui/acts.py does it."""

from html import escape

# Drawn in a square of 16, with strokes only.
ICONS = {
    "again": "M13 8a5 5 0 1 1-1.6-3.7M13 2v3h-3",
    "copy": "M5.5 5h7.5v9H5.5zM3 11V2h7",
    "bad": "M5.5 8.5 8.2 13.5c1.2 0 1.7-.8 1.5-1.8L9.3 9.5h3.2c.9 0 1.5-.8 1.3-1.7l-.9-4C12.7 3 12.1 2.5 11.3 2.5H5.5zM5.5 8.5h-3v-6h3",
    "edit": "M10.5 3l2.5 2.5L5.5 13 2.5 13.5 3 10.5z",
    "good": "M5.5 7.5 8.2 2.5c1.2 0 1.7.8 1.5 1.8L9.3 6.5h3.2c.9 0 1.5.8 1.3 1.7l-.9 4c-.2.8-.8 1.3-1.6 1.3H5.5zM5.5 7.5h-3v6h3",
    "more": "M3 8h.01M8 8h.01M13 8h.01",
    "next": "M6 3.5 10.5 8 6 12.5",
    "previous": "M10 3.5 5.5 8l4.5 4.5",
    "system": "M2 3h12v8H2zM8 11v2.5M5 13.5h6",
    "light": "M8 5a3 3 0 1 0 0 6a3 3 0 1 0 0-6M8 1v1.5M8 13.5V15M1 8h1.5M13.5 8H15M3 3l1.1 1.1M11.9 11.9 13 13M3 13l1.1-1.1M11.9 4.1 13 3",
    "dark": "M13.5 9.5A6 6 0 0 1 6.5 2.5a6 6 0 1 0 7 7z",
    "present": "M2 6V2.5h4M10 2.5h4V6M14 10v3.5h-4M6 13.5H2V10",
    "delete": "M3 4.5h10M6 4.5v-2h4v2M4.5 4.5l.6 9h5.8l.6-9",
}


def icon(name: str) -> str:
    return f'<svg class="icon" viewBox="0 0 16 16" aria-hidden="true"><path d="{ICONS[name]}"/></svg>'


def act_button(kind: str, act: str, words: str, *, picture: str = "", plain: bool = False, **values: str) -> str:
    """A button for a live view of tab `kind`. values: the act's fields; picture: an icon in place of the words; plain: without a frame."""
    data = "".join(f' data-value-{escape(name)}="{escape(value)}"' for name, value in values.items())
    return button(words, f'data-kind="{escape(kind)}" data-act="{escape(act)}"{data}', picture=picture, plain=plain)


def button(words: str, attributes: str, *, picture: str = "", plain: bool = False) -> str:
    """attributes: HTML by which assets/live.js knows what the button does."""
    told = f' aria-label="{escape(words)}" title="{escape(words)}"' if picture else ""
    style = "act plain" if plain or picture else "act"
    return f'<button type="button" class="{style}"{told} {attributes}>{icon(picture) if picture else escape(words)}</button>'
