"""Sentences under a run: how it ended, when that was not simply well, and what can be done."""

from html import escape

from kimi_demo.dialect.events import Ended, Failed
from kimi_demo.dialect.failure import Failure
from kimi_demo.dialect.reply import Reply
from kimi_demo.ui.texts import Texts
from kimi_demo.ui.view.again import more_tokens, offers


def failure_html(failed: Failed | Failure, texts: Texts, more: str = "") -> str:
    """more: HTML that follows the sentence."""
    what, hint = texts.failure(failed.code, failed.params)
    return f'<div class="notice" data-kind="error" role="alert"><b>{escape(what)}</b> {escape(hint)}{more}</div>'


def notice_html(kind: str, text: str, more: str = "") -> str:
    """kind: "info", "warning" or "error"; more: HTML that follows the sentence."""
    return f'<div class="notice" data-kind="{kind}">{escape(text)}{more}</div>'


def ending(ended: Ended, last: Reply | None, failed: Failed | None, texts: Texts, *, max_tokens: int | None, run_id: str = "") -> str:
    """What to say at a run's end, and with `run_id` what can be done; "" when there is nothing to say beyond the answer itself."""
    buttons = offers(ended, last, run_id, texts) if last is not None and run_id else ""
    if failed is not None:
        return failure_html(failed, texts, buttons)
    if ended.state == "stopped":
        return notice_html("info", texts.say("notice.stopped"), buttons)
    if ended.state == "interrupted":
        return notice_html("warning", texts.say("notice.interrupted"), buttons)
    if last is None:
        return ""
    if last.cut_off_in_thought:
        spent = last.usage.completion_tokens if last.usage and last.usage.completion_tokens is not None else last.max_tokens or max_tokens
        words = texts.say("notice.cut_off_in_thought", count="?" if spent is None else spent)
        if run_id and more_tokens(last) is None:
            words += " " + texts.say("again.no_room", limit=last.context)
        return notice_html("warning", words, buttons)
    if last.finish_reason == "length":
        limit = last.max_tokens or max_tokens
        return notice_html("warning", texts.say("notice.cut_off", count="?" if limit is None else limit), buttons)
    if not last.answer.strip() and not last.calls:
        return notice_html("warning", texts.say("notice.empty"))
    return ""
