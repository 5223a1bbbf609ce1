"""The function-calling tab: a question, and the rounds in which the model calls tools until it can answer."""

from html import escape

import gradio as gr

from kimi_demo.ui.composer import live_box, wire
from kimi_demo.ui.services import Services
from kimi_demo.ui.texts import Texts
from kimi_demo.ui.view.tool_editor import editor_html


def build(services: Services) -> None:
    texts = services.texts
    gr.HTML(_bench(texts), elem_id="tools-offered", apply_default_css=False)
    live_box("tools", texts.say("tools.label"))
    gr.HTML("", elem_id="tools-notice", elem_classes="field-notice", apply_default_css=False)
    with gr.Row(elem_classes="composer"):
        field = gr.Textbox(
            show_label=False,
            label=texts.say("tools.input"),
            placeholder=texts.say("tools.placeholder"),
            lines=1,
            max_lines=12,
            scale=8,
            elem_id="tools-input",
            container=False,
        )
        run = gr.Button(texts.say("page.run"), variant="primary", scale=0, elem_id="tools-run")
        stop = gr.Button(texts.say("page.stop"), variant="stop", scale=0, elem_id="tools-stop")
    with gr.Row(elem_classes="options"):
        gr.HTML(_views(texts), elem_id="tools-view", apply_default_css=False)
        gr.HTML(_approve(texts), elem_id="tools-approve", apply_default_css=False)
        clear = gr.Button(texts.say("tools.clear"), size="sm", scale=0, elem_id="tools-clear")
        gr.HTML(f'<span class="fine">{escape(texts.say("tools.preset"))}</span>', elem_classes="grow", apply_default_css=False)

    wire("tools", field=field, send=run, stop=stop, settings=[])
    clear.click(fn=None, js="() => window.kimi.clear()")


def _approve(texts: Texts) -> str:
    """Whether calls need leave. Kept on the server by assets/bench.js: after a reload they must not run without."""
    return f'<label class="check"><input type="checkbox" data-bench-approve> {escape(texts.say("tools.approve"))}</label>'


def _views(texts: Texts) -> str:
    """How much of a conversation is shown; assets/tools.js does it."""
    buttons = "".join(
        f'<button type="button" role="radio" aria-checked="false" data-tools-view-button="{name}">'
        f"{escape(texts.say(f'tools.view.{name}'))}</button>"
        for name in ("compact", "detailed")
    )
    return f'<div class="modes" role="radiogroup" aria-label="{escape(texts.say("tools.view.label"))}">{buttons}</div>'


def _bench(texts: Texts) -> str:
    """The tool picker and the editor, both empty: assets/bench.js fills them, for they are each visitor's own."""
    data = f'data-deleted="{escape(texts.say("bench.deleted", name="{name}"))}" data-undo="{escape(texts.say("bench.undo"))}"'
    return (
        f'<details class="bench" id="tool-list" {data}><summary><span class="bench-summary">{escape(texts.say("bench.loading"))}</span>'
        f'</summary><div class="bench-body"></div></details>{"" if texts.discreet else editor_html(texts)}'
    )
