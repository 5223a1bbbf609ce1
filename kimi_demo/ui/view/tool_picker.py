"""The picker above the tool conversations: every tool with its switch, by source, and how the model may use them. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from itertools import groupby

from kimi_demo.tools.bench import Bench
from kimi_demo.tools.mcp_server import State
from kimi_demo.tools.tool import SchemaTool
from kimi_demo.tools.workbench import Listed
from kimi_demo.ui.texts import Texts
from kimi_demo.ui.view.act import button

_DOTS: dict[State, str] = {"ready": "ready", "connecting": "starting", "failed": "failed", "off": "off"}


@dataclass(frozen=True)
class ServerShown:
    """An MCP server as the picker tells of it. why: words, where it failed."""

    name: str
    state: State
    why: str = ""


def summary_html(rows: Sequence[Listed], bench: Bench, texts: Texts) -> str:
    """The line that shows while the picker is closed."""
    say = texts.say
    on = [row for row in rows if row.on and row.tool is not None]
    parts = [say("bench.offered", on=len(on), all=len(rows)), say("bench.chip", choice=_choice_words(bench.choice, texts))]
    if not bench.parallel:
        parts.append(say("bench.one_at_a_time"))
    return f"<b>{escape(parts[0])}</b>" + "".join(f'<span class="chip">{escape(part)}</span>' for part in parts[1:])


def picker_html(rows: Sequence[Listed], bench: Bench, servers: Sequence[ServerShown], texts: Texts, *, parallel_known: bool = True) -> str:
    """parallel_known: whether this server can be asked for one call at a time."""
    say = texts.say
    groups = {key: list(group) for key, group in groupby(rows, key=lambda row: (row.source, row.server))}
    parts = [_group(say(f"bench.source.{source}"), groups.get((source, ""), []), texts) for source in ("guide", "showcase")]
    if texts.discreet:  # viewers have neither tools of their own nor MCP
        return f'{_rules(rows, bench, texts, parallel_known)}<div class="bench-groups">{"".join(parts)}</div>'
    own = groups.get(("own", ""), [])
    none = f'<p class="fine">{escape(say("bench.own_none"))}</p>' if not own else ""
    parts.append(_group(say("bench.source.own"), own, texts, after=none + _own_foot(bool(own), texts)))
    for server in servers:
        parts.append(_group(say("bench.source.mcp", name=server.name), groups.get(("mcp", server.name), []), texts, _state(server, texts)))
    return f'{_rules(rows, bench, texts, parallel_known)}<div class="bench-groups">{"".join(parts)}</div>'


def _rules(rows: Sequence[Listed], bench: Bench, texts: Texts, parallel_known: bool) -> str:
    say = texts.say
    choices = ["auto", "required", "none", *(f"tool:{row.name}" for row in rows if row.on and row.tool is not None)]
    if bench.choice not in choices:
        choices.append(bench.choice)
    options = "".join(
        f'<option value="{escape(choice)}"{" selected" if choice == bench.choice else ""}>{escape(_choice_words(choice, texts))}</option>'
        for choice in choices
    )
    checked = " checked" if bench.parallel else ""
    off, why = ("", "") if parallel_known else (" disabled", f' title="{escape(say("bench.parallel_unknown"))}"')
    return (
        f'<div class="bench-rules"><label><span>{escape(say("bench.choice"))}</span> <select data-bench-choice>{options}</select></label>'
        f'<label class="bench-parallel"{why}><input type="checkbox" role="switch" data-bench-parallel{checked}{off}> '
        f"{escape(say('bench.parallel'))}</label></div>"
    )


def _choice_words(choice: str, texts: Texts) -> str:
    kind, _, name = choice.partition(":")
    return texts.say("bench.choice_tool", name=name) if kind == "tool" else texts.say(f"bench.choice_{kind}")


def _group(title: str, rows: Sequence[Listed], texts: Texts, note: str = "", after: str = "") -> str:
    items = "".join(_row(row, texts) for row in rows)
    listed = f"<ul>{items}</ul>" if items else ""
    return f'<section class="bench-group"><h3>{escape(title)}{note}</h3>{listed}{after}</section>'


def _row(row: Listed, texts: Texts) -> str:
    say = texts.say
    label = escape(say("bench.switch", name=row.name))
    checked = " checked" if row.on else ""
    off = " disabled" if row.tool is None else ""
    switch = f'<input type="checkbox" role="switch" aria-label="{label}" data-bench-switch="{escape(row.name)}"{checked}{off}>'
    told = f'<span class="wrong">{escape(texts.sentence(row.failure))}</span>' if row.failure is not None else ""
    how, buttons = "", ""
    if row.own is not None:
        how = f'<span class="chip">{escape(say(f"bench.answering.{row.own.answering}"))}</span>'
        edit = button(say("bench.edit", name=row.name), f'data-bench-edit="{escape(row.name)}"', picture="edit")
        delete = button(say("bench.delete", name=row.name), f'data-bench-delete="{escape(row.name)}"', picture="delete")
        buttons = f'<span class="bench-buttons">{edit}{delete}</span>'
    return (
        f'<li class="bench-tool" data-tool="{escape(row.name)}" data-on="{int(row.on)}">{switch}'
        f'<div class="bench-words"><code>{escape(row.name)}<span class="meta">({escape(", ".join(_parameters(row)))})</span></code> {how}'
        f'<div class="bench-description" dir="auto">{escape(row.description)}</div>{told}</div>{buttons}</li>'
    )


def _parameters(row: Listed) -> list[str]:
    """The names of its arguments."""
    if row.tool is None:
        return ["?"]
    if isinstance(row.tool, SchemaTool):
        properties = row.tool.parameters.get("properties")
        return [str(name)[:40] for name in properties][:12] if isinstance(properties, dict) else []
    return list(row.tool.arguments.model_fields)


def _own_foot(any_own: bool, texts: Texts) -> str:
    say = texts.say
    out = f'<a class="act" href="kimi/tools/export.json" download>{escape(say("bench.export"))}</a>' if any_own else ""
    return (
        f'<div class="bench-foot">{button(say("bench.new"), "data-bench-new")}'
        f'<label class="act" tabindex="0" role="button">{escape(say("bench.import"))}'
        f'<input type="file" accept=".json,application/json" data-bench-import hidden></label>{out}</div>'
        '<div class="bench-told" role="status"></div>'
    )


def _state(server: ServerShown, texts: Texts) -> str:
    words = texts.say(f"bench.server.{server.state}", why=server.why)
    again = button(texts.say("bench.server_again"), "data-bench-again", plain=True) if server.state == "failed" else ""
    return f' <span class="bench-state"><span class="dot" data-state="{_DOTS[server.state]}"></span>{escape(words)}</span>{again}'
