"""The batch tab: prompts or a file in, an engine and parameters, and below them the visitor's batches (batch_live.py, batch_routes.py)."""

import asyncio
import logging
from html import escape

import gradio as gr

from kimi_demo.batch_queue import Asked
from kimi_demo.batches.shelf import EngineName
from kimi_demo.dialect.failure import Failure
from kimi_demo.dialect.sampling import DEFAULT_PRESET, PRESETS
from kimi_demo.ui.composer import QUICK, live_box
from kimi_demo.ui.parameters import max_tokens_given, optional, sampling
from kimi_demo.ui.services import Services
from kimi_demo.ui.view.batch_draft import picker_html

log = logging.getLogger(__name__)

ENGINES: tuple[EngineName, ...] = ("offline", "server")


def build(services: Services, blocks: gr.Blocks) -> None:
    texts = services.texts
    say = texts.say
    field = gr.Textbox(label=say("batch.input"), placeholder=say("batch.placeholder"), lines=5, max_lines=16, elem_id="batch-prompts")
    gr.HTML(picker_html(texts), elem_id="batch-file", apply_default_css=False)
    with gr.Row(elem_classes="options"):
        engine = gr.Radio(
            [(say(f"batch_page.engine.{name}"), name) for name in ENGINES],
            value=services.batches.engines.default,
            label=say("batch_page.engine.label"),
            elem_id="batch-engine",
        )
        preset = gr.Dropdown(
            [(say(f"preset.{key}.label"), key) for key in PRESETS],
            value=DEFAULT_PRESET,
            label=say("batch.preset"),
            elem_id="batch-preset",
            scale=2,
            min_width=220,
        )
        default_limit = PRESETS[DEFAULT_PRESET].sampling.max_tokens
        max_tokens = gr.Number(default_limit, label=say("page.max_tokens"), elem_id="batch-max-tokens", min_width=120)
        as_preset = say("batch_page.as_preset")
        heat = gr.Textbox(label=say("parameter.temperature.label"), placeholder=as_preset, elem_id="batch-temperature", min_width=100)
        seed = gr.Textbox(label=say("parameter.seed.label"), placeholder=as_preset, elem_id="batch-seed", min_width=100)
        thinking = gr.Checkbox(True, label=say("page.thinking"), elem_id="batch-thinking", container=False, scale=0, min_width=110)
        skip = gr.Checkbox(False, label=say("batch_page.skip"), elem_id="batch-skip", container=False, scale=0, min_width=110)
        run = gr.Button(say("page.run"), variant="primary", scale=0, elem_id="batch-run")
        stop = gr.Button(say("page.stop"), variant="stop", scale=0, elem_id="batch-stop")
    takes_over = services.settings.model is not None and services.settings.base_url is None
    takeover = gr.Checkbox(False, label=say("batch.takeover"), elem_id="batch-takeover", visible=takes_over)
    source = gr.HTML(_source(services, DEFAULT_PRESET), elem_id="batch-preset-source", apply_default_css=False)
    gr.HTML('<div class="fine" role="status"></div>', elem_id="batch-engine-note", apply_default_css=False)
    notice = gr.HTML("", elem_id="batch-notice", elem_classes="field-notice", apply_default_css=False)
    live_box("batch-results", say("batch.label"))
    file, opened = gr.Textbox(visible=False), gr.Textbox(visible=False)  # put in by the browser, which knows what this tab shows

    def on_preset(key: str) -> tuple[bool, str]:
        """A preset is meant for a mode, so choosing it sets the mode; the person can change it after."""
        return PRESETS[key].thinking, _source(services, key)

    def on_restored(key: str) -> str:
        return _source(services, key)

    preset.input(on_preset, preset, [thinking, source], trigger_mode="always_last", **QUICK)

    async def on_run(
        request: gr.Request,
        token: str,
        prompts: str,
        name: EngineName,
        key: str,
        limit: float | None,
        warmth: str,
        number: str,
        think: bool,
        leave_out: bool,
        take: bool,
    ) -> str:
        try:
            if take:
                services.access.require_operator(request)
            chosen = sampling(
                key, max_tokens=max_tokens_given(limit), temperature=optional("temperature", warmth), seed=optional("seed", number)
            )
            await _started(services, services.access.owner_of(request), token, prompts, Asked(key, chosen, think, name, leave_out, take))
        except Failure as failure:
            return services.notice(failure)
        except Exception as error:
            log.exception("a batch could not be started")
            return services.notice(Failure("unexpected", error=error))
        return ""

    async def on_stop(request: gr.Request, batch: str) -> str:
        try:
            await services.batches.stop(services.access.owner_of(request), batch)
        except Failure as failure:
            return services.notice(failure)
        return ""

    given = [file, field, engine, preset, max_tokens, heat, seed, thinking, skip, takeover]
    with_file = "(_, ...rest) => [window.kimi.batch.file(), ...rest]"
    run.click(on_run, given, notice, js=with_file, **QUICK).then(fn=None, js="() => window.kimi.batch.began()")
    stop.click(on_stop, opened, notice, js="() => [window.kimi.batch.opened()]", **QUICK)

    # What stands in the fields survives a reload, as in the other tabs: kept by the browser, for this tab of it alone.
    kept: list[gr.components.Component] = [field, engine, preset, max_tokens, heat, seed, thinking, skip]
    restored = blocks.load(fn=None, inputs=kept, outputs=kept, js="(...values) => window.kimiKept.kept(values)")
    restored.then(on_restored, preset, source, **QUICK)
    changes = [component.change for component in (field, engine, preset, max_tokens, heat, seed, thinking, skip)]
    gr.on(changes, fn=None, inputs=kept, js="(...values) => window.kimiKept.keep(values)", trigger_mode="multiple")


async def _started(services: Services, owner: str, token: str, prompts: str, asked: Asked) -> None:
    """A batch out of the file that the tab shows, or out of typed prompts. Raises Failure."""
    batches = services.batches
    if token:
        with batches.drafts.becoming(owner, token) as draft:
            await batches.start(owner, draft, asked)
            if batches.drafts.of(owner) is draft:  # and not another that was chosen meanwhile
                await batches.drafts.remove(owner)
        return
    draft = await batches.drafts.typed(owner, prompts)
    try:
        await batches.start(owner, draft, asked)
    finally:
        await asyncio.to_thread(batches.drafts.discard, draft)


def _source(services: Services, key: str) -> str:
    values = PRESETS[key].sampling
    parts = [f"temperature {values.temperature}", f"top-p {values.top_p}"]
    parts += [f"top-k {values.top_k}"] if values.top_k is not None else []
    parts += [f"min-p {values.min_p:g}"] if values.min_p is not None else []
    return f'<span class="fine">{" · ".join(parts)} — {escape(services.texts.say(f"preset.{key}.source"))}</span>'
