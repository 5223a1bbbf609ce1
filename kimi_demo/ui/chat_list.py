"""The list of conversations beside the chat: its frame, which the page holds from the start, and its items, which come when asked for."""

from html import escape

from kimi_demo.chats import Chats
from kimi_demo.runs.conversations import Conversation
from kimi_demo.ui.texts import Texts
from kimi_demo.ui.view.act import button
from kimi_demo.ui.view.publish_view import publish_button

PAGE = 50
"""Conversations that are shown at once; more on demand."""


def frame_html(texts: Texts) -> str:
    """The list without its items; assets/chat.js fills it."""
    say = texts.say
    search = escape(say("chats.search"))
    data = " ".join(
        f'data-{name}="{escape(say(f"chats.{name}", title="{title}"))}"' for name in ("deleted", "restore", "system", "system_set")
    )
    return (
        f'<nav class="chat-list" aria-label="{escape(say("chats.title"))}" {data}>'
        f'<button type="button" class="drawer" aria-expanded="false" data-drawer>{escape(say("chats.title"))}</button>'
        f'<div class="chat-list-body"><div class="chat-list-head"><input type="search" placeholder="{search}" aria-label="{search}"></div>'
        f'<div class="chat-deleted" role="status"></div><ul class="chats" tabindex="-1"></ul>'
        f'<div class="chat-list-foot"><details class="menu export-menu"><summary class="act plain">{escape(say("chats.export"))}</summary>'
        f'<div class="menu-items">{_exports(texts)}{publish_button("chat", "", texts)}</div></details>'
        f"{'' if texts.discreet else _import(texts)}</div></div></nav>"
    )


def _exports(texts: Texts) -> str:
    kinds = {"json": "export_json", "md": "export_markdown", "html": "export_html"}
    return "".join(
        f'<a class="act plain" data-export="{name}" download>{escape(texts.say(f"chats.{key}"))}</a>' for name, key in kinds.items()
    )


def _import(texts: Texts) -> str:
    say = texts.say
    hint = escape(say("chats.import_hint"))
    return (
        f'<details class="menu import-menu"><summary class="act plain">{escape(say("chats.import"))}</summary><div class="menu-items">'
        f'<p class="fine">{hint}</p><textarea rows="4" aria-label="{hint}" spellcheck="false"></textarea>'
        f'<label class="act">{escape(say("chats.import_file"))}<input type="file" accept=".json,application/json" hidden></label>'
        f'{button(say("chats.import_do"), "data-import")}<div class="import-notice"></div></div></details>'
    )


def system_html(texts: Texts) -> str:
    """The field of the conversation's system prompt; it is saved when one leaves it."""
    say = texts.say
    hint = escape(say("chats.system_hint"))
    return (
        f'<details class="menu system-menu"><summary class="act plain">{escape(say("chats.system"))}</summary><div class="menu-items">'
        f'<p class="fine">{hint}</p><textarea rows="5" data-system aria-label="{escape(say("chats.system"))}" dir="auto"></textarea>'
        f'<span class="fine" data-system-saved hidden>{escape(say("chats.system_saved"))}</span></div></details>'
    )


async def items(chats: Chats, owner: str, texts: Texts, *, opened: str, search: str, count: int) -> dict[str, object]:
    """{"html": the first `count` items, "running": whether a reply is being written in any of them}."""
    found = await chats.conversations.list(owner, search=search, limit=count + 1)
    going = {each.id for each in found if chats.going(each) is not None}
    shown = found[:count]
    html = "".join(_item(each, texts, opened=each.id == opened, going=each.id in going) for each in shown)
    if not found:
        html = f'<li class="fine none">{escape(texts.say("chats.none_found" if search.strip() else "chats.none"))}</li>'
    if len(found) > count:
        more = button(texts.say("chats.more"), f'data-more="{count + PAGE}"', plain=True)
        html += f'<li class="more">{more}</li>'
    return {"html": html, "running": bool(going)}


def _item(conversation: Conversation, texts: Texts, *, opened: bool, going: bool) -> str:
    say, title = texts.say, escape(conversation.title or texts.say("chats.untitled"))
    dot = f'<span class="dot" data-state="starting" role="img" aria-label="{escape(say("chats.running"))}"></span>' if going else ""
    current = ' aria-current="true"' if opened else ""
    rename = button(say("chats.rename"), "data-rename", picture="edit")
    delete = button(say("chats.delete"), "data-delete-chat", picture="delete")
    return (
        f'<li class="chat" data-chat="{conversation.id}"><button type="button" class="chat-open" data-open-chat="{conversation.id}" '
        f'title="{title}" dir="auto"{current}>{dot}<span class="chat-title">{title}</span></button>{rename}{delete}</li>'
    )
