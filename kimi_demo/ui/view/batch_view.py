"""The list of batches, and the opened one: how far it is, how it ended, and what can be done with it. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from kimi_demo.batches.finished import ORDERS, SHOWS
from kimi_demo.batches.progress import Progress
from kimi_demo.batches.shelf import Entry
from kimi_demo.batches.writing import ENDINGS
from kimi_demo.dialect.events import Phase
from kimi_demo.dialect.failure import Failure
from kimi_demo.dialect.sampling import PRESETS
from kimi_demo.engines.accelerators import Holder
from kimi_demo.ui.texts import Texts
from kimi_demo.ui.view.act import act_button
from kimi_demo.ui.view.notice import failure_html, notice_html
from kimi_demo.ui.view.patch import spinner
from kimi_demo.ui.view.publish_view import publish_button
from kimi_demo.ui.view.words import phase_words, seconds_html

LIST = "batch-list"
VIEWS = ("rows", "charts", "compare")


@dataclass(frozen=True)
class Standing:
    """One batch as it stands. phase: what its engine does before the first row, `phase_s` seconds long; ahead: batches before it in line.

    versions: over the same rows, itself among them; stops: who would have to give up the GPUs for it now; operator: who looks.
    """

    entry: Entry
    progress: Progress
    phase: Phase | None = None
    phase_s: float = 0.0
    ahead: int = 0
    versions: tuple[Entry, ...] = ()
    stops: Holder | None = None
    operator: bool = False


def key(batch: str) -> str:
    return f"batch-{batch}"


def frame(entry: Entry, texts: Texts) -> str:
    """The opened batch, empty: `parts` fill it, assets/batch.js the table below."""
    name = key(entry.id)
    say = texts.say
    views = "".join(
        f'<button type="button" role="tab" data-batch-view="{view}" aria-selected="{"true" if view == "rows" else "false"}">'
        f"{escape(say(f'batch_page.view.{view}'))}</button>"
        for view in VIEWS
    )
    shows = "".join(f'<option value="{show}">{escape(say(f"batch_page.show.{show}"))}</option>' for show in SHOWS)
    orders = "".join(f'<option value="{order}">{escape(say(f"batch_page.order.{order}"))}</option>' for order in ORDERS)
    search = escape(say("batch_page.search"))
    inside = ("title", "figures", "ending", "actions", "again")
    parts = "".join(f'<div id="{name}-{part}" class="batch-{part}"></div>' for part in inside)
    return (
        f'<div data-run="{entry.id}" id="holder-{entry.id}">'
        f'<article class="batch" id="{name}" data-batch="{entry.id}" data-state="">{parts}'
        f'<span id="{name}-version" class="batch-version" hidden></span>'
        f'<div class="batch-views" role="tablist">{views}</div><div class="batch-tools">'
        f'<select data-batch-show aria-label="{escape(say("batch_page.show.label"))}">{shows}</select>'
        f'<select data-batch-order aria-label="{escape(say("batch_page.order.label"))}">{orders}</select>'
        f'<input type="search" data-batch-search placeholder="{search}" aria-label="{search}" maxlength="200"></div>'
        f'<div class="batch-body">{table_frame(texts)}</div></article></div>'
    )


def table_frame(texts: Texts) -> str:
    columns = ("row", "prompt", "thought", "answer", "finish", "tokens")
    heads = "".join(f'<th scope="col">{escape(texts.say(f"batch.column.{name}"))}</th>' for name in columns)
    return (
        f'<div class="table-scroll" tabindex="0"><table><thead><tr>{heads}</tr></thead><tbody></tbody></table></div>'
        f'<div class="pager"></div>'
    )


def parts(standing: Standing, texts: Texts) -> dict[str, str]:
    """Element id → what is in it now."""
    name = key(standing.entry.id)
    return {
        f"{name}-title": _title(standing, texts),
        f"{name}-figures": _figures(standing, texts),
        f"{name}-ending": _ending(standing, texts),
        f"{name}-actions": _actions(standing, texts),
        f"{name}-again": _again(standing, texts),
    }


def list_html(entries: Sequence[tuple[Entry, Progress]], opened: str, texts: Texts) -> str:
    """The visitor's batches; "" where there are none."""
    if not entries:
        return ""
    items = "".join(_item(entry, progress, opened, texts) for entry, progress in entries)
    return f'<h3>{escape(texts.say("batch_page.list"))}</h3><ul class="batch-items">{items}</ul>'


def _item(entry: Entry, progress: Progress, opened: str, texts: Texts) -> str:
    title = escape(entry.title)
    version = f' <span class="badge">{escape(texts.say("batch_page.version", number=entry.version))}</span>' if entry.version > 1 else ""
    state = texts.say(f"batch_page.state.{entry.state}")
    count = f"{progress.done:,} / {progress.total:,}"
    current = ' aria-current="true"' if entry.id == opened else ""
    dot = f'<span class="dot" data-state="{_dot(entry)}" aria-hidden="true"></span>'
    return (
        f'<li><button type="button" data-batch-open="{entry.id}"{current} title="{title}">'
        f'<span class="batch-item-title" dir="auto">{title}</span>{version}'
        f'<span class="meta">{dot}{escape(state)} · {count}</span></button></li>'
    )


def _dot(entry: Entry) -> str:
    if entry.going:
        return "starting"
    return "failed" if entry.state in ("failed", "interrupted") else "ready" if entry.state == "done" else "off"


def _title(standing: Standing, texts: Texts) -> str:
    entry, say = standing.entry, texts.say
    label = escape(say("batch_page.rename"))
    preset = PRESETS.get(entry.preset)
    facts = [
        say(f"batch_page.engine.{entry.engine}"),
        say(f"preset.{entry.preset}.label") if preset is not None else entry.preset,
        *(
            [say("batch_page.thinking" if entry.thinking else "batch_page.instant")]
            if preset is None or entry.thinking != preset.thinking
            else []
        ),
        say("batch_page.limit", count=f"{entry.sampling.max_tokens:,}"),
        f"{entry.created_at:%Y-%m-%d %H:%M} UTC",
    ]
    if entry.bad_rows:
        facts.append(say("batch_page.left_out", count=f"{entry.bad_rows:,}"))
    if entry.which is not None:
        facts.append(say(f"batch_page.which.{entry.which}"))
    chips = "".join(
        f'<button type="button" class="act plain" data-batch-open="{one.id}"{" aria-current=true" if one.id == entry.id else ""}>'
        f"{escape(say('batch_page.version', number=one.version))}</button>"
        for one in standing.versions
    )
    versions = f'<span class="batch-versions">{chips}</span>' if len(standing.versions) > 1 else ""
    return (
        f'<div class="batch-name"><input type="text" data-batch-rename="{entry.id}" value="{escape(entry.title)}" aria-label="{label}" '
        f'title="{label}" maxlength="120" dir="auto">{versions}</div>'
        f'<div class="fine">{" · ".join(escape(fact) for fact in facts)}</div>'
    )


def _figures(standing: Standing, texts: Texts) -> str:
    entry, now, say = standing.entry, standing.progress, texts.say
    share = 100 * now.done / now.total if now.total else 0
    told = say("batch.rows_done", done=f"{now.done:,}", total=f"{now.total:,}")
    items = [told]
    if entry.going:
        items.append(say("batch.running", running=f"{now.running:,}", waiting=f"{now.waiting:,}"))
    if now.failed:
        items.append(say("batch_page.failed", count=f"{now.failed:,}"))
    if now.cut_off:
        items.append(say("batch_page.cut_off", count=f"{now.cut_off:,}"))
    if now.generated_tokens:
        items.append(say("batch_page.tokens", prompt=f"{now.prompt_tokens:,}", generated=f"{now.generated_tokens:,}"))
    if entry.state == "running" and now.generated_rate:
        items.append(say("batch_page.rates", prompt=f"{now.prompt_rate:,.1f}", generated=f"{now.generated_rate:,.1f}"))
    if entry.state == "running" and now.left_s is not None and now.done < now.total:
        items.append(say("batch_page.left", time=duration(now.left_s, texts)))
    phase = ""
    if entry.state == "queued":
        words = say("batch_page.in_line", ahead=standing.ahead) if standing.ahead > 1 else say("batch_page.next")
        phase = f'<div class="phase" role="status">{spinner(escape(words), "")}</div>'
    elif standing.phase is not None and entry.going:
        ticking = seconds_html(standing.phase_s, texts, running=True)
        phase = f'<div class="phase" role="status">{spinner(escape(phase_words(standing.phase, texts)), ticking)}</div>'
    bar = f'<progress max="100" value="{share:.2f}" aria-label="{escape(told)}"></progress>'
    return f'{phase}{bar}<div class="numbers">{"".join(f"<span>{escape(item)}</span>" for item in items)}</div>'


def duration(seconds: float, texts: Texts) -> str:
    """In the two largest units: "1 h 5 min"."""
    whole = max(0, round(seconds))
    hours, minutes, rest = whole // 3600, whole % 3600 // 60, whole % 60
    if hours:
        return texts.say("batch_page.hours", hours=f"{hours:,}", minutes=minutes)
    return texts.say("batch_page.minutes", minutes=minutes, seconds=rest) if minutes else texts.say("batch_page.seconds", seconds=rest)


def _ending(standing: Standing, texts: Texts) -> str:
    entry, now = standing.entry, standing.progress
    if entry.failure is not None:
        told = failure_html(Failure(entry.failure, **entry.failure_params), texts)
        kept = texts.say("batch_page.kept", done=f"{now.done:,}", total=f"{now.total:,}")
        return told + ("" if entry.state == "paused" else notice_html("info", kept))
    if entry.state == "paused":
        return notice_html("info", texts.say("batch_page.paused", running=now.in_hand))
    if entry.state in ("stopped", "interrupted"):
        kind = "info" if entry.state == "stopped" else "warning"
        return notice_html(kind, texts.say(f"batch.{entry.state}", done=f"{now.done:,}", total=f"{now.total:,}"))
    return ""


def _actions(standing: Standing, texts: Texts) -> str:
    entry, say = standing.entry, texts.say
    found: list[str] = []

    def act(name: str, words: str) -> None:
        found.append(act_button("batch", name, say(words), batch=entry.id))

    if entry.state == "running" and standing.phase is None:
        act("batch_pause", "batch_page.pause")
    if entry.state == "paused":
        act("batch_resume", "batch_page.resume")
    if entry.going:
        act("batch_stop", "page.stop")
    elif entry.state != "done":
        act("batch_go_on", "batch_page.go_on")
        if standing.stops is not None and standing.operator:
            holder = say(f"accelerators.holder.{standing.stops}")
            found.append(
                act_button("batch", "batch_go_on", say("batch_page.go_on_stopping", holder=holder), batch=entry.id, takeover="true")
            )
    if standing.progress.done:
        found.append(_downloads(entry, texts))
        if not entry.going:
            found.append(publish_button("batch", entry.id, texts, plain=False))
    sure = act_button("batch", "batch_delete", say("batch_page.delete_sure"), batch=entry.id)
    what = f'<p class="fine">{escape(say("batch_page.delete_what"))}</p>'
    found.append(_menu(f"{key(entry.id)}-delete", say("batch_page.delete"), what + sure))
    return "".join(found)


def _menu(name: str, words: str, items: str) -> str:
    summary = f'<summary class="act plain">{escape(words)}</summary>'
    return f'<details class="menu" id="{name}">{summary}<div class="menu-items">{items}</div></details>'


def _downloads(entry: Entry, texts: Texts) -> str:
    say = texts.say
    where = f"kimi/batches/{entry.id}/download"
    others = "".join(
        f'<a class="act plain" href="{where}.{form}" download>{escape(say(f"batch_page.form.{form}"))}</a>'
        for form in ENDINGS
        if form != "jsonl"
    )
    first = f'<a class="act export" href="{where}.jsonl" download>{escape(say("batch.download"))}</a>'
    return first + _menu(f"{key(entry.id)}-forms", say("batch_page.forms"), others)


def _again(standing: Standing, texts: Texts) -> str:
    """The form for a further version; only of a batch that is over."""
    entry, now, say = standing.entry, standing.progress, texts.say
    if entry.going or not now.done:
        return ""
    rows = [("failed", now.failed), ("cut_off", now.cut_off), ("all", entry.rows)]
    which = "".join(
        f'<option value="{name}">{escape(say(f"batch_page.again.{name}", count=f"{count:,}"))}</option>' for name, count in rows if count
    )
    presets = "".join(
        f'<option value="{name}"{" selected" if name == entry.preset else ""}>{escape(say(f"preset.{name}.label"))}</option>'
        for name in PRESETS
    )
    engines = "".join(
        f'<option value="{name}"{" selected" if name == entry.engine else ""}>{escape(say(f"batch_page.engine.{name}"))}</option>'
        for name in ("offline", "server")
    )
    same, more = entry.sampling.max_tokens, 4 * entry.sampling.max_tokens
    first = more if now.cut_off and not now.failed else same
    checked = " checked" if entry.thinking else ""
    return (
        f'<details class="batch-again-form" id="{key(entry.id)}-again-form"><summary>{escape(say("batch_page.again.title"))}</summary>'
        f'<form data-batch-again="{entry.id}"><label>{escape(say("batch_page.again.rows"))} <select name="which">{which}</select></label>'
        f'<label>{escape(say("batch.preset"))} <select name="preset">{presets}</select></label>'
        f'<label>{escape(say("page.max_tokens"))} <input type="number" name="max_tokens" value="{first}" step="1" '
        f'data-same="{same}" data-more="{more}"></label>'
        f'<label>{escape(say("parameter.temperature.label"))} <input type="text" name="temperature" size="6" maxlength="40" '
        f'placeholder="{escape(say("batch_page.as_preset"))}"></label>'
        f'<label>{escape(say("batch_page.engine.label"))} <select name="engine">{engines}</select></label>'
        f'<label class="check"><input type="checkbox" name="thinking"{checked}> {escape(say("page.thinking"))}</label>'
        f'<button type="submit" class="act">{escape(say("batch_page.again.run"))}</button>'
        f'<p class="fine">{escape(say("batch_page.again.note"))}</p></form></details>'
    )
