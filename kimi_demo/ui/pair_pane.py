"""Side by side, the third mode of the chat tab: one prompt, asked in two ways at once (ui/pair_acts.py does that)."""

from html import escape

import gradio as gr

from kimi_demo.ui.composer import live_box, wire
from kimi_demo.ui.services import Services

MAX_TOKENS = 2048


def build(services: Services) -> None:
    texts = services.texts
    with gr.Column(elem_id="pair-pane"):
        gr.HTML(f'<p class="fine">{escape(texts.say("pair.note"))}</p>', apply_default_css=False)
        field = gr.Textbox(
            label=texts.say("pair.input"),
            placeholder=texts.say("pair.input"),
            show_label=False,
            lines=2,
            max_lines=10,
            elem_id="pair-input",
            container=False,
        )
        gr.HTML('<div class="pair-sides"></div>', elem_id="pair-sides", apply_default_css=False)
        with gr.Row(elem_classes="options"):
            max_tokens = gr.Number(MAX_TOKENS, label=texts.say("page.max_tokens"), elem_id="pair-max-tokens", scale=0)
            run = gr.Button(texts.say("page.run"), variant="primary", scale=0, elem_id="pair-run")
            stop = gr.Button(texts.say("page.stop"), variant="stop", scale=0, elem_id="pair-stop")
        gr.HTML("", elem_id="pair-notice", elem_classes="field-notice", apply_default_css=False)
        live_box("pair", texts.say("pair.label"))

    wire("pair", field=field, send=run, stop=stop, settings=[max_tokens], enter=False)
