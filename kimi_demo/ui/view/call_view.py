"""One tool call: its arguments as they are written, the check against the schema, whom it waits for, what came of it."""

from html import escape

from kimi_demo.dialect.reply import Call
from kimi_demo.ui.texts import Texts
from kimi_demo.ui.view.act import act_button
from kimi_demo.ui.view.json_text import SHOWN_LIMIT, brief, clipped, one_line, pretty
from kimi_demo.ui.view.patch import Patch, add_text, set_html, set_state
from kimi_demo.ui.view.words import seconds_html

PARTS = ("head", "brief", "check", "person", "outcome", "edit")
"""Elements of a call that are set as a whole, in this order; the arguments stand before the check."""


def call_state(call: Call, *, ended: bool, finish_reason: str | None) -> str:
    """The name of a call's state: writing, invalid, waiting, asking, running, done, failed, refused, cut_off, stopped.

    waiting: for its turn; asking: for a person. invalid: the arguments did not pass the check.
    """
    if call.error is not None:
        if finish_reason == "length":
            return "cut_off"
        return "invalid" if call.problems else "refused" if call.decision == "refused" else "failed"
    if call.result is not None:
        return "done"
    if ended:
        return "cut_off" if finish_reason == "length" else "stopped"
    if finish_reason is None:
        return "writing"
    if call.problems:
        return "invalid"
    return "asking" if call.waiting is not None else "running" if call.started_at is not None else "waiting"


class CallView:
    """Turns what is known of a call into patches of the element `{round's key}-call-{index}`.

    editable: whether its arguments and result can be changed when the run has ended, to go on from there.
    """

    def __init__(self, round_key: str, index: int, texts: Texts, *, editable: bool) -> None:
        self.key = f"{round_key}-call-{index}"
        self._run, _, self._round = round_key.removeprefix("run-").rpartition("-")
        self._index = str(index)
        self._texts = texts
        self._editable = editable
        self._shown: dict[str, str] = {}
        self._sent = 0  # characters of the arguments that were appended
        self._whole = False

    def skeleton(self) -> str:
        key = self.key
        parts = {part: f'<div class="call-{part}" id="{key}-{part}"></div>' for part in PARTS}
        parts["person"] = f'<div class="call-person" id="{key}-person" aria-live="polite"></div>'
        return (
            f'<div class="call" id="{key}" data-state="writing">{parts["head"]}{parts["brief"]}'
            f'<div class="arguments" id="{key}-arguments"></div>{parts["check"]}{parts["person"]}{parts["outcome"]}{parts["edit"]}</div>'
        )

    def patches(self, call: Call, *, at: float, ended: bool, over: bool, finish_reason: str | None) -> list[Patch]:
        """What must change. at: seconds after the run's start; ended: the round is over; over: the run is."""
        state = call_state(call, ended=ended, finish_reason=finish_reason)
        found = self._arguments(call, whole=ended or finish_reason is not None)
        shown = {
            "head": self._head(call, state, at),
            "brief": self._brief(call),
            "check": self._check(call),
            "person": self._person(call) if state == "asking" else "",
            "outcome": self._outcome(call),
            "edit": self._edit(call) if over and self._editable else "",
        }
        found += [set_html(f"{self.key}-{part}", html) for part, html in shown.items() if self._shown.get(part, "") != html]
        if self._shown.get("state") != state:
            found.append(set_state(self.key, state))
        self._shown = {**shown, "state": state}
        return found

    def _arguments(self, call: Call, *, whole: bool) -> list[Patch]:
        """Appended while they are written; put into lines when they are whole."""
        target = f"{self.key}-arguments"
        if whole:
            if self._whole:
                return []
            self._whole = True
            raw = (
                f'<summary>{escape(self._texts.say("calls.raw"))}</summary><pre class="as-written">{escape(clipped(call.arguments))}</pre>'
            )
            raw = f'<details class="raw">{raw}</details>'
            shown = escape(clipped(pretty(call.arguments) or "{}"))
            return [set_html(target, f"<pre>{shown}</pre>{raw}")]
        fresh = call.arguments[self._sent : SHOWN_LIMIT]
        self._sent += len(fresh)
        return [add_text(target, fresh)] if fresh else []

    def _head(self, call: Call, state: str, at: float) -> str:
        say = self._texts.say
        head = [
            f'<code class="tool-name">{escape(call.name or "…")}</code>',
            f'<span class="badge">{escape(say(f"calls.state.{state}"))}</span>',
        ]
        if state == "writing" and len(call.arguments) > SHOWN_LIMIT:
            head.append(f'<span class="meta">{escape(say("calls.characters", count=f"{len(call.arguments):,}"))}</span>')
        if call.seconds is not None and call.started_at is not None:
            head.append(f'<span class="meta">{escape(say("calls.seconds", seconds=f"{call.seconds:.3f}"))}</span>')
        elif state in ("running", "asking"):
            since = call.started_at if state == "running" else call.waiting_since
            head.append(f'<span class="meta">{seconds_html(max(0.0, at - (since or at)), self._texts, running=True)}</span>')
        marks = [f"calls.edited_{what}" for what in sorted(call.edited)]
        marks += [f"calls.decision.{call.decision}"] if call.decision is not None else []
        head += [f'<span class="mark-by">{escape(say(key))}</span>' for key in marks]
        head.append(f'<code class="call-id">{escape(call.id)}</code>')
        return "".join(head)

    def _brief(self, call: Call) -> str:
        """The compact view's one line."""
        came = call.result if call.result is not None else call.error
        arrow = "" if came is None else f' <span class="arrow">→</span> <span class="came">{escape(one_line(came))}</span>'
        return f'<code class="in-brief">{escape(call.name or "…")}({escape(brief(call.arguments))})</code>{arrow}' if self._whole else ""

    def _check(self, call: Call) -> str:
        say = self._texts.say
        if call.problems is None:
            return ""
        if not call.problems:
            return f'<span class="passed">{escape(say("calls.passed"))}</span>'
        items = []
        for each in call.problems:
            where = f"<code>{escape(each.where)}</code> " if each.where else ""
            items.append(f'<li>{where}{escape(each.told)} <span class="rule">{escape(say("calls.rule", rule=each.rule))}</span></li>')
        return f"<b>{escape(say('calls.not_passed'))}</b><ul>{''.join(items)}</ul>"

    def _person(self, call: Call) -> str:
        """What a person is asked. assets/tools.js sends the form."""
        say, waiting = self._texts.say, call.waiting
        if waiting is None:
            return ""
        limit = f'<span class="meta">{escape(say("calls.waits", minutes=f"{waiting.limit_s / 60:.3g}"))}</span>'
        no = self._decide("refused", say(f"calls.refuse_{waiting.wants}"))
        if waiting.wants == "approval":
            yes = self._decide("approved", say("calls.approve")) + self._decide("all", say("calls.approve_all"))
            return f'<div class="ask"><span>{escape(say("calls.ask_approval"))}</span>{yes}{no}{limit}</div>'
        words = escape(say("calls.ask_result", name=call.name))
        return (
            f'<form class="ask" data-form="tools_answer" {self._values()}><label>{words}<textarea name="text" rows="3"></textarea></label>'
            f'<div class="form-notice"></div><div class="form-row"><button type="submit" class="act">{escape(say("calls.answer"))}</button>'
            f"{no}{limit}</div></form>"
        )

    def _outcome(self, call: Call) -> str:
        if call.result is None and call.error is None:
            return ""
        kind, text = ("result", call.result) if call.result is not None else ("error", call.error)
        title = escape(self._texts.say(f"calls.{kind}"))
        return f'<div class="outcome {kind}"><b>{title}</b><pre>{escape(clipped(text or ""))}</pre></div>'

    def _edit(self, call: Call) -> str:
        """Forms to change the arguments or the result; assets/tools.js puts into them what stands above."""
        if not call.name or len(call.arguments) > SHOWN_LIMIT:
            return ""
        found = [self._editor("arguments", f"#{self.key} .as-written")]
        if call.result is not None or call.error is not None:
            found.append(self._editor("result", f"#{self.key} .outcome pre"))
        return "".join(found)

    def _editor(self, what: str, source: str) -> str:
        say = self._texts.say
        return (
            f'<details class="edit" id="{self.key}-edit-{what}"><summary>{escape(say(f"calls.edit_{what}"))}</summary>'
            f'<form data-form="tools_edit" {self._values()} data-value-what="{what}" data-from="{escape(source)}">'
            f'<textarea name="text" rows="4" aria-label="{escape(say(f"calls.edit_{what}"))}"></textarea><div class="form-notice"></div>'
            f'<div class="form-row"><button type="submit" class="act">{escape(say("calls.edit_go_on"))}</button></div></form></details>'
        )

    def _decide(self, decision: str, words: str) -> str:
        return act_button("tools", "tools_decide", words, decision=decision, run=self._run, round=self._round, call=self._index)

    def _values(self) -> str:
        return f'data-value-run="{escape(self._run)}" data-value-round="{self._round}" data-value-call="{self._index}"'
