"""A file before it runs: what it is, what can be chosen, its first rows as the model reads them, and the rows that cannot run. Pure."""

from collections.abc import Sequence
from html import escape

from kimi_demo.batch_drafts import Checked, Draft
from kimi_demo.batches.preview import Rendered
from kimi_demo.batches.reading import FORMATS, Options
from kimi_demo.batches.rows import BadRow
from kimi_demo.batches.tables import MOST_NAMED
from kimi_demo.dialect.failure import Failure
from kimi_demo.ui.texts import Texts
from kimi_demo.ui.view.act import button
from kimi_demo.ui.view.batch_table import clipped
from kimi_demo.ui.view.notice import failure_html

ENCODINGS = ("utf-8", "utf-16", "gb18030", "big5", "shift_jis", "euc_kr", "cp1252", "cp1251")
_MOST_LISTED = 100


def picker_html(texts: Texts) -> str:
    """The way in for a file; assets/batch.js sends it and fills the card."""
    say = texts.say
    words = " ".join(
        f'data-{name}="{escape(say(f"batch_page.{key}"))}"'
        for name, key in (("sending", "sending"), ("reading", "reading"), ("lost", "lost"), ("drop", "drop"), ("one", "one_file"))
    )
    accept = ".txt,.csv,.tsv,.tab,.jsonl,.ndjson,.json,text/plain,text/csv,application/json"
    return (
        f'<div class="batch-picker" {words}><button type="button" class="act" data-batch-pick>{escape(say("batch_page.pick"))}</button>'
        f'<input type="file" accept="{accept}" hidden aria-label="{escape(say("batch_page.pick"))}">'
        f"{button(say('batch_page.preview'), 'data-batch-preview')}"
        f'<span class="fine">{escape(say("batch_page.kinds"))}</span><span class="fine batch-sending" role="status"></span></div>'
        f'<div class="batch-draft"></div>'
    )


def draft_html(draft: Draft, checked: Checked, options: Options, texts: Texts) -> str:
    source, found, say = checked.source, checked.found, texts.say
    facts = [say("batch_page.rows", count=f"{found.rows:,}")]
    facts += [say("batch_page.blank", count=f"{found.blank:,}")] if found.blank else []
    facts += [say("batch_page.duplicates", count=f"{found.duplicates:,}")] if found.duplicates else []
    kind = say("batch_page.kind", kind=source.format.upper(), encoding=source.encoding)
    if found.columns:
        kind += " · " + say("batch_page.columns", names=clipped(", ".join(found.columns), 300))
    if checked.limit is not None:
        kind += " · " + say("batch_page.context", limit=f"{checked.limit:,}")
    told = "".join(f"<b>{escape(fact)}</b>" for fact in facts)
    return (
        f'{_head(draft, texts)}<div class="batch-facts">{told}<span class="fine">{escape(kind)}</span></div>'
        f"{_choices(draft, options, source.header, source.column, texts)}{_bad(checked, texts)}{_first(checked, texts)}"
    )


def refused_html(draft: Draft, options: Options, failure: Failure, columns: Sequence[str], texts: Texts) -> str:
    """A file that cannot be read this way; what can be chosen stays, since that is the way out."""
    return f"{_head(draft, texts)}{failure_html(failure, texts)}{_choices(draft, options, columns, None, texts)}"


def _head(draft: Draft, texts: Texts) -> str:
    if not draft.name:
        return ""
    remove = button(texts.say("batch_page.remove"), "data-batch-remove")
    size = f"{draft.size / 1e6:,.1f} MB" if draft.size >= 1e6 else f"{draft.size / 1e3:,.1f} kB"
    return f'<div class="batch-file"><b dir="auto">{escape(draft.name)}</b> <span class="fine">{escape(size)}</span>{remove}</div>'


def _choices(draft: Draft, options: Options, columns: Sequence[str], column: str | None, texts: Texts) -> str:
    """How the file is read; of typed prompts there is nothing to choose."""
    if not draft.name:
        return ""
    say = texts.say

    def choice(name: str, values: Sequence[tuple[str, str]], chosen: str) -> str:
        listed = "".join(
            f'<option value="{escape(value)}"{" selected" if value == chosen else ""}>{escape(words)}</option>' for value, words in values
        )
        return f'<label>{escape(say(f"batch_page.choose.{name}"))} <select name="{name}">{listed}</select></label>'

    def switch(name: str, on: bool) -> str:
        checked, words = " checked" if on else "", escape(say(f"batch_page.choose.{name}"))
        return f'<label class="check"><input type="checkbox" name="{name}"{checked}> {words}</label>'

    found = ("", say("batch_page.choose.found"))
    parts = [choice("format", [found, *((name, name.upper()) for name in FORMATS)], options.format or "")]
    parts.append(choice("encoding", [found, *((name, name) for name in ENCODINGS)], options.encoding or ""))
    if columns:
        chosen = options.column or column or ""
        named = dict.fromkeys([*columns[:MOST_NAMED], *([chosen] if chosen in columns else [])])
        parts.append(choice("column", [found, *((name, clipped(name, 60)) for name in named)], chosen))
        parts.append(switch("header", options.header))
    else:
        label = escape(say("batch_page.choose.field"))
        parts.append(
            f'<label>{label} <input type="text" name="column" value="{escape(options.column or "")}" maxlength="200" size="12"></label>'
        )
    parts += [switch("keep_blank", options.keep_blank), switch("keep_duplicates", options.keep_duplicates)]
    return f'<form class="batch-choices">{"".join(parts)}</form>'


def _bad(checked: Checked, texts: Texts) -> str:
    if not checked.cannot_run:
        return ""
    listed = sorted((*checked.found.bad, *checked.long), key=lambda bad: bad.line)[:_MOST_LISTED]
    items = "".join(_bad_item(bad, texts) for bad in listed)
    more = checked.cannot_run - len(listed)
    rest = f"<li>{escape(texts.say('batch_page.more_bad', count=f'{more:,}'))}</li>" if more else ""
    title = texts.say("batch_page.bad", count=f"{checked.cannot_run:,}")
    return f'<details class="batch-bad notice" data-kind="warning" open><summary>{escape(title)}</summary><ul>{items}{rest}</ul></details>'


def _bad_item(bad: BadRow, texts: Texts) -> str:
    told = texts.say("batch_page.bad_line", line=f"{bad.line:,}", what=texts.sentence(bad.failure))
    return f'<li dir="auto">{escape(clipped(told, 600))}</li>'


def _first(checked: Checked, texts: Texts) -> str:
    if not checked.first:
        return ""
    why = f'<p class="fine">{escape(texts.sentence(checked.uncounted))}</p>' if checked.uncounted is not None else ""
    rows = "".join(_seen(seen, texts) for seen in checked.first)
    title = escape(texts.say("batch_page.first_rows"))
    return f'<div class="batch-first"><h4>{title}</h4>{why}{rows}</div>'


def _seen(seen: Rendered, texts: Texts) -> str:
    count = (
        ""
        if seen.tokens is None
        else f'<span class="badge">{escape(texts.say("batch_page.prompt_tokens", count=f"{seen.tokens:,}"))}</span>'
    )
    line = escape(texts.say("batch_page.line", line=f"{seen.row.line:,}"))
    prompt = f'<span class="cell" dir="auto">{escape(clipped(seen.row.prompt, 200))}</span>'
    inside = "" if seen.prompt is None else f'<pre dir="auto">{escape(clipped(seen.prompt, 4000))}</pre>'
    head = f'<span class="meta">{line}</span> {prompt} {count}'
    return f"<details><summary>{head}</summary>{inside}</details>" if inside else f'<div class="plain-row">{head}</div>'
