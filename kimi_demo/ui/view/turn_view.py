"""What one can do with a chat turn, and what stands below the last one: taken-back turns and waiting messages."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from kimi_demo.runs.conversations import Conversation, Queued
from kimi_demo.ui.attachments import shown_html
from kimi_demo.ui.texts import Texts
from kimi_demo.ui.view.act import act_button, button, icon
from kimi_demo.ui.view.publish_view import publish_button
from kimi_demo.ui.view.rate_view import rate_buttons

TAIL = "chat-tail"
"""Id of the element below the last turn."""


@dataclass(frozen=True)
class Turn:
    """A run as part of a conversation. versions: it and its siblings, oldest first."""

    run_id: str
    versions: Sequence[str]


def versions_html(turn: Turn, texts: Texts) -> str:
    """Arrows to the other versions; "" for the only one."""
    total, number = len(turn.versions), turn.versions.index(turn.run_id)
    if total < 2:
        return ""

    def arrow(name: str, target: int) -> str:
        words = texts.say(f"turn.{name}")
        if 0 <= target < total:
            return act_button("chat", "chat_version", words, picture=name, run=turn.versions[target])
        return button(words, "disabled", picture=name)

    other = turn.versions[number - 1] if number else turn.versions[1]
    side = "before" if number else "after"
    beside = button(texts.say("turn.beside"), f'data-beside="{other}" data-side="{side}" aria-pressed="false"', plain=True)
    return (
        f'<span class="versions" role="group" aria-label="{escape(texts.say("turn.versions"))}">{arrow("previous", number - 1)}'
        f'<span class="version">{number + 1}/{total}</span>{arrow("next", number + 1)}{beside}</span>'
    )


def actions_html(turn: Turn, texts: Texts, *, thinking: bool, thought: bool, answer: bool) -> str:
    """The row under a finished turn. thinking: how it was asked; thought, answer: whether there is one to copy."""
    say, run = texts.say, turn.run_id

    def copy(what: str, picture: str = "") -> str:
        return button(say(f"turn.copy_{what}"), f'data-copy-run="{run}" data-what="{what}"', picture=picture, plain=True)

    found = [copy("answer", "copy")] if answer else []
    found.append(act_button("chat", "chat_again", say("turn.again"), picture="again", run=run, mode="same"))
    found.append(button(say("turn.edit"), f'data-edit="{run}"', picture="edit"))
    found.append(rate_buttons(run, texts))
    more = [copy("thought")] if thought else []
    more += [copy("both")] if thought and answer else []
    other = "without_thinking" if thinking else "with_thinking"
    more.append(act_button("chat", "chat_again", say(f"turn.{other}"), plain=True, run=run, mode="other"))
    more.append(publish_button("turn", run, texts))
    more.append(f'<span class="take-back">{act_button("chat", "chat_take_back", say("turn.undo"), plain=True, run=run)}</span>')
    summary = f'<summary class="act plain" aria-label="{escape(say("turn.more"))}">{icon("more")}</summary>'
    return f'{"".join(found)}<details class="menu">{summary}<div class="menu-items">{"".join(more)}</div></details>'


def edit_words(texts: Texts) -> str:
    """Attributes of the conversation's box by which assets/live.js names the buttons of an edited message."""
    return f'data-edit-save="{escape(texts.say("turn.edit_save"))}" data-edit-cancel="{escape(texts.say("turn.edit_cancel"))}"'


def tail_html(conversation: Conversation, texts: Texts, *, going: bool, taken_back: bool) -> str:
    """going: whether a reply is being written; taken_back: whether there are turns after the shown ones."""
    say = texts.say
    redo = ""
    if taken_back and not going:
        again = act_button("chat", "chat_bring_back", say("turn.redo"), chat=conversation.id)
        redo = f'<div class="taken-back"><span class="meta">{escape(say("turn.taken_back"))}</span> {again}</div>'
    return redo + "".join(_queued(conversation, each, texts, going=going, first=i == 0) for i, each in enumerate(conversation.queue))


def _queued(conversation: Conversation, message: Queued, texts: Texts, *, going: bool, first: bool) -> str:
    say = texts.say
    back = act_button("chat", "chat_unqueue", say("turn.take_back"), plain=True, chat=conversation.id, message=message.id)
    send = act_button("chat", "chat_send_waiting", say("turn.send_now"), chat=conversation.id) if first and not going else ""
    words = say("turn.waiting" if going else "turn.held")
    images = shown_html(message.parameters, texts)
    bubble = f'<div class="question">{images}<div class="bubble">{escape(message.text)}</div></div>'
    return (
        f'<div class="queued" data-message="{message.id}">{bubble}'
        f'<div class="queued-state"><span class="meta">{escape(words)}</span>{send}{back}</div></div>'
    )
