"""What is odd about a reply that calls tools, though it can be worked with: said, so that nobody wonders later. Pure."""

import re

from kimi_demo.dialect.leaks import MARK
from kimi_demo.dialect.reply import Reply

_KIMI_ID = re.compile(r"functions\..+:\d+", re.S)


def oddities(reply: Reply) -> list[str]:
    """Keys of ui/texts (`phase.tools.<key>`), each at most once.

    same_id: two calls of the reply have the same id. foreign_ids: ids in another form than Kimi's functions.NAME:NUMBER.
    special_tokens: arguments hold marks of Kimi's vocabulary as text. text_after: the reply went on with text after its calls.
    """
    ids = [call.id for call in reply.calls if call.id]
    found = []
    if len(set(ids)) < len(ids):
        found.append("same_id")
    if any(not _KIMI_ID.fullmatch(each) for each in ids):
        found.append("foreign_ids")
    if any(MARK.search(call.arguments) for call in reply.calls):
        found.append("special_tokens")
    if reply.text_after_calls:
        found.append("text_after")
    return found
