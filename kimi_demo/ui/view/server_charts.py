"""A server's metrics as figures and plots (SVG, drawn here; assets/server.js shows the values under the pointer). Pure."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from time import localtime, strftime

from kimi_demo.engines.gpu_use import GpuUse
from kimi_demo.engines.metrics.points import Point
from kimi_demo.engines.metrics.reading import Reading
from kimi_demo.ui.texts import Texts

WINDOWS = (300, 1800, 14400)
"""Seconds that the plots can show."""

_WIDTH, _HEIGHT, _LEFT, _BOTTOM, _TOP = 520, 150, 46, 20, 8
_COLUMNS = 90
"""Points of a plot. More are put together: a screen shows no more, and a stream should not carry them every two seconds."""


@dataclass(frozen=True)
class _Plot:
    """name: its texts; lines: a name (texts) and where its values are; show: a value in words; top: the scale's least upper end."""

    name: str
    lines: tuple[tuple[str, Callable[[Point], float | None]], ...]
    show: Callable[[float], str]
    top: float = 1.0
    most: bool = False


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 or value == int(value) else f"{value:.1f}"


def _percent(value: float) -> str:
    return f"{100 * value:.0f} %" if value in (0.0, 1.0) else f"{100 * value:.1f} %"


def seconds(value: float) -> str:
    """ "34 ms", "1.25 s"."""
    return f"{1000 * value:.0f} ms" if value < 1 else f"{value:.2f} s"


_PLOTS = (
    _Plot("requests", (("running", lambda point: point.running), ("waiting", lambda point: point.waiting)), _number, 4.0, most=True),
    _Plot("tokens", (("generation", lambda point: point.generation_rate), ("prompt", lambda point: point.prompt_rate)), _number, 10.0),
    _Plot("cache", (("cache_use", lambda point: point.cache_use), ("prefix_hits", lambda point: point.prefix_hits)), _percent, 1.0),
    _Plot("first_token", (("p50", lambda point: point.first_token_p50), ("p95", lambda point: point.first_token_p95)), seconds, 0.1),
    _Plot("between", (("p50", lambda point: point.between_p50), ("p95", lambda point: point.between_p95)), seconds, 0.02),
)


def cards_html(point: Point | None, reading: Reading | None, texts: Texts) -> str:
    """The latest figures, each with its name."""
    if point is None or reading is None:
        return f'<p class="fine">{escape(texts.say("server_page.metrics.none"))}</p>'
    aborted = reading.finished.get("abort")
    finished = sum(count for reason, count in reading.finished.items() if reason != "abort")
    figures: list[tuple[str, str | None]] = [
        ("running", _known(point.running, _number)),
        ("waiting", _known(point.waiting, _number)),
        ("cache_use", _known(point.cache_use, _percent)),
        ("generation", _known(point.generation_rate, _number)),
        ("prompt", _known(point.prompt_rate, _number)),
        ("first_token", _pair(point.first_token_p50, point.first_token_p95)),
        ("between", _pair(point.between_p50, point.between_p95)),
        ("hits", _known(_total_hits(reading), _percent)),
        ("preemptions", _known(reading.preemptions, _number)),
        ("finished", _number(finished)),
        ("aborted", _known(aborted, _number)),
    ]
    cells = ""
    for name, value in figures:
        words = escape(texts.say(f"server_page.metrics.{name}"))
        cells += f'<div class="srv-card" data-figure="{name}"><dt>{words}</dt><dd>{escape(value or "–")}</dd></div>'
    return f'<dl class="srv-cards">{cells}</dl>'


def charts_html(points: Sequence[Point], window_s: float, now: float, texts: Texts) -> str:
    """now: seconds since 1970, the right end of every plot."""
    shown = [point for point in points if point.at >= now - window_s]
    if len(shown) < 2:
        return f'<p class="fine">{escape(texts.say("server_page.metrics.wait"))}</p>'
    return f'<div class="srv-charts">{"".join(_plot(plot, shown, window_s, now, texts) for plot in _PLOTS)}</div>'


def gpus_html(gpus: Sequence[GpuUse], texts: Texts) -> str:
    """One row a GPU; "" where there is none."""
    if not gpus:
        return ""
    say = texts.say
    heads = "".join(
        f'<th scope="col">{escape(say(f"server_page.gpu.{name}"))}</th>' for name in ("name", "memory", "load", "temperature", "power")
    )
    rows = ""
    for gpu in gpus:
        share = 100 * gpu.used / gpu.total if gpu.total else 0
        memory = f"{gpu.used / 2**30:,.1f} / {gpu.total / 2**30:,.1f} GiB"
        rows += (
            f'<tr><th scope="row">{gpu.index} · {escape(gpu.name)}</th>'
            f'<td><progress max="100" value="{share:.0f}" aria-label="{escape(memory)}"></progress> {escape(memory)}</td>'
            f"<td>{_known(gpu.load, _percent) or '–'}</td><td>{_known(gpu.temperature, lambda value: f'{value:.0f} °C') or '–'}</td>"
            f"<td>{_known(gpu.power, lambda value: f'{value:.0f} W') or '–'}</td></tr>"
        )
    table = f'<table class="srv-gpus"><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>'
    return f'<h3>{escape(say("server_page.gpu.title"))}</h3><div class="table-scroll" tabindex="0">{table}</div>'


def _known(value: float | None, show: Callable[[float], str]) -> str | None:
    return None if value is None else show(value)


def _pair(p50: float | None, p95: float | None) -> str | None:
    return None if p50 is None or p95 is None else f"{seconds(p50)} / {seconds(p95)}"


def _total_hits(reading: Reading) -> float | None:
    return reading.prefix_hits / reading.prefix_queries if reading.prefix_hits is not None and reading.prefix_queries else None


def _plot(plot: _Plot, points: Sequence[Point], window_s: float, now: float, texts: Texts) -> str:
    say = texts.say
    columns = _columns(plot, points, window_s, now)
    values = [value for column in columns if column is not None for value in column if value is not None]
    top = _nice(max([*values, plot.top])) if plot.show is not _percent else 1.0
    room, height = _WIDTH - _LEFT, _HEIGHT - _BOTTOM - _TOP
    drawing, legend, names = "", "", []
    for number, (name, _) in enumerate(plot.lines):
        label = say(f"server_page.metrics.{name}")
        names.append(label)
        legend += f'<span class="srv-line" data-line="{number}">{escape(label)}</span>'
        for piece in _pieces([column[number] if column is not None else None for column in columns]):
            dots = " ".join(f"{_LEFT + room * (at + 0.5) / _COLUMNS:.1f},{_TOP + height * (1 - value / top):.1f}" for at, value in piece)
            if len(piece) == 1:
                x, _, y = dots.partition(",")
                drawing += f'<circle data-line="{number}" cx="{x}" cy="{y}" r="2"/>'
            else:
                drawing += f'<polyline data-line="{number}" points="{dots}"/>'
    tips = [_tip(column, at, plot, names, window_s, now) for at, column in enumerate(columns)]
    base = _HEIGHT - _BOTTOM
    ticks = ""
    for part, anchor in enumerate(("start", "middle", "middle", "end")):
        when = strftime("%H:%M:%S" if window_s <= 600 else "%H:%M", localtime(now - window_s * (1 - part / 3)))
        ticks += f'<text x="{_LEFT + room * part / 3:.1f}" y="{_HEIGHT - 5}" text-anchor="{anchor}">{when}</text>'
    scale = "".join(
        f'<text x="{_LEFT - 6}" y="{y}" text-anchor="end">{escape(words)}</text>' for y, words in ((_TOP + 9, plot.show(top)), (base, "0"))
    )
    return (
        f'<figure class="srv-plot" data-plot="{plot.name}" data-tips="{escape("|".join(tips))}" data-left="{_LEFT}" data-width="{_WIDTH}">'
        f"<figcaption><b>{escape(say(f'server_page.plot.{plot.name}'))}</b> {legend}</figcaption>"
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{escape(say(f"server_page.plot.{plot.name}"))}">'
        f'<line x1="{_LEFT}" y1="{base}" x2="{_WIDTH}" y2="{base}"/><line x1="{_LEFT}" y1="{_TOP}" x2="{_WIDTH}" y2="{_TOP}"/>{drawing}'
        f"{scale}{ticks}"
        f'<line class="srv-cursor" x1="0" x2="0" y1="{_TOP}" y2="{base}"/></svg></figure>'
    )


def _columns(plot: _Plot, points: Sequence[Point], window_s: float, now: float) -> list[tuple[float | None, ...] | None]:
    """The window in equal steps; None where nothing was looked at. Of several looks the mean, or the most where that is the question."""
    gathered: list[list[Point]] = [[] for _ in range(_COLUMNS)]
    for point in points:
        at = int((point.at - (now - window_s)) / window_s * _COLUMNS)
        gathered[min(_COLUMNS - 1, max(0, at))].append(point)
    found: list[tuple[float | None, ...] | None] = []
    for group in gathered:
        if not group:
            found.append(None)
            continue
        sums = []
        for _, value in plot.lines:
            known = [got for got in map(value, group) if got is not None]
            sums.append(None if not known else max(known) if plot.most else sum(known) / len(known))
        found.append(tuple(sums))
    return _bridged(found)


def _bridged(columns: list[tuple[float | None, ...] | None]) -> list[tuple[float | None, ...] | None]:
    """Short gaps filled with the value before: looks are further apart than columns where nobody watches."""
    found = list(columns)
    last, gap = None, 0
    for at, column in enumerate(columns):
        if column is not None:
            last, gap = column, 0
        else:
            gap += 1
            following = any(later is not None for later in columns[at + 1 : at + 8])
            if last is not None and gap <= 7 and following:
                found[at] = last
    return found


def _pieces(values: Sequence[float | None]) -> list[list[tuple[int, float]]]:
    """Runs of known values: where nothing is known, the line has a gap."""
    found: list[list[tuple[int, float]]] = []
    fresh = True
    for at, value in enumerate(values):
        if value is None:
            fresh = True
            continue
        if fresh:
            found.append([])
        found[-1].append((at, value))
        fresh = False
    return found


def _tip(column: tuple[float | None, ...] | None, at: int, plot: _Plot, names: Sequence[str], window_s: float, now: float) -> str:
    if column is None:
        return ""
    when = strftime("%H:%M:%S", localtime(now - window_s * (1 - (at + 0.5) / _COLUMNS)))
    told = [f"{name} {plot.show(value)}" for name, value in zip(names, column, strict=True) if value is not None]
    return " · ".join([when, *told]).replace("|", "/")


def _nice(value: float) -> float:
    """The next of 1, 2, 5, 10, … at or above `value`, whatever its size."""
    scale = 10.0
    while scale > value and scale > 1e-6:
        scale /= 10
    return next(base * scale for base in (1, 2, 5, 10, 20, 50, 100, 1e3, 1e4, 1e5, 1e6, 1e9) if base * scale >= value * 0.9999)
