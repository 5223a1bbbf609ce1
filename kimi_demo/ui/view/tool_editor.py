"""The editor of a visitor's own tools: a dialog that assets/bench.js opens, fills and sends. Pure."""

import json
from html import escape

from kimi_demo.tools.own import MOST_ANSWER_CHARS, MOST_DESCRIPTION_CHARS
from kimi_demo.tools.own_templates import TEMPLATES
from kimi_demo.ui.texts import Texts
from kimi_demo.ui.view.act import button


def editor_html(texts: Texts) -> str:
    """The dialog, empty, with what to start from and its words in data attributes."""
    say = texts.say
    starts = "".join(f'<option value="{escape(key)}">{escape(say(f"bench.start.{key}"))}</option>' for key in TEMPLATES)
    contents = escape(json.dumps({key: tool.model_dump() for key, tool in TEMPLATES.items()}, ensure_ascii=False))
    words = " ".join(f'data-{key}="{escape(say(f"bench.editor.{key}", name="{name}"))}"' for key in ("new", "change", "discard"))
    ways = "".join(
        f'<label><input type="radio" name="answering" value="{way}"> <span>{escape(say(f"bench.answering.{way}"))}</span>'
        f'<span class="fine">{escape(say(f"bench.editor.about_{way}"))}</span></label>'
        for way in ("ask", "fixed", "template")
    )
    name = _field("name", texts, '<input name="name" maxlength="200" autocomplete="off" spellcheck="false">')
    about = f'<textarea name="description" rows="2" maxlength="{MOST_DESCRIPTION_CHARS}" dir="auto"></textarea>'
    schema = '<textarea name="parameters" class="code" rows="11" spellcheck="false" wrap="off"></textarea>'
    text = f'<textarea name="text" class="code" rows="4" maxlength="{MOST_ANSWER_CHARS}" dir="auto"></textarea>'
    fields = f"{name}{_field('description', texts, about)}{_field('parameters', texts, schema)}"
    return (
        f'<dialog id="tool-editor" aria-labelledby="tool-editor-title" data-starts="{contents}" {words}><form method="dialog" novalidate>'
        f'<header><h2 id="tool-editor-title"></h2>'
        f'<label class="start">{escape(say("bench.editor.start"))} <select name="start">{starts}</select></label></header>'
        f'<div class="editor-body">{fields}'
        f'<fieldset class="editor-field"><legend>{escape(say("bench.editor.answering"))}</legend><div class="ways">{ways}</div></fieldset>'
        f"{_field('answer', texts, text)}"
        f'</div><footer><div class="editor-told" role="alert"></div>{button(say("bench.editor.cancel"), "data-editor-cancel")}'
        f'<button type="submit" class="act primary">{escape(say("bench.editor.save"))}</button></footer></form></dialog>'
    )


def _field(name: str, texts: Texts, control: str) -> str:
    """A control with its label, and the place where it is said what is wrong with it."""
    say = texts.say
    return (
        f'<div class="editor-field" data-field="{name}"><label><span>{escape(say(f"bench.editor.{name}"))}</span> '
        f'<span class="fine">{escape(say(f"bench.editor.about_{name}"))}</span>{control}</label>'
        f'<div class="field-wrong" role="alert"></div></div>'
    )
