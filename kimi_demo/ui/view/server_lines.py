"""The Server tab's log: its tools, and the box that assets/server.js fills with lines. Pure."""

from html import escape

from kimi_demo.engines.log_lines import LEVELS
from kimi_demo.ui.texts import Texts


def log_html(texts: Texts) -> str:
    say = texts.say
    levels = ""
    for level in LEVELS:
        checked = "" if level == "debug" else " checked"
        words_of = escape(say(f"server_page.log.{level}"))
        levels += f'<label><input type="checkbox" data-srv-level="{level}"{checked}> {words_of}</label>'
    search = escape(say("server_page.log.search"))
    words = {name: escape(say(f"server_page.log.{name}")) for name in ("none", "run", "paused", "pause", "go_on")}
    words["shown"] = escape(say("server_page.log.shown", shown="{shown}", all="{all}"))  # assets/server.js fills in the numbers
    data = "".join(f' data-{name.replace("_", "-")}="{value}"' for name, value in words.items())
    return (
        f'<div class="srv-log-tools"><span class="srv-levels">{levels}</span>'
        f'<input type="search" id="srv-log-search" placeholder="{search}" aria-label="{search}" maxlength="200">'
        f'<label><input type="checkbox" id="srv-log-follow" checked> {escape(say("server_page.log.follow"))}</label>'
        f'<button type="button" class="act" data-srv-pause aria-pressed="false">{words["pause"]}</button>'
        f'<a class="act" href="kimi/server/log" download>{escape(say("server_page.log.download"))}</a>'
        f'<span class="fine" id="srv-log-count" role="status"></span></div>'
        f'<div class="srv-log" id="srv-log" tabindex="0" role="log" aria-live="off" '
        f'aria-label="{escape(say("server_page.view.log"))}"{data}></div>'
    )
