"""The chat tab: a conversation with streamed replies and their thoughts."""

import gradio as gr

from kimi_demo.dialect.sampling import DEFAULT_PRESET, PRESETS
from kimi_demo.ui import pair_pane, parameter_panel, raw_pane
from kimi_demo.ui.attachments import picker_html
from kimi_demo.ui.chat_list import frame_html, system_html
from kimi_demo.ui.composer import live_box, wire
from kimi_demo.ui.services import Services
from kimi_demo.ui.view.turn_view import edit_words


def build(services: Services, blocks: gr.Blocks, *, raw: bool = True, pair: bool = True) -> None:
    """raw: with raw completions as the tab's second mode; pair: with one prompt in two ways as its third."""
    texts = services.texts
    modes = [name for name, there in (("raw", raw), ("pair", pair)) if there]
    if modes:
        raw_pane.switch(texts, modes)
    gr.HTML(frame_html(texts), elem_id="chat-list", apply_default_css=False)
    live_box("chat", texts.say("chat.label"), edit_words(texts))
    strip = '<div class="attachments" role="group"></div>'
    gr.HTML("", elem_id="chat-notice", elem_classes="field-notice", apply_default_css=False)
    gr.HTML(strip, elem_id="chat-attachments", apply_default_css=False)
    with gr.Row(elem_classes="composer"):
        gr.HTML(picker_html(texts, services.settings), elem_id="chat-picker", apply_default_css=False)
        field = gr.Textbox(
            show_label=False,
            label=texts.say("chat.input"),
            placeholder=texts.say("chat.placeholder"),
            lines=1,
            max_lines=12,
            autofocus=True,
            scale=8,
            elem_id="chat-input",
            container=False,
        )
        send = gr.Button(texts.say("chat.send"), variant="primary", scale=0, elem_id="chat-send")
        stop = gr.Button(texts.say("page.stop"), variant="stop", scale=0, elem_id="chat-stop")
    with gr.Row(elem_classes="options"):
        thinking = gr.Checkbox(True, label=texts.say("page.thinking"), elem_id="chat-thinking", container=False, scale=0, min_width=110)
        max_tokens = gr.Number(
            PRESETS[DEFAULT_PRESET].sampling.max_tokens,
            label=texts.say("page.max_tokens"),
            elem_id="chat-max-tokens",
            scale=0,
            min_width=160,
        )
        gr.HTML('<span id="chat-room" class="fine" role="status"></span>', elem_classes="room", apply_default_css=False)
        offer = gr.Button("", size="sm", scale=0, visible=False, elem_id="chat-preset-offer")
        gr.HTML(system_html(texts), elem_id="chat-system", apply_default_css=False)
        parameters = gr.Button(texts.say("parameters.open"), size="sm", scale=0, elem_id="chat-parameters-open")
        clear = gr.Button(texts.say("chat.new"), size="sm", scale=0, elem_id="chat-new")

    panel = parameter_panel.build(services, blocks, thinking, max_tokens, parameters, offer)

    wire("chat", field=field, send=send, stop=stop, settings=panel.components)
    clear.click(fn=None, js="() => window.kimi.begin()")
    if raw:
        raw_pane.build(services)
    if pair:
        pair_pane.build(services)
