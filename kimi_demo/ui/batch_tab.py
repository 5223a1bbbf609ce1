"""The batch tab: prompts in, rows out as they finish, through the in-process engine."""

import re

import gradio as gr

from kimi_demo.dialect.failure import Failure
from kimi_demo.dialect.sampling import DEFAULT_PRESET, PRESETS
from kimi_demo.ui.composer import live_box, wire
from kimi_demo.ui.parameters import max_tokens_given, sampling
from kimi_demo.ui.services import Services


def build(services: Services) -> None:
    texts = services.texts
    field = gr.Textbox(
        label=texts.say("batch.input"), placeholder=texts.say("batch.placeholder"), lines=5, max_lines=16, elem_id="batch-prompts"
    )
    with gr.Row(elem_classes="options"):
        preset = gr.Dropdown(
            [(texts.say(f"preset.{key}.label"), key) for key in PRESETS],
            value=DEFAULT_PRESET,
            label=texts.say("batch.preset"),
            elem_id="batch-preset",
            scale=2,
            min_width=240,
        )
        max_tokens = gr.Number(
            PRESETS[DEFAULT_PRESET].sampling.max_tokens,
            label=texts.say("page.max_tokens"),
            precision=0,
            elem_id="batch-max-tokens",
            scale=1,
            min_width=160,
        )
        thinking = gr.Checkbox(True, label=texts.say("page.thinking"), elem_id="batch-thinking", container=False, scale=0, min_width=110)
        run = gr.Button(texts.say("page.run"), variant="primary", scale=0, elem_id="batch-run")
        stop = gr.Button(texts.say("page.stop"), variant="stop", scale=0, elem_id="batch-stop")
    takes_over = services.settings.model is not None and services.settings.base_url is None
    takeover = gr.Checkbox(False, label=texts.say("batch.takeover"), elem_id="batch-takeover", visible=takes_over)
    unload = gr.Button(texts.say("batch.unload"), size="sm", elem_id="batch-unload", visible=takes_over)
    source = gr.HTML(_source(services, DEFAULT_PRESET), elem_id="batch-preset-source", apply_default_css=False)
    notice = gr.HTML("", elem_id="batch-notice", elem_classes="field-notice", apply_default_css=False)
    live_box("batch-results", texts.say("batch.label"))

    def on_preset(key: str) -> tuple[bool, str]:
        """A preset is meant for a mode, so choosing it sets the mode; the person can change it after."""
        return PRESETS[key].thinking, _source(services, key)

    preset.input(on_preset, preset, [thinking, source], queue=False, show_progress="hidden", api_visibility="private")

    async def on_unload(request: gr.Request) -> str:
        """Frees the GPUs for the chat server, which starts again when somebody asks it something."""
        try:
            services.access.require_operator(request)
        except Failure as failure:
            return services.notice(failure)
        await services.offline.unload()
        services.lease.release("batch")
        return ""

    unload.click(on_unload, None, notice, show_progress="minimal", api_visibility="private", concurrency_id="engines", concurrency_limit=1)

    async def start(request: gr.Request, group: str, prompts: str, key: str, limit: float | None, think: bool, take: bool) -> None:
        if take:
            services.access.require_operator(request)
        lines = [line.strip() for line in re.split(r"\r\n|\r|\n", prompts) if line.strip()]
        chosen = sampling(key, max_tokens=max_tokens_given(limit))
        services.start_batch(services.access.owner_of(request), group, lines, chosen, thinking=think, takeover=take)

    wire(
        services,
        "batch",
        field=field,
        send=run,
        stop=stop,
        clear=None,
        notice=notice,
        settings=[preset, max_tokens, thinking, takeover],
        start=start,
        keep_text=True,
    )


def _source(services: Services, key: str) -> str:
    values = PRESETS[key].sampling
    parts = [f"temperature {values.temperature}", f"top-p {values.top_p}"]
    parts += [f"top-k {values.top_k}"] if values.top_k is not None else []
    parts += [f"min-p {values.min_p:g}"] if values.min_p is not None else []
    return f'<span class="fine">{" · ".join(parts)} — {services.texts.say(f"preset.{key}.source")}</span>'
