"""One round: thought, answer, tool calls with what they returned, figures."""

import json
from html import escape

from kimi_demo.dialect.events import AnswerDelta, CarriedOver, Finished, Remark, ThoughtDelta, Timed, ToolCallDelta, ToolResult, Usage
from kimi_demo.dialect.leaks import leaks
from kimi_demo.dialect.reply import THOUGHT_END, Call, Reply
from kimi_demo.ui.texts import Texts
from kimi_demo.ui.view.answer import AnswerView
from kimi_demo.ui.view.notice import notice_html
from kimi_demo.ui.view.numbers import numbers_html, thought_tokens
from kimi_demo.ui.view.patch import Patch, add_text, set_html, set_lazy, set_open, set_state
from kimi_demo.ui.view.request import closed_html
from kimi_demo.ui.view.words import seconds_html

SHOWN_LIMIT = 20_000
"""Characters of arguments or of a result that are shown; the model gets all of it."""


class RoundView:
    """Turns one round's events into patches. Element ids begin with `key`, which is "run-{run id}-{round}".

    A thought is sent while it is written, by appending. Once finished it is fetched when somebody opens it (ui/thoughts.py), so a
    conversation that is loaded again does not bring thoughts that nobody looks at.
    `take` only notes what came; `patches` says what must change, however many events came since it was last asked.
    """

    def __init__(self, key: str, texts: Texts, *, title: str = "") -> None:
        self.key = key
        self.reply = Reply()
        self.ended = False
        self._texts = texts
        self._title = title
        self._answer = AnswerView(f"{key}-answer")
        self._new_thought: list[str] = []
        self._new_answer: list[str] = []
        self._thought_deltas = 0
        self._changed: set[str] = set()
        self._answer_begun = False
        self._thought_sent = False
        self._remarks: list[Remark] = []
        self._last_at = 0.0

    def skeleton(self) -> str:
        key = self.key
        failed = escape(self._texts.say("thought.not_loaded"))
        title = f'<h4 class="round-title">{escape(self._title)}</h4>' if self._title else ""
        return (
            f'<section class="round" id="{key}" data-state="running">{title}'
            f'<details class="thought" id="{key}-thought" data-state="empty" open><summary id="{key}-thought-title"></summary>'
            f'<div class="thought-text" id="{key}-thought-text" dir="auto" tabindex="0" data-failed="{failed}"></div></details>'
            f'<div class="answer" dir="auto">{self._answer.skeleton()}</div><div class="notes" id="{key}-notes"></div>'
            f'<div class="calls" id="{key}-calls"></div>'
            f'<div class="numbers" id="{key}-numbers"></div></section>'
        )

    def take(self, timed: Timed) -> None:
        self.reply.add(timed)
        self._last_at = timed.at
        match timed.event:
            case ThoughtDelta(text=text):
                self._new_thought.append(text)
                self._thought_deltas += 1
                self._changed.add("thought")
            case AnswerDelta(text=text):
                self._new_answer.append(text)
                self._changed.add("answer")
            case CarriedOver(thought=thought, answer=answer):
                self._new_thought.append(thought)
                self._new_answer.append(answer)
                self._changed |= {"thought", "answer"}
            case Remark() as remark:
                self._remarks.append(remark)
            case ToolCallDelta() | ToolResult():
                self._changed.add("calls")
            case Usage():
                self._changed.add("thought")
            case Finished():
                self._changed.add("numbers")
            case _:
                pass

    def end(self, at: float) -> None:
        """The round is over, whether it finished, failed or was stopped: clocks stop, Markdown takes over."""
        if not self.ended:
            self.ended = True
            self._last_at = max(self._last_at, at)
            self._changed |= {"thought", "answer", "calls", "numbers", "end"}

    def patches(self) -> list[Patch]:
        changed, self._changed = self._changed, set()
        found: list[Patch] = []
        if self._new_thought and (self._thought_sent or not self.ended):
            self._thought_sent = True
            found.append(add_text(f"{self.key}-thought-text", "".join(self._new_thought)))
        self._new_thought.clear()
        if (self._new_answer or self.reply.calls) and not self._answer_begun and (self.reply.answer.strip() or self.reply.calls):
            self._answer_begun = True
            found.append(set_open(f"{self.key}-thought", False))
            changed.add("thought")
        if "thought" in changed and self.reply.thought:
            found += self._thought_title()
        if self._new_answer and not self.ended:
            found += self._answer.grow("".join(self._new_answer), self._last_at)
        self._new_answer.clear()
        if "calls" in changed and self.reply.calls:
            found.append(set_html(f"{self.key}-calls", "".join(self._call(call) for call in self.reply.calls)))
        if "end" in changed:
            found += self._finale()
        if "numbers" in changed:
            found.append(set_html(f"{self.key}-numbers", numbers_html(self.reply, self._texts) + closed_html(self.key, self._texts)))
        return found

    def _finale(self) -> list[Patch]:
        found = [set_state(self.key, "ended")]
        if self.reply.thought:
            found.append(set_lazy(f"{self.key}-thought-text", "kimi/thought/" + "/".join(self.key.split("-")[1:])))
        if self.reply.answer:
            found += self._answer.final(self.reply.answer, whole=self.reply.finish_reason not in ("length", None))
        notes = [self._texts.say(f"remark.{remark.name}", **remark.params) for remark in self._remarks]
        if not any(remark.name == "no_reasoning_parser" for remark in self._remarks) or THOUGHT_END not in self.reply.answer:
            notes += [self._texts.say(f"leak.{name}") for name in leaks(self.reply)]
        if notes:
            found.append(set_html(f"{self.key}-notes", "".join(notice_html("info", note) for note in notes)))
        return found

    def _thought_title(self) -> list[Patch]:
        running = not self._answer_begun and not self.ended
        tokens, exact = thought_tokens(self.reply, self._thought_deltas)
        count = self._texts.say("thought.tokens" if exact else "thought.about_tokens", count=tokens)
        unfinished = self.ended and not self._answer_begun
        label = self._texts.say("thought.running" if running else "thought.unfinished" if unfinished else "thought.done")
        before = self.reply.carried.thinking_seconds or 0.0 if self.reply.carried is not None else 0.0
        elapsed = before + self._last_at - (self.reply.started_at or 0.0) if running else (self.reply.thinking_seconds or 0.0)
        seconds = seconds_html(elapsed, self._texts, running=running)
        html = f'<span class="label">{escape(label)}</span><span class="meta">{seconds}</span><span class="meta">{escape(count)}</span>'
        return [set_html(f"{self.key}-thought-title", html), set_state(f"{self.key}-thought", "running" if running else "done")]

    def _call(self, call: Call) -> str:
        say = self._texts.say
        state = call_state(call, ended=self.ended, finish_reason=self.reply.finish_reason)
        head = [
            f'<code class="tool-name">{escape(call.name or "…")}</code>',
            f'<span class="badge">{escape(say(f"calls.state.{state}"))}</span>',
        ]
        if call.seconds is not None:
            head.append(f'<span class="meta">{escape(say("calls.seconds", seconds=f"{call.seconds:.3f}"))}</span>')
        head.append(f'<code class="call-id">{escape(call.id)}</code>')
        outcome = ""
        if call.result is not None or call.error is not None:
            kind, text = ("result", call.result) if call.result is not None else ("error", call.error)
            outcome = f'<div class="outcome {kind}"><b>{escape(say(f"calls.{kind}"))}</b><pre>{escape(clipped(text or ""))}</pre></div>'
        return (
            f'<div class="call" data-state="{state}"><div class="call-head">{"".join(head)}</div>'
            f'<pre class="arguments">{escape(clipped(pretty(call.arguments)))}</pre>{outcome}</div>'
        )


def call_state(call: Call, *, ended: bool, finish_reason: str | None) -> str:
    """The name of a call's state: writing, running, done, failed, cut_off, stopped."""
    if call.error is not None:
        return "cut_off" if finish_reason == "length" else "failed"
    if call.result is not None:
        return "done"
    if ended:
        return "cut_off" if finish_reason == "length" else "stopped"
    return "writing" if finish_reason is None else "running"


def pretty(arguments: str) -> str:
    """JSON arguments with line breaks, numbers exactly as written; anything else as it came."""
    try:
        value = json.loads(arguments, parse_float=_AsWritten, parse_int=_AsWritten, parse_constant=_AsWritten)
        return _dump(value, 0)
    except (ValueError, RecursionError):
        return arguments


class _AsWritten(str):
    """A JSON number in its own spelling."""


def _dump(value: object, depth: int) -> str:
    inner, outer = "  " * (depth + 1), "  " * depth
    if isinstance(value, _AsWritten):
        return str(value)
    if isinstance(value, dict) and value:
        items = ",\n".join(f"{inner}{json.dumps(name, ensure_ascii=False)}: {_dump(item, depth + 1)}" for name, item in value.items())
        return f"{{\n{items}\n{outer}}}"
    if isinstance(value, list) and value:
        items = ",\n".join(inner + _dump(item, depth + 1) for item in value)
        return f"[\n{items}\n{outer}]"
    return json.dumps(value, ensure_ascii=False)


def clipped(text: str) -> str:
    """`text` up to the limit of what is shown, with how much is left out."""
    return text if len(text) <= SHOWN_LIMIT else f"{text[:SHOWN_LIMIT]}\n… (+{len(text) - SHOWN_LIMIT:,})"
