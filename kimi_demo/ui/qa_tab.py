"""The QA tab, for the operator. Everything in it is fetched (qa_routes.py): its configuration, which every visitor's browser can read,
holds only an empty box."""

import gradio as gr


def build() -> None:
    gr.HTML('<div id="qa-notice"></div><div id="qa" class="qa-box"></div>', apply_default_css=False, elem_id="qa-box")
