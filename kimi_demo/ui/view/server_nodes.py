"""What to run on each of several machines: its form, and the lines. Pure."""

from collections.abc import Sequence
from html import escape
from typing import get_args

from kimi_demo.engines.nodes import NodeCommand, Way
from kimi_demo.ui.texts import Texts


def nodes_form_html(texts: Texts) -> str:
    """Hosts, their GPUs and the way; assets/launch.js asks with the options of the form above it."""
    say = texts.say

    def field(name: str, control: str, style: str = "") -> str:
        return (
            f'<label class="srv-field{style}" data-node-field="{name}"><span>{escape(say(f"server_nodes.{name}"))}</span>{control}'
            f'<small class="srv-wrong" role="alert" hidden></small></label>'
        )

    ways = "".join(f'<option value="{way}">{escape(say(f"server_nodes.way_{way}"))}</option>' for way in get_args(Way))
    hosts = '<input type="text" name="hosts" placeholder="10.0.0.1, 10.0.0.2" spellcheck="false" maxlength="20000">'
    fields = field("hosts", hosts, " wide") + field("gpus", '<input type="text" name="gpus" value="8" inputmode="numeric" maxlength="6">')
    fields += field("way", f'<select name="way">{ways}</select>')
    kimi = f'<label class="srv-field srv-check"><span><input type="checkbox" name="kimi"> {escape(say("server_plan.kimi"))}</span></label>'
    return (
        f'<h3>{escape(say("server_nodes.title"))}</h3><p class="fine">{escape(say("server_nodes.note"))}</p>'
        f'<form class="srv-nodes-form" id="srv-nodes-form" autocomplete="off">{fields}{kimi}'
        f'<button type="submit" class="act">{escape(say("server_nodes.ask"))}</button></form><div id="srv-nodes"></div>'
    )


def nodes_html(nodes: Sequence[NodeCommand], way: Way, port: int, texts: Texts) -> str:
    """port: of the servers."""
    say = texts.say
    items = "".join(
        f'<li><b>{escape(node.host)}</b><div class="code"><pre tabindex="0">{escape(node.line)}</pre>'
        f'<button type="button" class="copy" aria-label="{escape(say("page.copy"))}" data-copy></button></div></li>'
        for node in nodes
    )
    return f'<p>{escape(say("plan.nodes"))}</p><ol class="srv-nodes">{items}</ol><p class="fine">{escape(nodes_note(way, port, texts))}</p>'


def nodes_note(way: Way, port: int, texts: Texts) -> str:
    """What has to be said about the lines."""
    return texts.say("plan.nodes_router") if way == "router" else texts.say("plan.nodes_where", port=port)
