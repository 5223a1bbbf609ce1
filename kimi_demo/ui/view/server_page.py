"""The Server tab's frame: its views, the form of a launch, and the parts that a stream fills. Pure."""

from collections.abc import Sequence
from html import escape

from kimi_demo.engines.capabilities import Capabilities
from kimi_demo.engines.launch_options import LaunchOptions
from kimi_demo.engines.port import ModelInfo
from kimi_demo.server_control import ModelChoice
from kimi_demo.ui.texts import Texts
from kimi_demo.ui.view.act import act_button
from kimi_demo.ui.view.server_charts import WINDOWS
from kimi_demo.ui.view.server_form import form_html, server_form_html
from kimi_demo.ui.view.server_lines import log_html
from kimi_demo.ui.view.server_nodes import nodes_form_html
from kimi_demo.ui.view.server_plan import plan_form_html
from kimi_demo.ui.view.server_weights import weights_form_html

VIEWS = ("overview", "launch", "weights", "metrics", "log", "links")


def stranger_html(texts: Texts) -> str:
    """All that somebody else than the operator sees."""
    return f'<p class="srv-stranger">{escape(texts.say("server_page.stranger"))}</p>'


def frame_html(
    boot: str,
    options: LaunchOptions,
    model: str,
    models: Sequence[ModelChoice],
    texts: Texts,
    *,
    on_cpu: bool,
    hub_model: str,
    source: str,
) -> str:
    """boot: names this run of the application; a browser that has its frame keeps it, with what was typed into it.

    hub_model, source: what the form of a download begins with.
    """
    say = texts.say
    tabs = "".join(
        f'<button type="button" role="tab" data-srv-view="{view}" aria-selected="{"true" if view == VIEWS[0] else "false"}">'
        f"{escape(say(f'server_page.view.{view}'))}</button>"
        for view in VIEWS
    )
    parts = {
        "overview": f"{_part('left')}{_part('steps')}{_part('models')}{_part('check')}{_part('curl')}",
        "launch": form_html(options, model, models, texts, on_cpu=on_cpu)
        + plan_form_html(texts)
        + nodes_form_html(texts)
        + _part("profiles")
        + _part("servers")
        + server_form_html(texts),
        "weights": f"{weights_form_html(hub_model, source, texts)}{_part('weights')}",
        "metrics": f"{_part('cards')}{_windows(texts)}{_part('charts')}{_part('gpus')}",
        "log": log_html(texts),
        "links": _part("links"),
    }
    views = "".join(
        f'<section data-srv-panel="{name}" role="tabpanel"{"" if name == VIEWS[0] else " hidden"}>{html}</section>'
        for name, html in parts.items()
    )
    return (
        f'<div class="srv" data-boot="{escape(boot)}" data-copied="{escape(say("page.copied"))}">{_part("head")}{_part("trouble")}'
        f'<div class="srv-views" role="tablist">{tabs}</div>{views}</div>'
    )


def _part(name: str) -> str:
    return f'<div id="srv-{name}" class="srv-part"></div>'


def _windows(texts: Texts) -> str:
    choices = "".join(
        f'<button type="button" data-srv-window="{seconds}">{escape(texts.say(f"server_page.window.{seconds}"))}</button>'
        for seconds in WINDOWS
    )
    return f'<div class="srv-windows" role="group" aria-label="{escape(texts.say("server_page.window.label"))}">{choices}</div>'


def models_html(models: Sequence[ModelInfo], found: Capabilities | None, asking: bool, texts: Texts) -> str:
    """What /v1/models reports, and what the server can do; "" while there is none."""
    if not models:
        return ""
    say = texts.say
    heads = "".join(f'<th scope="col">{escape(say(f"server_page.model.{name}"))}</th>' for name in ("id", "root", "context"))
    rows = "".join(
        f"<tr><td><code>{escape(model.id)}</code></td><td>{escape(model.root or '–')}</td>"
        f"<td>{f'{model.max_model_len:,}' if model.max_model_len is not None else '–'}</td></tr>"
        for model in models
    )
    note = ""
    if any(model.id.startswith("/") for model in models):
        note = f'<p class="fine">{escape(say("server_page.model.path_note"))}</p>'
    return (
        f'<h3>{escape(say("server_page.model.title"))}</h3><div class="table-scroll" tabindex="0"><table class="srv-models">'
        f"<thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table></div>{note}{_capabilities(found, asking, texts)}"
    )


def _capabilities(found: Capabilities | None, asking: bool, texts: Texts) -> str:
    say = texts.say
    if found is None:
        if asking:
            return f'<p class="fine"><span class="spinner" aria-hidden="true"></span> {escape(say("server_page.can.asking"))}</p>'
        button = act_button("server", "server_ask", say("server_page.can.ask"))
        return f'<p>{button} <span class="fine">{escape(say("server_page.can.cost"))}</span></p>'
    signs = {True: ("yes", "✓"), False: ("no", "✗"), None: ("unknown", "?")}
    items = ""
    for name in ("reasoning", "tools", "images", "budget", "raw", "template"):
        value: bool | None = getattr(found, name)
        key, sign = signs[value]
        told = escape(say(f"server_page.can.{key}"))
        items += (
            f'<li data-can="{key}" data-capability="{name}"><span role="img" aria-label="{told}" title="{told}">{sign}</span> '
            f"{escape(say(f'server_page.can.{name}'))}</li>"
        )
    version = f'<p class="fine">{escape(say("server_page.can.version", version=found.version))}</p>' if found.version else ""
    return f'<ul class="srv-can">{items}</ul>{version}'


def curl_html(curls: Sequence[tuple[str, str]], variable: str, texts: Texts, *, own: bool) -> str:
    if not curls:
        return ""
    say = texts.say
    blocks = "".join(
        f'<h4>{escape(say(f"server_page.curl.{name}"))}</h4><div class="code"><pre tabindex="0">{escape(line)}</pre>'
        f'<button type="button" class="copy" aria-label="{escape(say("page.copy"))}" data-copy></button></div>'
        for name, line in curls
    )
    key = f' <button type="button" class="act" data-srv-key>{escape(say("server_page.curl.copy_key"))}</button>' if own else ""
    note = f'<p class="fine">{escape(say("server_page.curl.note", variable=variable))}{key}</p>'
    return f'<details class="srv-curl" id="srv-curl-box"><summary>{escape(say("server_page.curl.title"))}</summary>{note}{blocks}</details>'
