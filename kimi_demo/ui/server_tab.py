"""The Server tab, for the operator. Everything in it is fetched (server_routes.py): its configuration, which every visitor's browser
can read, holds only an empty box."""

import gradio as gr


def build() -> None:
    gr.HTML('<div id="server-notice"></div><div id="server" class="srv-box"></div>', apply_default_css=False, elem_id="server-box")
