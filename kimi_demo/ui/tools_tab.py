"""The function-calling tab: a question, and the rounds in which the model calls tools until it can answer."""

from html import escape

import gradio as gr

from kimi_demo.tools.guide import GUIDE_TOOLS
from kimi_demo.ui.composer import live_box, wire
from kimi_demo.ui.parameters import sampling
from kimi_demo.ui.services import Services, ToolUse
from kimi_demo.ui.texts import Texts


def build(services: Services) -> None:
    texts = services.texts
    gr.HTML(_tool_list(texts.say("tools.offered")), elem_id="tools-offered", apply_default_css=False)
    live_box("tools", texts.say("tools.label"))
    notice = gr.HTML("", elem_id="tools-notice", elem_classes="field-notice", apply_default_css=False)
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
        approve = gr.Checkbox(False, label=texts.say("tools.approve"), elem_id="tools-approve", container=False)
        clear = gr.Button(texts.say("tools.clear"), size="sm", scale=0, elem_id="tools-clear")
        gr.HTML(f'<span class="fine">{escape(texts.say("tools.preset"))}</span>', elem_classes="grow", apply_default_css=False)

    async def start(request: gr.Request, group: str, question: str, approve: bool) -> None:
        use = ToolUse(approve=approve is True)
        services.start_tools(services.access.owner_of(request), group, question, sampling("tools"), use=use)

    wire(services, "tools", field=field, send=run, stop=stop, clear=clear, notice=notice, settings=[approve], start=start)


def _views(texts: Texts) -> str:
    """How much of a conversation is shown; assets/tools.js does it."""
    buttons = "".join(
        f'<button type="button" role="radio" aria-checked="false" data-tools-view-button="{name}">'
        f"{escape(texts.say(f'tools.view.{name}'))}</button>"
        for name in ("compact", "detailed")
    )
    return f'<div class="modes" role="radiogroup" aria-label="{escape(texts.say("tools.view.label"))}">{buttons}</div>'


def _tool_list(title: str) -> str:
    tools = "".join(
        f"<li><code>{escape(tool.name)}({', '.join(tool.arguments.model_fields)})</code> {escape(tool.description)}</li>"
        for tool in GUIDE_TOOLS
    )
    return f'<details class="tool-list" id="tool-list"><summary>{escape(title)}</summary><ul>{tools}</ul></details>'
