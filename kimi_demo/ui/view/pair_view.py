"""Side by side: the choices of the two columns, and what stands above each reply. Pure."""

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any, Literal
from urllib.parse import urlsplit

from kimi_demo.dialect.sampling import PRESETS
from kimi_demo.ui.parameters import CHAT_PRESETS
from kimi_demo.ui.texts import Texts

Side = Literal["left", "right"]
SIDES: tuple[Side, ...] = ("left", "right")
BEGINNING: Mapping[Side, str] = {"left": "moonshot_thinking", "right": "moonshot_instant"}
"""The presets that are chosen at first: thinking against instant."""


def sides_html(addresses: Sequence[str], texts: Texts) -> str:
    """The two columns' choices. addresses: of other servers that may be asked; none for who may not name one."""
    return "".join(_side(side, addresses, texts) for side in SIDES)


def _side(side: Side, addresses: Sequence[str], texts: Texts) -> str:
    say = texts.say
    presets = "".join(
        f'<option value="{key}" data-thinking="{"1" if PRESETS[key].thinking else ""}"{" selected" if key == BEGINNING[side] else ""}>'
        f"{escape(say(f'preset.{key}.label'))}</option>"
        for key in CHAT_PRESETS
    )
    checked = " checked" if PRESETS[BEGINNING[side]].thinking else ""
    servers = ""
    if addresses:
        items = "".join(f'<option value="{escape(address)}">{escape(address_words(address))}</option>' for address in addresses)
        servers = (
            f"<label><span>{escape(say('pair.server'))}</span>"
            f'<select name="server"><option value="">{escape(say("pair.this_server"))}</option>{items}</select></label>'
        )
    return (
        f'<fieldset class="pair-side" data-pair-side="{side}"><legend>{escape(say(f"pair.{side}"))}</legend>'
        f'<label><span>{escape(say("parameters.preset"))}</span><select name="preset">{presets}</select></label>'
        f'<label class="check"><input type="checkbox" name="thinking"{checked}> {escape(say("page.thinking"))}</label>'
        f"{servers}</fieldset>"
    )


def title_words(parameters: Mapping[str, Any], texts: Texts) -> list[str]:
    """What stands above a reply: how it was asked."""
    preset = str(parameters.get("preset", ""))
    found = [texts.say(f"preset.{preset}.label")] if preset in PRESETS else []
    found.append(texts.say("pair.thinking" if parameters.get("thinking") else "pair.instant"))
    server = parameters.get("server")
    return [*found, address_words(str(server))] if server else found


def address_words(address: str) -> str:
    """An address without what everybody knows."""
    return urlsplit(address).netloc.rpartition("@")[2] or address


def column_html(run_id: str, parameters: Mapping[str, Any], skeleton: str, texts: Texts) -> str:
    title = "".join(f"<span>{escape(word)}</span>" for word in title_words(parameters, texts))
    return f'<div id="holder-{run_id}" data-run="{run_id}"><h4 class="pair-title">{title}</h4>{skeleton}</div>'
