"""Two versions of a batch side by side: what they have in common, and each row with both answers. Pure."""

from collections.abc import Sequence
from html import escape

from kimi_demo.batches.comparing import Agreement, Comparison, Pair
from kimi_demo.batches.results import Result
from kimi_demo.batches.shelf import Entry
from kimi_demo.dialect.sampling import PRESETS
from kimi_demo.ui.texts import Texts
from kimi_demo.ui.view.batch_table import clipped, pager_html

AGREEMENTS: tuple[Agreement, ...] = ("same", "alike", "different", "incomparable")
_CELL = 700


def choose_html(entry: Entry, others: Sequence[Entry], chosen: str, texts: Texts) -> str:
    """Which version to compare with; a sentence where there is no other."""
    say = texts.say
    if not others:
        return f'<p class="fine">{escape(say("batch_page.compare.none"))}</p>'
    options = "".join(
        f'<option value="{one.id}"{" selected" if one.id == chosen else ""}>{escape(named(one, texts))}</option>' for one in others
    )
    return f'<label class="fine">{escape(say("batch_page.compare.with"))} <select data-batch-other>{options}</select></label>'


def named(entry: Entry, texts: Texts) -> str:
    say = texts.say
    preset = say(f"preset.{entry.preset}.label") if entry.preset in PRESETS else entry.preset
    mode = say("batch_page.thinking" if entry.thinking else "batch_page.instant")
    limit = say("batch_page.limit", count=f"{entry.sampling.max_tokens:,}")
    return f"{say('batch_page.version', number=entry.version)}: {preset} · {mode} · {limit}"


def summary_html(found: Comparison, show: str, texts: Texts) -> str:
    """Counts by agreement, which also choose what is listed, and the mean lengths."""
    say = texts.say
    counts = {"all": found.rows, "same": found.same, "alike": found.alike, "different": found.different, "incomparable": found.incomparable}
    chips = "".join(
        f'<button type="button" class="act" data-batch-agreement="{name}" aria-pressed="{"true" if name == show else "false"}">'
        f"{escape(say(f'batch_page.compare.{name}'))} {count:,}</button>"
        for name, count in counts.items()
    )
    means = "".join(
        f"<tr><th scope=row>{escape(say(f'batch_page.compare.mean_{name}'))}</th><td>{one:,.1f}</td><td>{other:,.1f}</td></tr>"
        for name, (one, other) in (("thought", found.mean_thought), ("answer", found.mean_answer), ("tokens", found.mean_tokens))
    )
    alike = say("batch_page.compare.similarity", share=f"{100 * found.mean_similarity:.0f}")
    return f'<div class="batch-chips">{chips}</div><p class="fine">{escape(alike)}</p><table class="batch-means">{means}</table>'


def pairs_html(found: Sequence[Pair], page: int, total: int, names: tuple[str, str], texts: Texts) -> str:
    """A window of the pairs. total: of those that are listed."""
    heads = "".join(f'<th scope="col">{escape(name)}</th>' for name in (texts.say("batch.column.prompt"), *names))
    rows = "".join(_pair(pair, texts) for pair in found)
    table = f'<table class="batch-pairs"><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>'
    return f'<div class="table-scroll" tabindex="0">{table}</div><div class="pager">{pager_html(page, total, texts)}</div>'


def _pair(pair: Pair, texts: Texts) -> str:
    say = texts.say
    known = pair.first or pair.second
    prompt = "" if known is None else known.prompt
    badge = f'<span class="badge" data-agreement="{pair.agreement}">{escape(say(f"batch_page.compare.{pair.agreement}"))}</span>'
    share = f' <span class="fine">{100 * pair.similarity:.0f} %</span>' if pair.agreement in ("alike", "different") else ""
    more = ""
    if pair.first is not None and pair.second is not None:
        told = say("batch_page.compare.more", thought=f"{pair.more_thought:+,}", answer=f"{pair.more_answer:+,}")
        more = f'<div class="fine">{escape(told)}</div>'
    asked = f'<div class="cell">{escape(clipped(prompt, 300))}</div>'
    head = f'<td dir="auto"><span class="count">{pair.index + 1}</span> {badge}{share}{asked}{more}</td>'
    return f'<tr data-row="{pair.index}">{head}{_side(pair.first, texts)}{_side(pair.second, texts)}</tr>'


def _side(result: Result | None, texts: Texts) -> str:
    if result is None:
        return f'<td class="meta">{escape(texts.say("batch_page.compare.missing"))}</td>'
    if result.error is not None:
        return f'<td class="row-error">{escape(texts.failure(result.error, result.error_params)[0])}</td>'
    thought = len(result.reasoning or "")
    told = texts.say(
        "batch_page.compare.lengths", thought=f"{thought:,}", answer=f"{len(result.answer):,}", tokens=f"{result.completion_tokens:,}"
    )
    text = result.answer if not result.cut_off_in_thought else texts.say("batch.cut_off_in_thought")
    return f'<td dir="auto"><div class="cell">{escape(clipped(text, _CELL))}</div><div class="fine">{escape(told)}</div></td>'
