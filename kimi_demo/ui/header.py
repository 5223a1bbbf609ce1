"""The header: the name of the page, what answers (the badge), and the switches of light and dark, language and presentation.

assets/switches.js carries the switches out; assets/live.js keeps the badge up to date.
"""

from html import escape

from kimi_demo.ui.texts import LANGUAGES, TAGS, Texts
from kimi_demo.ui.view.act import button, icon

THEMES = ("system", "light", "dark")


def header_html(texts: Texts) -> str:
    # Words that a script needs: what the badge says when it cannot reach the app, and the copy buttons' names.
    words = " ".join(f'data-say-{key}="{escape(texts.say(f"page.{key}"))}"' for key in ("away", "copy", "copied"))
    badge = '<div id="model-badge"><div class="live" role="status"></div></div>'
    switches = f'<div id="switches">{_themes(texts)}{_languages(texts)}{_presentation(texts)}</div>'
    return f'<header id="header" {words}><h1>{escape(texts.say("page.title"))}</h1>{badge}{switches}</header>'


def _themes(texts: Texts) -> str:
    buttons = ""
    for name in THEMES:
        words = escape(texts.say(f"page.theme.{name}"))
        buttons += f'<button type="button" role="radio" aria-checked="false" aria-label="{words}" title="{words}" data-theme="{name}">'
        buttons += f"{icon(name)}</button>"
    return f'<div class="modes" role="radiogroup" aria-label="{escape(texts.say("page.theme.label"))}">{buttons}</div>'


def _languages(texts: Texts) -> str:
    """A button for each other language, in that language: who cannot read the page finds their own."""
    others = {language: name for language, name in LANGUAGES.items() if language != texts.language}
    return "".join(
        f'<button type="button" class="act" lang="{TAGS[language]}" data-language="{language}">{escape(name)}</button>'
        for language, name in others.items()
    )


def _presentation(texts: Texts) -> str:
    return button(texts.say("page.present"), "data-present", picture="present")
