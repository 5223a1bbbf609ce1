"""The page: a header and three tabs, in Gradio Blocks. What is written live is drawn by assets/live.js into the `.live` boxes."""

import gradio as gr

from kimi_demo.ui import api, batch_tab, chat_tab, tools_tab
from kimi_demo.ui.services import Services

FOLLOW = "() => window.kimi.follow('{kind}')"
"""Makes the browser follow the visitor's current group of a kind; run after a handler that started something."""


def build(services: Services) -> gr.Blocks:
    texts = services.texts
    with gr.Blocks(title=texts.say("page.title"), analytics_enabled=False, fill_width=True) as blocks:
        with gr.Row(elem_id="header"):
            gr.HTML(f"<h1>{texts.say('page.title')}</h1>", elem_id="page-title", apply_default_css=False)
            gr.HTML('<div class="live" role="status"></div>', elem_id="model-badge", apply_default_css=False)
        with gr.Tabs(elem_id="tabs"):
            with gr.Tab(texts.say("chat.tab"), id="chat", elem_id="tab-chat"):
                chat_tab.build(services)
            with gr.Tab(texts.say("tools.tab"), id="tools", elem_id="tab-tools"):
                tools_tab.build(services)
            with gr.Tab(texts.say("batch.tab"), id="batch", elem_id="tab-batch"):
                batch_tab.build(services)
        api.build(services)
    return blocks
