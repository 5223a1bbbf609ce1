"""Plots of a batch as SVG, drawn here: lengths of thoughts and answers, tokens per second over time. Pure."""

from collections.abc import Sequence
from html import escape

from kimi_demo.batches.charts import Histogram, Rates, histogram, rates
from kimi_demo.batches.finished import Finished
from kimi_demo.ui.texts import Texts

_WIDTH, _HEIGHT, _LEFT, _BOTTOM, _TOP = 520, 200, 46, 24, 10


def charts_html(table: Finished, texts: Texts) -> str:
    """All three, of the rows that have finished by now."""
    say = texts.say
    if not len(table):
        return f'<p class="fine">{escape(say("batch_page.no_charts"))}</p>'
    figures = []
    for name, values in (("thought", table.thought), ("answer", table.answer)):
        found = histogram(values)
        told = say("batch_page.chart.lengths", mean=f"{found.mean:,.0f}", largest=f"{found.largest:,}")
        figures.append(_figure(say(f"batch_page.chart.{name}"), told, _bars(found, texts)))
    speed = rates(table.tokens, table.ended, table.took)
    if speed.per_second:
        mean = sum(speed.per_second) / len(speed.per_second)
        told = say("batch_page.chart.speed_told", mean=f"{mean:,.1f}", most=f"{max(speed.per_second):,.1f}")
        figures.append(_figure(say("batch_page.chart.speed"), told, _area(speed, texts)))
    return f'<div class="batch-charts">{"".join(figures)}</div>'


def _figure(title: str, told: str, drawing: str) -> str:
    return f'<figure><figcaption><b>{escape(title)}</b> <span class="fine">{escape(told)}</span></figcaption>{drawing}</figure>'


def _bars(found: Histogram, texts: Texts) -> str:
    highest = max(found.counts) or 1
    room, height = _WIDTH - _LEFT, _HEIGHT - _BOTTOM - _TOP
    each = room / len(found.counts)
    bars = ""
    for at, count in enumerate(found.counts):
        tall = height * count / highest
        open_end = at == len(found.counts) - 1
        told = texts.say(
            "batch_page.chart.bin", low=f"{at * found.width:,}", high="…" if open_end else f"{(at + 1) * found.width:,}", count=count
        )
        bars += (
            f'<rect x="{_LEFT + at * each + 1:.1f}" y="{_TOP + height - tall:.1f}" width="{each - 2:.1f}" height="{tall:.1f}" rx="1.5">'
            f"<title>{escape(told)}</title></rect>"
        )
    ticks = [(_LEFT + each * at, f"{at * found.width:,}") for at in range(0, len(found.counts), 6)]
    return _drawing(bars, highest, ticks, texts.say("batch_page.chart.characters"))


def _area(found: Rates, texts: Texts) -> str:
    values = found.per_second if len(found.per_second) > 1 else found.per_second * 2
    highest = max(values) or 1.0
    room, height = _WIDTH - _LEFT, _HEIGHT - _BOTTOM - _TOP
    points = [(_LEFT + room * at / (len(values) - 1), _TOP + height * (1 - value / highest)) for at, value in enumerate(values)]
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    base = _TOP + height
    shapes = f'<polygon points="{_LEFT},{base} {line} {_WIDTH},{base}"/><polyline points="{line}"/>'
    total = found.step_s * len(found.per_second)
    ticks = [(_LEFT + room * at / 4, f"{total * at / 4:,.{0 if total >= 10 else 1}f}") for at in range(4)]
    return _drawing(shapes, highest, ticks, texts.say("batch_page.chart.seconds"))


def _drawing(shapes: str, highest: float, ticks: Sequence[tuple[float, str]], unit: str) -> str:
    base = _HEIGHT - _BOTTOM
    marks = "".join(f'<text x="{x:.1f}" y="{_HEIGHT - 8}">{escape(words)}</text>' for x, words in ticks)
    most = f"{highest:,.0f}" if highest >= 10 else f"{highest:.1f}"
    return (
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img"><line x1="{_LEFT}" y1="{base}" x2="{_WIDTH}" y2="{base}"/>{shapes}'
        f'<text class="scale" x="{_LEFT - 6}" y="{_TOP + 10}">{most}</text><text class="scale" x="{_LEFT - 6}" y="{base}">0</text>{marks}'
        f'<text class="scale" x="{_WIDTH}" y="{_HEIGHT - 8}">{escape(unit)}</text></svg>'
    )
