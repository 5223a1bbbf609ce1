"""The Server tab's second view: the form of a launch, saved profiles, and servers that run already. Pure."""

from collections.abc import Sequence
from html import escape

from kimi_demo.engines.launch_options import LaunchOptions
from kimi_demo.server_control import ModelChoice
from kimi_demo.ui.texts import Texts
from kimi_demo.ui.view.act import act_button
from kimi_demo.ui.view.notice import notice_html

_NUMBERS = ("tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size", "max_model_len")
_ON_GPU, _ON_CPU = "gpu_memory_utilization", "cpu_kv_cache_gb"
_CHECKS = ("expert_parallel", "language_model_only", "log_requests")


def form_html(options: LaunchOptions, model: str, models: Sequence[ModelChoice], texts: Texts, *, on_cpu: bool) -> str:
    say = texts.say

    def label(name: str, control: str, wide: bool = False) -> str:
        words, help = escape(say(f"launch_option.{name}.label")), escape(say(f"launch_option.{name}.help"))
        return (
            f'<label class="srv-field{" wide" if wide else ""}" data-field="{name}" title="{help}"><span>{words}</span>{control}'
            f'<small class="fine">{help}</small><small class="srv-wrong" role="alert" hidden></small></label>'
        )

    def number(name: str, step: str = "1") -> str:
        value = getattr(options, name)
        return label(name, f'<input type="text" inputmode="decimal" name="{name}" value="{value}" data-step="{step}" maxlength="12">')

    def text(name: str, wide: bool = False) -> str:
        return label(
            name, f'<input type="text" name="{name}" value="{escape(getattr(options, name))}" spellcheck="false" maxlength="4000">', wide
        )

    def arguments() -> str:
        """Below them is said what vLLM thinks of them, by assets/launch.js."""
        field = text("extra", wide=True).removesuffix("</label>")
        asking = escape(say("server_page.arguments.asking"))
        return f'{field}<small class="fine" id="srv-asked" role="status" data-asking="{asking}"></small></label>'

    def select(name: str, choices: Sequence[tuple[str, str]]) -> str:
        chosen = getattr(options, name)
        items = "".join(f'<option value="{key}"{" selected" if key == chosen else ""}>{escape(words)}</option>' for key, words in choices)
        return label(name, f'<select name="{name}">{items}</select>')

    def check(name: str) -> str:
        on = " checked" if getattr(options, name) else ""
        words, help = escape(say(f"launch_option.{name}.label")), escape(say(f"launch_option.{name}.help"))
        return (
            f'<label class="srv-field srv-check" data-field="{name}" title="{help}"><span>'
            f'<input type="checkbox" name="{name}"{on}> {words}</span><small class="fine">{help}</small></label>'
        )

    items = ""
    for choice in models:
        selected = " selected" if choice.key == model else ""
        items += f'<option value="{escape(choice.key)}"{selected}>{escape(choice.model or say("badge.rehearsal"))}</option>'
    fields = [label("model", f'<select name="model">{items}</select>', wide=True)]
    fields += [number(name) for name in _NUMBERS]
    fields.append(number(_ON_CPU) if on_cpu else number(_ON_GPU, "0.01"))
    fields.append(select("kv_cache_dtype", [("auto", say("launch_option.auto")), ("fp8", "fp8")]))
    fields.append(select("mm_encoder_tp_mode", [("", say("launch_option.auto")), ("weights", "weights"), ("data", "data")]))
    fields += [text("served_model_name"), number("server_port"), text("speculative", wide=True), arguments()]
    fields += [check(name) for name in _CHECKS]
    code = "".join(
        f'<h4>{escape(say(f"server_page.line.{form}"))}</h4><div class="code"><pre id="srv-line-{form}" tabindex="0"></pre>'
        f'<button type="button" class="copy" aria-label="{escape(say("page.copy"))}" data-copy></button></div>'
        for form in ("shell", "docker")
    )
    hidden = _ON_GPU if on_cpu else _ON_CPU
    return (
        f'<form class="srv-form" id="srv-form" autocomplete="off"><h3>{escape(say("server_page.launch_title"))}</h3>'
        f'<input type="hidden" name="{hidden}" value="{getattr(options, hidden)}"><div class="srv-fields">{"".join(fields)}</div>'
        f'<div id="srv-warned" role="status"></div><div id="srv-launch-acts" class="srv-acts"></div></form>{code}'
        f'<p class="fine">{escape(say("server_page.line.note"))}</p>'
    )


def launch_acts_html(ends: Sequence[str], texts: Texts, *, takeover: bool) -> str:
    """The form's buttons; what its start puts an end to is said above them."""
    told = "".join(notice_html("warning", sentence) for sentence in ends)
    words = texts.say("server_page.start_anyway" if ends else "server_page.start_these")
    more = ' data-takeover="true"' if takeover else ""
    name = escape(texts.say("server_page.profile_name"))
    return (
        f'{told}<button type="button" class="act srv-primary" data-srv-start{more}>{escape(words)}</button>'
        f'<span class="srv-save"><input type="text" id="srv-profile-name" placeholder="{name}" aria-label="{name}" maxlength="60">'
        f'<button type="button" class="act" data-srv-save>{escape(texts.say("server_page.profile_save"))}</button></span>'
    )


def profiles_html(names: Sequence[str], texts: Texts) -> str:
    if not names:
        return ""
    items = "".join(
        f'<li><button type="button" class="act" data-srv-load="{escape(name)}">{escape(name)}</button>'
        f"{act_button('server', 'server_profile_delete', texts.say('server_page.profile_delete'), picture='delete', name=name)}</li>"
        for name in names
    )
    return f'<h3>{escape(texts.say("server_page.profiles"))}</h3><ul class="srv-list">{items}</ul>'


def servers_html(addresses: Sequence[str], current: str, started: str, texts: Texts, *, stops: bool = False) -> str:
    """Other servers to talk to. current: the one in use ("" for our own); started: the one the demo was started with; stops: whether
    our own server is up, and is stopped for another."""
    say = texts.say
    items = ""
    for address in addresses:
        now = f' <span class="badge">{escape(say("server_page.in_use"))}</span>' if address == current else ""
        forget = (
            ""
            if address in (started, current)
            else act_button("server", "server_forget", say("server_page.forget"), picture="delete", address=address)
        )
        items += f"<li>{act_button('server', 'server_use', address, address=address, key='')}{now}{forget}</li>"
    listed = f'<ul class="srv-list">{items}</ul>' if items else ""
    told = notice_html("warning", say("server_page.use_stops")) if stops else ""
    return f'<h3>{escape(say("server_page.servers"))}</h3><p class="fine">{escape(say("server_page.servers_note"))}</p>{told}{listed}'


def server_form_html(texts: Texts) -> str:
    """For an address that is not in the list yet. It is no part of what a stream replaces: somebody may be typing."""
    say = texts.say
    return (
        f'<form class="srv-use" id="srv-use" autocomplete="off">'
        f'<label class="srv-field wide"><span>{escape(say("server_page.address"))}</span>'
        f'<input type="text" name="address" placeholder="http://host:8000/v1" spellcheck="false" maxlength="500"></label>'
        f'<label class="srv-field"><span>{escape(say("server_page.key"))}</span>'
        f'<input type="password" name="key" autocomplete="new-password" maxlength="500"></label>'
        f'<button type="submit" class="act">{escape(say("server_page.connect_to"))}</button></form>'
    )
