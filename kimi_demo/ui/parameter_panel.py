"""The chat's parameters: a drawer with a field for each, marks on what differs from the preset, kept in the visitor's browser.

One line in `parameters.FIELDS` makes a field here; its words are in ui/texts. The drawer is opened and closed by assets/parameters.js.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import gradio as gr

from kimi_demo.dialect.failure import Failure
from kimi_demo.dialect.sampling import DEFAULT_PRESET, PRESETS, Sampling
from kimi_demo.engines.endpoint_kind import Kind
from kimi_demo.ui.composer import QUICK
from kimi_demo.ui.parameters import CHAT_PRESETS, FIELDS, Field, from_fields, is_changed, is_taken, problem, saved_values
from kimi_demo.ui.services import Services
from kimi_demo.ui.texts import Texts

STORAGE_KEY = "kimi_demo_parameters"


@dataclass(frozen=True)
class Panel:
    """components: what a message is sent with, in the order that `chosen` takes their values."""

    components: list[gr.components.Component]

    @staticmethod
    def chosen(values: Sequence[Any]) -> tuple[Sampling, bool]:
        """(parameters, thinking) of the components' values. Raises Failure naming the first bad one, or "acts.malformed"."""
        if len(values) != len(FIELDS) + 2:
            raise Failure("acts.malformed", problem=f"{len(values)} values instead of {len(FIELDS) + 2}")
        thinking, preset, *fields = values
        return from_fields(preset, dict(zip((field.name for field in FIELDS), fields, strict=True))), bool(thinking)


def server_kind(services: Services) -> Kind | None:
    """How the server is spoken to; None while that is not known."""
    if services.chat_engine.endpoint is not None:
        return services.chat_engine.endpoint.kind
    if services.chat_engine.settings.base_url is None:
        return "vllm"
    return None if services.chat_engine.settings.endpoint_kind == "auto" else services.chat_engine.settings.endpoint_kind


def build(
    services: Services, blocks: gr.Blocks, thinking: gr.Checkbox, max_tokens: gr.Number, toggle: gr.Button, offer: gr.Button
) -> Panel:
    """The drawer. thinking, max_tokens, toggle (opens it) and offer (a preset for the other mode) stand outside of it."""
    texts = services.texts
    components: dict[str, gr.components.Component] = {"max_tokens": max_tokens}
    marks: list[gr.HTML] = []
    kept = gr.BrowserState(None, storage_key=STORAGE_KEY, secret=STORAGE_KEY)
    with gr.Column(elem_id="chat-parameters"):
        gr.HTML(_head(texts), apply_default_css=False)
        preset = gr.Dropdown(
            [(texts.say(f"preset.{key}.label"), key) for key in CHAT_PRESETS],
            value=DEFAULT_PRESET,
            label=texts.say("parameters.preset"),
            info=_source(DEFAULT_PRESET, texts),
            elem_id="chat-preset",
        )
        for field in FIELDS:
            if field.name not in components:
                components[field.name] = _component(field, texts)
            marks.append(gr.HTML(elem_id=f"chat-{_id(field)}-mark", elem_classes="mark", apply_default_css=False))
        reset = gr.Button(texts.say("parameters.reset_all"), size="sm", elem_id="chat-parameters-reset")
        gr.HTML(f'<span class="fine">{escape(texts.say("parameters.saved"))}</span>', apply_default_css=False)

    fields = [components[field.name] for field in FIELDS]
    inputs: list[gr.components.Component] = [thinking, preset, *fields]
    signs: list[gr.components.Component] = [*marks, toggle, offer]

    def told(think: bool, key: str, values: Sequence[Any]) -> list[Any]:
        """What the signs say for these values, and what the browser keeps."""
        differs = [is_changed(field, value, key) for field, value in zip(FIELDS, values, strict=True)]
        said = [_mark(field, value, key, texts) for field, value in zip(FIELDS, values, strict=True)]
        count = sum(differs)
        words = texts.say("parameters.open_changed", count=count) if count else texts.say("parameters.open")
        better = preset_for(think, key)
        use = gr.Button(visible=False) if better is None else gr.Button(_offer(better, texts), visible=True)
        state = {"preset": key, "thinking": think, "values": dict(zip((field.name for field in FIELDS), values, strict=True))}
        return [*said, gr.Button(words), use, state]

    def on_input(think: bool, key: str, *values: Any) -> list[Any]:
        return [gr.Dropdown(info=_source(key, texts)), *told(think, key, values)]

    def on_load(saved: object) -> list[Any]:
        key, think, values = saved_values(saved)
        kind = server_kind(services)
        endpoint = services.chat_engine.endpoint
        refused = {"thinking_token_budget"} if endpoint is not None and kind == "vllm" and endpoint.takes_budget is False else set()
        shown = [_update(field, values[field.name], kind, texts, refused=field.name in refused) for field in FIELDS]
        return [think, gr.Dropdown(value=key, info=_source(key, texts)), *shown, *told(think, key, list(values.values()))[:-1]]

    # Not each field's own event: Gradio 6.31 loses some of several quick ones. assets/parameters.js presses this after a pause.
    sync = gr.Button("", visible="hidden", elem_id="chat-parameters-sync")
    sync.click(on_input, inputs, [preset, *signs, kept], trigger_mode="always_last", **QUICK)
    # A preset is put into the fields by the browser itself: a late answer would come over what has been typed since.
    rows = json.dumps({key: _row(key) for key in CHAT_PRESETS})
    offered = json.dumps({key: {mode: preset_for(mode, key) or key for mode in (True, False)} for key in CHAT_PRESETS})
    for trigger, which in ((preset.input, "key"), (reset.click, "key"), (offer.click, f"({offered})[key][thinking]")):
        js = f"(key, thinking) => ({rows})[{which}]"
        taken = trigger(fn=None, inputs=[preset, thinking], outputs=inputs, js=js, trigger_mode="multiple")
        taken.then(fn=None, js="() => document.getElementById('chat-parameters-sync').click()")
    restored = blocks.load(on_load, kept, [*inputs, *signs], **QUICK)
    restored.then(fn=None, js="() => document.documentElement.setAttribute('data-restored', '1')")
    return Panel(inputs)


def _row(key: str) -> list[Any]:
    """What `Panel.components` hold when the preset is taken whole."""
    preset = PRESETS[key]
    return [preset.thinking, key, *(field.shown(preset.sampling) for field in FIELDS)]


def preset_for(thinking: bool, key: str) -> str | None:
    """The preset to offer when the chosen one is meant for the other mode."""
    if PRESETS[key].thinking == thinking:
        return None
    return next(known for known in CHAT_PRESETS if PRESETS[known].thinking == thinking)


def _id(field: Field) -> str:
    return "stop-strings" if field.name == "stop" else field.name.replace("_", "-")  # chat-stop is the button


def _component(field: Field, texts: Texts) -> gr.components.Component:
    words: dict[str, Any] = {
        "label": texts.say(f"parameter.{field.name}.label"),
        "info": texts.say(f"parameter.{field.name}.meaning"),
        "elem_id": f"chat-{_id(field)}",
    }
    value = field.shown(PRESETS[DEFAULT_PRESET].sampling)
    if field.kind == "number":
        return gr.Number(value, step=field.step, **words)
    if field.kind == "optional":  # an empty gr.Number says 0 until the page's load event has been answered
        return gr.Textbox(value, max_lines=1, placeholder=texts.say("parameters.left_to_server"), **words)
    return gr.Textbox(value, lines=2 if field.kind == "lines" else 5, max_lines=12, **words)


def _update(field: Field, value: Any, kind: Kind | None, texts: Texts, *, refused: bool = False) -> Any:
    """The field with its meaning, or why it is off. refused: this very server has turned it down."""
    if field.name == "max_tokens":  # every kind takes it, and its field stands outside, where there is no room for words
        return gr.Number(value=value)
    taken = is_taken(field, kind) and not refused
    off = texts.say("parameters.refused") if refused else texts.say("parameters.off", kind=kind)
    info = texts.say(f"parameter.{field.name}.meaning") if taken else off
    component = gr.Number if field.kind == "number" else gr.Textbox
    return component(value=value, info=info, interactive=taken)


def _mark(field: Field, value: Any, preset: str, texts: Texts) -> str:
    """Below a field: what is wrong with its value, or that it differs from the preset, with a button to go back."""
    failure: Failure | None = problem(field, value)
    wrong = "" if failure is None else f'<span class="wrong" role="alert">{escape(texts.sentence(failure))}</span> '
    if not is_changed(field, value, preset):
        return wrong
    usual = field.shown(PRESETS[preset].sampling)
    words = texts.say("parameters.empty") if usual == "" else usual
    label = texts.say("parameters.changed", label=texts.say(f"parameter.{field.name}.label"), value=words)
    back = escape(str(usual))
    reset = escape(texts.say("parameters.reset"))
    button = f'<button type="button" class="act" data-fill="chat-{_id(field)}" data-text="{back}">{reset}</button>'
    return f'{wrong}<span class="changed">{escape(label)}</span> {button}'


def _head(texts: Texts) -> str:
    title, close = escape(texts.say("parameters.open")), escape(texts.say("parameters.close"))
    return f'<div class="drawer-head"><h2>{title}</h2><button type="button" class="act" data-parameters-close>{close}</button></div>'


def _offer(key: str, texts: Texts) -> str:
    name = texts.say(f"preset.{key}.label")
    return f"{texts.say('parameters.offer', preset=name)} {texts.say('parameters.offer_use')}"


def _source(key: str, texts: Texts) -> str:
    return texts.say(f"preset.{key}.source")
