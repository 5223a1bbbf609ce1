"""What is offered after a reply that is not whole: more tokens, a briefer thought, or to go on where it ended. Pure."""

from kimi_demo.dialect.events import Ended
from kimi_demo.dialect.reply import Reply
from kimi_demo.ui.texts import Texts
from kimi_demo.ui.view.act import act_button

LEAST_GIVEN = 1024
"""A limit below this is too small for most thoughts, so the next is at least this."""


def more_tokens(reply: Reply) -> int | None:
    """The limit to ask again with: four times the last, as far as the context has room; None where it has no more."""
    sent = reply.max_tokens or 0
    wanted = max(LEAST_GIVEN, 4 * sent)
    if reply.context is not None:
        wanted = min(wanted, reply.context - _prompt_tokens(reply))
    return wanted if wanted > sent else None


def has_room(reply: Reply) -> bool:
    """Whether the context holds more than what has been written."""
    written = reply.usage.completion_tokens if reply.usage is not None else None
    return reply.context is None or _prompt_tokens(reply) + (written or 0) < reply.context


def offers(ended: Ended, reply: Reply, run_id: str, texts: Texts) -> str:
    """Buttons under the sentence that says how the reply ended; "" for none."""
    found = []
    if ended.state == "done" and reply.cut_off_in_thought:
        more = more_tokens(reply)
        if more is not None:
            words = texts.say("again.more", count=f"{more:,}")
            found.append(act_button("chat", "chat_give_more", words, run=run_id, max_tokens=str(more)))
        found.append(act_button("chat", "chat_keep_brief", texts.say("again.brief"), run=run_id))
    elif may_continue(ended, reply):
        words = texts.say("again.continue" if reply.answer.strip() else "again.continue_thought")
        found.append(act_button("chat", "chat_continue", words, run=run_id))
    return f'<div class="offers">{"".join(found)}</div>' if found else ""


def may_continue(ended: Ended, reply: Reply) -> bool:
    """Whether the server can be asked to go on: something was written, it is not whole, and there is room."""
    cut = reply.finish_reason == "length" if ended.state == "done" else reply.finish_reason is None
    written = bool(reply.answer.strip() or reply.thought.strip())
    return cut and written and reply.can_continue and not reply.calls and has_room(reply)


def _prompt_tokens(reply: Reply) -> int:
    known = reply.usage.prompt_tokens if reply.usage is not None else None
    return known or 0
