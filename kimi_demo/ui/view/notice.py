"""Sentences under a run: how it ended, when that was not simply well, and what can be done."""

from html import escape

from kimi_demo.dialect.events import Ended, Failed
from kimi_demo.dialect.failure import Failure
from kimi_demo.dialect.reply import Reply
from kimi_demo.ui.texts import Texts


def failure_html(failed: Failed | Failure, texts: Texts) -> str:
    what, hint = texts.failure(failed.code, failed.params)
    return f'<div class="notice" data-kind="error" role="alert"><b>{escape(what)}</b> {escape(hint)}</div>'


def notice_html(kind: str, text: str) -> str:
    """kind: "info", "warning" or "error"."""
    return f'<div class="notice" data-kind="{kind}">{escape(text)}</div>'


def ending(ended: Ended, last: Reply | None, failed: Failed | None, texts: Texts, *, max_tokens: int | None) -> str:
    """What to say at a run's end; "" when there is nothing to say beyond the answer itself."""
    if failed is not None:
        return failure_html(failed, texts)
    if ended.state == "stopped":
        return notice_html("info", texts.say("notice.stopped"))
    if ended.state == "interrupted":
        return notice_html("warning", texts.say("notice.interrupted"))
    if last is None:
        return ""
    if last.cut_off_in_thought:
        spent = last.usage.completion_tokens if last.usage and last.usage.completion_tokens is not None else max_tokens
        return notice_html("warning", texts.say("notice.cut_off_in_thought", count="?" if spent is None else spent))
    if last.finish_reason == "length":
        return notice_html("warning", texts.say("notice.cut_off", count="?" if max_tokens is None else max_tokens))
    if not last.answer.strip() and not last.calls:
        return notice_html("warning", texts.say("notice.empty"))
    return ""
