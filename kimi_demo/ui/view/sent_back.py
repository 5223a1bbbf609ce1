"""What a round of a tool conversation sent back to the model: its own reasoning, its calls, and what they returned. Pure."""

from html import escape

from kimi_demo.dialect.reply import Reply
from kimi_demo.ui.texts import Texts

MOST_SHOWN = 2_000
"""Characters of the reasoning of one turn: every round sends that of all rounds before it, and the whole is in the request."""


def sent_back_html(key: str, reply: Reply, texts: Texts) -> str:
    """A closed box for the round with element ids that begin with `key`; "" for the first round, which sent nothing back."""
    messages = [message for message in reply.request.get("messages") or () if isinstance(message, dict)]
    turns = [message for message in messages if message.get("role") == "assistant" and message.get("tool_calls")]
    if not turns:
        return ""
    say = texts.say
    reasoning = [str(message.get("reasoning") or message.get("reasoning_content") or "") for message in turns]
    results = sum(message.get("role") == "tool" for message in messages)
    words = say("sent_back.title", characters=f"{sum(map(len, reasoning)):,}", results=results)
    parts = []
    for number, (message, thought) in enumerate(zip(turns, reasoning, strict=True), start=1):
        ids = ", ".join(str(call.get("id")) for call in message["tool_calls"] if isinstance(call, dict))
        parts.append(
            f'<p class="fine">{escape(say("sent_back.turn", number=number, ids=ids))}</p><pre tabindex="0">{escape(_begun(thought))}</pre>'
        )
    return f'<details id="{key}-sent-back"><summary>{escape(words)}</summary>{"".join(parts)}</details>'


def _begun(thought: str) -> str:
    return thought if len(thought) <= MOST_SHOWN else f"{thought[:MOST_SHOWN]}\n… (+{len(thought) - MOST_SHOWN:,})"
