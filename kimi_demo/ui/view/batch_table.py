"""Rows of a batch: a window of the table, and one row in full. Everything in them was written by somebody else, and is escaped. Pure."""

import json
from collections.abc import Sequence
from html import escape
from typing import Any

from kimi_demo.batches.results import Result
from kimi_demo.batches.rows import Row
from kimi_demo.ui.texts import Texts

PAGE = 50
"""Rows of one window."""

_CELL = 400
_WHOLE = 200_000
"""Characters of a text that are shown; downloads have all of it."""


def rows_html(results: Sequence[Result], waiting: Sequence[Row], texts: Texts) -> str:
    """Finished rows first."""
    return "".join(_finished(result, texts) for result in results) + "".join(_waiting(row, texts) for row in waiting)


def pager_html(page: int, total: int, texts: Texts) -> str:
    """page: from 0; total: rows. "" where one window holds them all."""
    pages = -(-total // PAGE)
    if pages < 2:
        return ""
    first, last = page * PAGE + 1, min(total, (page + 1) * PAGE)

    def step(to: int, words: str) -> str:
        off = "" if 0 <= to < pages and to != page else " disabled"
        return f'<button type="button" class="act" data-batch-page="{to}"{off}>{escape(words)}</button>'

    say = texts.say
    told = say("batch_page.page", first=f"{first:,}", last=f"{last:,}", total=f"{total:,}")
    return (
        f"{step(0, say('batch_page.first'))}{step(page - 1, say('batch_page.previous'))}<span>{escape(told)}</span>"
        f"{step(page + 1, say('batch_page.next_page'))}{step(pages - 1, say('batch_page.last'))}"
    )


def _finished(result: Result, texts: Texts) -> str:
    say = texts.say
    finish = result.finish_reason or "–"
    if result.error is not None:
        state, finish = "failed", say("batch_page.row_failed")
        what, hint = texts.failure(result.error, result.error_params)
        middle = f'<td class="thought-cell">–</td><td class="row-error">{_cell(f"{what} {hint}")}</td>'
    else:
        state = "in_thought" if result.cut_off_in_thought else "cut_off" if result.cut_off else "done"
        thought = "–" if result.reasoning is None else _cell(result.reasoning)
        answer = f"<em>{escape(say('batch.cut_off_in_thought'))}</em>" if state == "in_thought" else _cell(result.answer)
        middle = f'<td class="thought-cell" dir="auto">{thought}</td><td dir="auto">{answer}</td>'
    tokens = f"{result.prompt_tokens:,} + {result.completion_tokens:,}"
    return (
        f'<tr data-row="{result.index}" data-state="{state}"><td class="count">{_opener(result.index, texts)}</td>'
        f'<td dir="auto">{_cell(result.prompt)}</td>{middle}<td><code>{escape(finish)}</code></td><td class="count">{tokens}</td></tr>'
    )


def _opener(index: int, texts: Texts) -> str:
    told = escape(texts.say("batch_page.open_row", number=index + 1))
    return (
        f'<button type="button" class="act plain" data-batch-row="{index}" aria-expanded="false" aria-label="{told}">{index + 1}</button>'
    )


def _waiting(row: Row, texts: Texts) -> str:
    words = escape(texts.say("batch_page.row_waiting"))
    return (
        f'<tr data-row="{row.index}" data-state="waiting"><td class="count">{row.index + 1}</td><td dir="auto">{_cell(row.prompt)}</td>'
        f'<td class="thought-cell"></td><td></td><td class="meta">{words}</td><td></td></tr>'
    )


def _cell(text: str) -> str:
    return f'<div class="cell">{escape(clipped(text, _CELL))}</div>'


def clipped(text: str, most: int) -> str:
    return text if len(text) <= most else text[:most] + " …"


def row_html(result: Result, texts: Texts) -> str:
    """One row in full."""
    say = texts.say
    sections = [_text(say("batch_page.row.prompt"), _asked(result), texts)]
    if result.error is not None:
        sections.append(_text(say("batch_page.row.error"), " ".join(texts.failure(result.error, result.error_params)), texts, "row-error"))
    else:
        if result.reasoning is not None:
            sections.append(_text(say("batch.column.thought"), result.reasoning, texts, "thought-cell"))
        sections.append(_text(say("batch.column.answer"), result.answer or say("batch.cut_off_in_thought"), texts))
    if result.rendered_prompt is not None:
        sections.append(_folded(say("batch_page.row.rendered"), _text("", result.rendered_prompt, texts)))
    facts: list[tuple[str, Any]] = [
        (say("batch_page.row.line"), result.line),
        (say("batch.column.finish"), result.finish_reason or "–"),
        (say("batch.column.tokens"), f"{result.prompt_tokens:,} + {result.completion_tokens:,}"),
        (say("batch_page.row.seconds"), f"{result.seconds:.2f}"),
        (say("batch_page.row.model"), result.model),
        (say("batch_page.row.parameters"), json.dumps(dict(result.parameters), ensure_ascii=False)),
    ]
    if result.custom_id is not None:
        facts.append(("custom_id", result.custom_id))
    facts += [(name, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)) for name, value in result.columns.items()]
    listed = "".join(f"<dt>{escape(clipped(str(name), 200))}</dt><dd>{escape(clipped(str(value), 2000))}</dd>" for name, value in facts)
    return f'<div class="batch-row">{"".join(sections)}<dl>{listed}</dl></div>'


def _asked(result: Result) -> str:
    if result.messages is None:
        return result.prompt
    return "\n\n".join(f"{message.get('role')}: {_content(message.get('content'))}" for message in result.messages)


def _content(content: Any) -> str:
    return content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)


def _text(title: str, text: str, texts: Texts, style: str = "") -> str:
    head = f"<h4>{escape(title)}</h4>" if title else ""
    cut = f'<p class="fine">{escape(texts.say("batch_page.clipped"))}</p>' if len(text) > _WHOLE else ""
    button = f'<button type="button" class="copy" data-copy aria-label="{escape(texts.say("page.copy"))}"></button>'
    shown = f'<div class="code">{button}<pre dir="auto">{escape(clipped(text, _WHOLE))}</pre></div>'
    return f'<section class="{style}">{head}{shown}{cut}</section>'


def _folded(title: str, inside: str) -> str:
    return f"<details><summary>{escape(title)}</summary>{inside}</details>"
