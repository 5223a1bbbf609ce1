"""The parts that the tabs share: the live box, and how a row with a field, Send and Stop is wired."""

from typing import Any, Literal

import gradio as gr

QUICK: dict[str, Any] = {"queue": False, "show_progress": "hidden", "api_visibility": "private"}


def live_box(elem_id: str, label: str, attributes: str = "") -> None:
    """An element that assets/live.js fills. `role=log` without live announcements: a screen reader is not read every token."""
    html = f'<div class="live" role="log" aria-live="off" aria-label="{label}" tabindex="0" {attributes}></div>'
    gr.HTML(html, elem_id=elem_id, apply_default_css=False)


def wire(
    kind: Literal["chat", "tools", "raw", "pair"],
    *,
    field: gr.Textbox,
    send: gr.Button,
    stop: gr.Button,
    settings: list[gr.components.Component],
    enter: bool = True,
) -> None:
    """Send (and with `enter` that key) gives the text and the settings' values to assets/composer.js, which sends them to a route of ours.

    Not to a handler of Gradio's: its answer would come into the field late, over what has been typed since, and of several quick
    events it drops some.
    """
    triggers = [send.click, field.submit] if enter else [send.click]
    js = f"(text, ...values) => window.kimi.send('{kind}', text, values)"
    gr.on(triggers, fn=None, inputs=[field, *settings], js=js, trigger_mode="multiple")
    stop.click(fn=None, js=f"() => window.kimi.stop('{kind}')")
