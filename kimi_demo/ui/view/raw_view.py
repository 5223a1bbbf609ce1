"""A raw completion: what the server received, token by token, and what it wrote, to the letter."""

from collections.abc import Iterable
from html import escape

from kimi_demo.dialect.events import AnswerDelta, Asked, Ended, Failed, Phase, PromptTokens, Remark, RoundStarted, Timed
from kimi_demo.dialect.leaks import MARK
from kimi_demo.dialect.reply import Reply
from kimi_demo.ui.texts import Texts
from kimi_demo.ui.view.notice import ending, notice_html
from kimi_demo.ui.view.numbers import numbers_html
from kimi_demo.ui.view.patch import Patch, add_text, set_html, set_state, spinner
from kimi_demo.ui.view.request import closed_html
from kimi_demo.ui.view.words import phase_words, seconds_html

COLOURED_LIMIT = 100_000
"""Characters of output up to which its marks are coloured when it is finished."""


class RawView:
    """The live view of one raw run in the element `run-{run_id}`."""

    def __init__(self, run_id: str, texts: Texts) -> None:
        self.key = f"run-{run_id}"
        self._texts = texts
        self._reply = Reply()
        self._failed: Failed | None = None
        self._remarks: list[Remark] = []
        self._waiting = True

    def skeleton(self) -> str:
        key, say = self.key, self._texts.say
        return (
            f'<article class="run raw" id="{key}" data-state="running">'
            f'<h4 class="round-title">{escape(say("raw.received"))} <span class="meta" id="{key}-count"></span></h4>'
            f'<pre class="tokens" id="{key}-prompt" dir="auto" tabindex="0"></pre>'
            f'<h4 class="round-title">{escape(say("raw.written"))}</h4>'
            f'<div class="phase" id="{key}-phase" role="status">{self._phase(Phase("waiting"), 0.0)}</div>'
            f'<div class="raw-output" id="{key}-output" dir="auto"></div>'
            f'<div class="ending" id="{key}-ending"></div><div class="numbers" id="{key}-0-numbers"></div></article>'
        )

    def take(self, entries: Iterable[Timed]) -> list[Patch]:
        """Patches that bring the browser from the last call's state to the one after `entries`."""
        found: list[Patch] = []
        written: list[str] = []
        ended: Ended | None = None
        for timed in entries:
            self._reply.add(timed)
            match timed.event:
                case Asked(text=text):
                    found.append(set_html(f"{self.key}-prompt", marked(text)))
                case PromptTokens() as tokens:
                    found += self._prompt(tokens)
                case Phase() as phase:
                    found.append(set_html(f"{self.key}-phase", self._phase(phase, timed.at)))
                case RoundStarted():
                    found.append(set_html(f"{self.key}-phase", self._phase(Phase("answering"), 0.0)))
                case Remark() as remark:
                    self._remarks.append(remark)
                case AnswerDelta(text=text):
                    written.append(text)
                case Failed() as failed:
                    self._failed = failed
                case Ended():
                    ended = timed.event
                case _:
                    pass
        if written and self._waiting:
            self._waiting = False
            found.append(set_html(f"{self.key}-phase", ""))
        if written and (ended is None or len(self._reply.answer) > COLOURED_LIMIT):
            found.append(add_text(f"{self.key}-output", "".join(written)))
        return found + (self._finale(ended) if ended is not None else [])

    def _prompt(self, tokens: PromptTokens) -> list[Patch]:
        shown = sum(tokens.sizes)
        count = self._texts.say("raw.tokens", count=f"{tokens.count:,}")
        if shown < tokens.count:
            count += " " + self._texts.say("raw.first", count=f"{shown:,}")
        html = "".join(_token(text, size) for text, size in zip(tokens.pieces, tokens.sizes, strict=True))
        found = [set_html(f"{self.key}-count", escape(count))]
        return [*found, set_html(f"{self.key}-prompt", html)] if html else found

    def _finale(self, ended: Ended) -> list[Patch]:
        reply, found = self._reply, [set_html(f"{self.key}-phase", "")]
        if reply.answer and len(reply.answer) <= COLOURED_LIMIT:
            found.append(set_html(f"{self.key}-output", f'<div class="segment">{marked(reply.answer)}</div>'))
        last = reply if reply.started_at is not None else None
        found.append(set_html(f"{self.key}-ending", self._ending(ended, last)))
        if last is not None:
            found.append(set_html(f"{self.key}-0-numbers", numbers_html(reply, self._texts) + closed_html(f"{self.key}-0", self._texts)))
        return [*found, set_state(self.key, ended.state)]

    def _ending(self, ended: Ended, last: Reply | None) -> str:
        told = "".join(notice_html("info", self._texts.say(f"remark.{each.name}", **each.params)) for each in self._remarks)
        notes = f'<div class="notes">{told}</div>' if told else ""
        return notes + ending(ended, last, self._failed, self._texts, max_tokens=None)

    def _phase(self, phase: Phase, elapsed: float) -> str:
        return spinner(escape(phase_words(phase, self._texts)), seconds_html(elapsed, self._texts, running=True))


def marked(text: str) -> str:
    """`text` as HTML with the marks of Kimi's dialect coloured."""
    parts, at = [], 0
    for found in MARK.finditer(text):
        parts += [escape(text[at : found.start()]), f'<span class="special">{escape(found[0])}</span>']
        at = found.end()
    return "".join(parts) + escape(text[at:])


def _token(text: str, size: int) -> str:
    """One token, or one character that several tokens share. A line break is shown, and made."""
    kind = "special" if MARK.fullmatch(text) else "token"
    shown = escape(text).replace("\n", "⏎\n").replace("\t", "⇥\t")
    return f'<span class="{kind}"{f" data-size={chr(34)}{size}{chr(34)}" if size > 1 else ""}>{shown}</span>'
