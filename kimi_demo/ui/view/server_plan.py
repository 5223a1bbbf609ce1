"""Whether a launch fits, as figures and a plot of context length against requests at once. Pure."""

from collections.abc import Sequence
from html import escape
from math import log2

from kimi_demo.engines.plan.machines import MACHINES
from kimi_demo.engines.plan.report import Concurrency, PlanReport
from kimi_demo.ui.texts import Texts

_WIDTH, _HEIGHT, _LEFT, _BOTTOM, _TOP = 520, 190, 52, 24, 10


def plan_form_html(texts: Texts) -> str:
    """Where it is to fit, and which model; assets/server.js asks with the options above it."""
    say = texts.say
    places = [("here", say("server_plan.here"))] + [(machine.key, machine.name) for machine in MACHINES]
    options = "".join(f'<option value="{key}">{escape(name)}</option>' for key, name in places)
    return (
        f'<h3>{escape(say("server_plan.title"))}</h3><div class="srv-plan-form">'
        f'<label class="srv-field"><span>{escape(say("server_plan.place"))}</span><select id="srv-plan-place">{options}</select></label>'
        f'<label class="srv-field srv-check"><span>'
        f'<input type="checkbox" id="srv-plan-kimi"> {escape(say("server_plan.kimi"))}</span></label>'
        f'<button type="button" class="act" data-srv-plan>{escape(say("server_plan.ask"))}</button></div><div id="srv-plan"></div>'
    )


def plan_html(found: PlanReport, texts: Texts) -> str:
    say = texts.say
    verdict = "passed" if found.fits else "failed"
    told = {"model": found.model, "machine": found.machine, "attention": found.attention, "tensor": found.tensor_parallel_size}
    title = say("plan.title", **told, pipeline=found.pipeline_parallel_size, data=found.data_parallel_size)
    parts = {
        "weights": found.weights_gb_per_gpu,
        "activations": found.activations_gb_per_gpu,
        "graphs": found.graphs_gb_per_gpu,
        "runtime": found.runtime_gb_per_gpu,
        "cache": found.kv_cache_gb_per_gpu,
    }
    rows = "".join(
        f'<tr><th scope="row">{escape(say(f"plan.part.{name}"))}</th><td>{size:,.1f} GB</td></tr>' for name, size in parts.items() if size
    )
    cache = say("plan.cache", bytes=f"{found.kv_bytes_per_token_per_gpu:,}", tokens=f"{found.kv_cache_tokens:,}")
    warnings = "".join(f'<div class="notice" data-kind="warning">{escape(warning)}</div>' for warning in found.warnings)
    return (
        f'<p class="fine">{escape(title)}</p>'
        f'<p class="srv-verdict" data-state="{verdict}">{escape(say("plan.yes" if found.fits else "plan.no"))}</p>'
        f'<p>{escape(found.reason)}</p>{warnings}<div class="srv-plan-parts"><table class="srv-plan-table">'
        f'<caption class="fine">{escape(say("plan.per_gpu"))}</caption>'
        f"<tbody>{rows}</tbody></table>{_curve(found.concurrency_by_context, texts)}</div>"
        f'<p class="fine">{escape(cache)}. {escape(say("plan.estimate"))}</p>'
    )


def _curve(points: Sequence[Concurrency], texts: Texts) -> str:
    """Both axes in powers of two: contexts double from point to point."""
    known = [point for point in points if point.requests > 0]
    if len(known) < 2:
        return ""
    say = texts.say
    low, high = log2(known[0].context), log2(known[-1].context)
    top = max(log2(max(point.requests, 1.0)) for point in known) or 1.0
    room, height = _WIDTH - _LEFT - 16, _HEIGHT - _BOTTOM - _TOP
    dots, circles, ticks = [], "", ""
    for number, point in enumerate(known):
        x = _LEFT + room * (log2(point.context) - low) / max(high - low, 1e-9)
        y = _TOP + height * (1 - log2(max(point.requests, 1.0)) / top)
        dots.append(f"{x:.1f},{y:.1f}")
        words = escape(say("plan.at_once", context=f"{point.context:,}", requests=f"{point.requests:,.1f}"))
        circles += f'<circle data-line="0" cx="{x:.1f}" cy="{y:.1f}" r="4"><title>{words}</title></circle>'
        if number % max(1, len(known) // 5) == 0 or number == len(known) - 1:
            ticks += f'<text x="{x:.1f}" y="{_HEIGHT - 6}" text-anchor="middle">{_short(point.context)}</text>'
    base = _HEIGHT - _BOTTOM
    return (
        f'<figure class="srv-plot srv-plan-curve"><figcaption><b>{escape(say("server_plan.curve"))}</b></figcaption>'
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{escape(say("server_plan.curve"))}">'
        f'<line x1="{_LEFT}" y1="{base}" x2="{_WIDTH}" y2="{base}"/><polyline data-line="0" points="{" ".join(dots)}"/>{circles}{ticks}'
        f'<text x="{_LEFT - 6}" y="{_TOP + 9}" text-anchor="end">{2**top:,.0f}</text>'
        f'<text x="{_LEFT - 6}" y="{base}" text-anchor="end">1</text></svg></figure>'
    )


def _short(tokens: int) -> str:
    return f"{tokens // 1024}k" if tokens >= 1024 and tokens % 1024 == 0 else f"{tokens:,}"
