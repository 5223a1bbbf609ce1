"""Raw completions, the second mode of the chat tab: a prompt as text, sent to /v1/completions as it stands (ui/raw_send.py does that)."""

import json
from collections.abc import Sequence
from html import escape

import gradio as gr

from kimi_demo.ui.composer import live_box, wire
from kimi_demo.ui.services import Services
from kimi_demo.ui.texts import Texts

GUIDE_PROMPT = "我想问你，什么是深度学习算法？<think>\n"
"""The deployment guide's request to /v1/completions, with temperature 0 and max_tokens 1024."""
GUIDE_MAX_TOKENS = 1024


def switch(texts: Texts, modes: Sequence[str]) -> None:
    """The modes of the tab; assets/raw.js shows one and remembers which."""
    buttons = "".join(
        f'<button type="button" role="radio" aria-checked="false" data-chat-mode="{mode}">{escape(texts.say(f"raw.mode.{mode}"))}</button>'
        for mode in ("chat", *modes)
    )
    label = escape(texts.say("raw.mode.label"))
    gr.HTML(f'<div class="modes" role="radiogroup" aria-label="{label}">{buttons}</div>', elem_id="chat-mode", apply_default_css=False)


def build(services: Services) -> None:
    texts = services.texts
    with gr.Column(elem_id="raw-pane"):
        gr.HTML(f'<p class="fine">{escape(texts.say("raw.note"))}</p>', apply_default_css=False)
        field = gr.Textbox(
            GUIDE_PROMPT, label=texts.say("raw.input"), show_label=False, lines=4, max_lines=14, elem_id="raw-input", container=False
        )
        with gr.Row(elem_classes="options"):
            temperature = gr.Number(0, label=texts.say("parameter.temperature.label"), step=0.1, elem_id="raw-temperature", scale=0)
            max_tokens = gr.Number(GUIDE_MAX_TOKENS, label=texts.say("page.max_tokens"), elem_id="raw-max-tokens", scale=0)
            render = gr.Button(texts.say("raw.render"), size="sm", scale=0, elem_id="raw-render")
            guide = gr.Button(texts.say("raw.guide"), size="sm", scale=0, elem_id="raw-guide")
            run = gr.Button(texts.say("page.run"), variant="primary", scale=0, elem_id="raw-run")
            stop = gr.Button(texts.say("page.stop"), variant="stop", scale=0, elem_id="raw-stop")
        gr.HTML("", elem_id="raw-notice", elem_classes="field-notice", apply_default_css=False)
        live_box("raw", texts.say("raw.label"))

    wire("raw", field=field, send=run, stop=stop, settings=[temperature, max_tokens], enter=False)
    render.click(fn=None, js="() => window.kimi.raw.render()")
    guide.click(fn=None, js=f"() => window.kimi.raw.guide({json.dumps(GUIDE_PROMPT)}, 0, {GUIDE_MAX_TOKENS})")
