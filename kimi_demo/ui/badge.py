"""The badge in the header: which model answers, where, and in what state. Asked for by the browser every few seconds."""

import time
from dataclasses import dataclass
from html import escape
from pathlib import PurePath
from urllib.parse import urlsplit

from kimi_demo.engines.chat_engine import ChatEngine, EngineState
from kimi_demo.engines.monitor import Condition
from kimi_demo.settings import Settings
from kimi_demo.ui.texts import Texts
from kimi_demo.ui.view.act import act_button
from kimi_demo.ui.view.words import phase_words, seconds_html


@dataclass(frozen=True)
class Badge:
    """html: what the badge shows; settled: nothing is expected to change soon, so the browser may ask seldom."""

    html: str
    settled: bool


def badge(settings: Settings, engine: ChatEngine, texts: Texts, *, operator: bool, condition: Condition = "off", title: str = "") -> Badge:
    """operator: whether the one who asks may restart the server, and so gets the button; condition: what the last look at it found;
    title: what the model is to be called. Where the texts are a viewer's, nothing says where it runs."""
    state = engine.state
    name = escape(title or model_name(settings, engine, texts))
    place = texts.say("badge.here") if settings.base_url is None else _host(settings.base_url)
    where = "" if texts.discreet else f' <span class="where">{escape(place)}</span>'
    note = ""
    if settings.base_url is None and settings.rehearsal:
        note = f'<span class="model-note">{escape(texts.say("badge.rehearsal_note"))}</span>'
    unwell = state.name == "ready" and condition in ("silent", "sick", "stopped")
    dot = f'<span class="dot" data-state="{"failed" if unwell else state.name}" aria-hidden="true"></span>'
    model = f'<span class="model"><b>{name}</b>{where}{note}</span>'
    told = _state(state, texts, may_restart=operator and not engine.remote)
    if unwell:
        told = f'<span class="state" data-state="failed">{escape(texts.say("badge.state.unwell"))}</span>'
    html = dot + model + told
    return Badge(html, settled=state.name in ("ready", "failed"))


def _host(base_url: str) -> str:
    """Host and port, without a user name or password; "" for an address that is none, which the engine's failure explains."""
    try:
        return urlsplit(base_url).netloc.rpartition("@")[2]
    except ValueError:
        return ""


def model_name(settings: Settings, engine: ChatEngine, texts: Texts) -> str:
    """What people call the model: the last part of a path-like id, or the rehearsal model's own name."""
    if settings.base_url is None and settings.rehearsal:
        return texts.say("badge.rehearsal")
    endpoint = engine.endpoint
    identity = endpoint.info.id if endpoint is not None else settings.model
    return PurePath(identity).name if identity else texts.say("badge.unknown")


def _state(state: EngineState, texts: Texts, *, may_restart: bool) -> str:
    if state.name == "failed" and state.failure is not None:
        what, hint = texts.failure(state.failure.code, state.failure.params)
        again = act_button("badge", "restart", texts.say("badge.restart")) if may_restart else ""
        return f'<details class="state" id="badge-failure"><summary>{escape(what)}</summary>{escape(hint)} {again}</details>'
    words = texts.say(f"badge.state.{state.name}")
    seconds = ""
    if state.name == "starting" and state.phase is not None:
        words = phase_words(state.phase, texts)
        seconds = f' <span class="meta">{seconds_html(time.monotonic() - state.since, texts, running=True)}</span>'
    return f'<span class="state" data-state="{state.name}">{escape(words)}{seconds}</span>'
