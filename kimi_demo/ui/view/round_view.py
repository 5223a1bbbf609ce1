"""One round: thought, answer, tool calls with what they returned, figures."""

from html import escape

from kimi_demo.dialect.events import (
    AnswerDelta,
    CarriedOver,
    Finished,
    Remark,
    RoundStarted,
    ThoughtDelta,
    Timed,
    ToolCallDelta,
    ToolChecked,
    ToolDecided,
    ToolEdited,
    ToolResult,
    ToolStarted,
    ToolWaiting,
    Usage,
)
from kimi_demo.dialect.leaks import leaks
from kimi_demo.dialect.reply import THOUGHT_END, Reply
from kimi_demo.tools.leaked import without_calls
from kimi_demo.ui.texts import Texts
from kimi_demo.ui.view.act import act_button
from kimi_demo.ui.view.answer import AnswerView
from kimi_demo.ui.view.call_view import CallView
from kimi_demo.ui.view.late_thought import late_html, late_thought
from kimi_demo.ui.view.notice import notice_html
from kimi_demo.ui.view.numbers import numbers_html, thought_tokens
from kimi_demo.ui.view.patch import Patch, add_html, add_text, set_html, set_lazy, set_open, set_state
from kimi_demo.ui.view.request import closed_html
from kimi_demo.ui.view.sent_back import sent_back_html
from kimi_demo.ui.view.words import seconds_html


class RoundView:
    """Turns one round's events into patches. Element ids begin with `key`, which is "run-{run id}-{round}".

    A thought is sent while it is written, by appending. Once finished it is fetched when somebody opens it (ui/thoughts.py), so a
    conversation that is loaded again does not bring thoughts that nobody looks at.
    tools: a round of a tool conversation, with what went back to the model, and whose calls can be changed when all is over.
    `take` only notes what came; `patches` says what must change, however many events came since it was last asked.
    """

    def __init__(self, key: str, texts: Texts, *, title: str = "", tools: bool = False) -> None:
        self.key = key
        self.reply = Reply()
        self.ended = False
        self._texts = texts
        self._title = title
        self._tools = tools
        self._calls: list[CallView] = []
        self._over = False
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
        title = f'<h4 class="round-title">{escape(self._title)}<span id="{key}-again"></span></h4>' if self._title else ""
        return (
            f'<section class="round" id="{key}" data-state="running">{title}<div class="sent-back" id="{key}-sent"></div>'
            f'<details class="thought" id="{key}-thought" data-state="empty" open><summary id="{key}-thought-title"></summary>'
            f'<div class="thought-text" id="{key}-thought-text" tabindex="0" data-failed="{failed}"></div></details>'
            f'<div class="answer">{self._answer.skeleton()}</div><div class="notes" id="{key}-notes"></div>'
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
            case ToolCallDelta() | ToolChecked() | ToolWaiting() | ToolDecided() | ToolStarted() | ToolEdited() | ToolResult():
                self._changed.add("calls")
            case RoundStarted():
                self._changed.add("sent")
            case Usage():
                self._changed.add("thought")
            case Finished():
                self._changed |= {"calls", "numbers"}
            case _:
                pass

    def end(self, at: float) -> None:
        """The round is over, whether it finished, failed or was stopped: clocks stop, Markdown takes over."""
        if not self.ended:
            self.ended = True
            self._last_at = max(self._last_at, at)
            self._changed |= {"thought", "answer", "calls", "numbers", "end"}

    def over(self) -> None:
        """The run has ended as well: what can be done with the round is shown."""
        self._over = True
        self._changed |= {"calls", "over"}

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
        if "sent" in changed and self._tools:
            found.append(set_html(f"{self.key}-sent", sent_back_html(self.key, self.reply, self._texts)))
        if "calls" in changed:
            found += self._call_patches()
        if "end" in changed:
            found += self._finale()
        if "numbers" in changed:
            found.append(set_html(f"{self.key}-numbers", numbers_html(self.reply, self._texts) + closed_html(self.key, self._texts)))
        if "over" in changed and self._title:
            run_id, _, number = self.key.removeprefix("run-").rpartition("-")
            button = act_button("tools", "tools_again", self._texts.say("tools.from_here"), plain=True, run=run_id, round=number)
            found.append(set_html(f"{self.key}-again", button))
        return found

    def _call_patches(self) -> list[Patch]:
        found: list[Patch] = []
        for index, call in enumerate(self.reply.calls):
            if index == len(self._calls):
                self._calls.append(CallView(self.key, index, self._texts, editable=self._tools))
                found.append(add_html(f"{self.key}-calls", self._calls[index].skeleton()))
            reason = self.reply.finish_reason
            found += self._calls[index].patches(call, at=self._last_at, ended=self.ended, over=self._over, finish_reason=reason)
        return found

    def _finale(self) -> list[Patch]:
        found = [set_state(self.key, "ended")]
        if self.reply.thought:
            found.append(set_lazy(f"{self.key}-thought-text", "kimi/thought/" + "/".join(self.key.split("-")[1:])))
        if self.reply.answer:
            late, answer = late_thought(self.reply)
            answer = without_calls(answer) if self.reply.calls else answer
            before = late_html(late, self._texts) if late else ""
            found += self._answer.final(answer, whole=self.reply.finish_reason not in ("length", None), before=before)
        notes = [self._texts.say(f"remark.{remark.name}", **remark.params) for remark in self._remarks]
        if not any(remark.name == "no_reasoning_parser" for remark in self._remarks) or THOUGHT_END not in self.reply.answer:
            # Of calls in the text a tool conversation speaks itself.
            found_leaks = [name for name in leaks(self.reply) if not (self._tools and name.startswith("tool_marks"))]
            notes += [self._texts.say(f"leak.{name}") for name in found_leaks]
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
