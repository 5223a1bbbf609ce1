"""The page: a header and three tabs, in Gradio Blocks. What is written live is drawn by assets/live.js into the `.live` boxes."""

from html import escape

import gradio as gr

from kimi_demo.ui import api, batch_tab, chat_tab, tools_tab
from kimi_demo.ui.services import Services


def build(services: Services) -> gr.Blocks:
    texts = services.texts
    with gr.Blocks(title=texts.say("page.title"), analytics_enabled=False, fill_width=True) as blocks:
        gr.HTML(_header(texts.say("page.title")), apply_default_css=False)
        with gr.Tabs(elem_id="tabs"):
            with gr.Tab(texts.say("chat.tab"), id="chat", elem_id="tab-chat"):
                chat_tab.build(services)
            with gr.Tab(texts.say("tools.tab"), id="tools", elem_id="tab-tools"):
                tools_tab.build(services)
            with gr.Tab(texts.say("batch.tab"), id="batch", elem_id="tab-batch"):
                batch_tab.build(services)
        api.build(services)
    return blocks


def _header(title: str) -> str:
    """The name of the page, and the badge that assets/live.js keeps up to date."""
    return f'<header id="header"><h1>{escape(title)}</h1><div id="model-badge"><div class="live" role="status"></div></div></header>'
