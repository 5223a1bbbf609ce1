"""A thought that went on after its budget had ended it: the server cut it, and the model thinks on in its answer. Pure."""

from html import escape

from kimi_demo.dialect.leaks import leaks
from kimi_demo.dialect.reply import THOUGHT_END, Reply
from kimi_demo.ui.texts import Texts


def late_thought(reply: Reply) -> tuple[str, str]:
    """(what of the answer is still thought, the rest). The first is "" unless a budget was set and the model closed its thought again."""
    if "thought_goes_on" not in leaks(reply):
        return "", reply.answer
    late, _, answer = reply.answer.rpartition(THOUGHT_END)
    return late, answer.lstrip("\n")


def late_html(text: str, texts: Texts) -> str:
    """A folded panel like that of a thought, as plain text, marks of earlier ends included."""
    label = escape(texts.say("thought.late"))
    return (
        f'<details class="thought" data-state="done"><summary><span class="label">{label}</span></summary>'
        f'<div class="thought-text ws" dir="auto" tabindex="0">{escape(text.strip())}</div></details>'
    )
