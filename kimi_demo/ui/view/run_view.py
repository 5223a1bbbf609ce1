"""A chat turn or a tool conversation: the question, its rounds, how it ended."""

from collections.abc import Iterable
from html import escape

from kimi_demo.dialect.events import Asked, Ended, Failed, Phase, RoundStarted, Timed
from kimi_demo.dialect.reply import Reply
from kimi_demo.ui.attachments import shown_html
from kimi_demo.ui.texts import Texts
from kimi_demo.ui.view.notice import ending, notice_html
from kimi_demo.ui.view.patch import Patch, add_html, set_html, set_state, spinner
from kimi_demo.ui.view.round_view import RoundView
from kimi_demo.ui.view.turn_view import Turn, actions_html, versions_html
from kimi_demo.ui.view.words import phase_words, seconds_html


class RunView:
    """The live view of one run in the element `run-{run_id}`.

    titled: name the rounds (tool conversations); a chat turn has one and needs no name.
    turn: its place in a conversation, for what can be done with it; None where nothing can.
    """

    def __init__(self, run_id: str, texts: Texts, *, titled: bool = False, turn: Turn | None = None) -> None:
        self.key = f"run-{run_id}"
        self._texts = texts
        self._titled = titled
        self._turn = turn
        self._asked = Asked("")
        self._rounds: list[RoundView] = []
        self._pending: list[Patch] = []
        self._failed: Failed | None = None
        self._max_tokens: int | None = None
        self._waiting = True
        self._ended_at = 0.0

    def skeleton(self) -> str:
        """The empty element; patches fill it."""
        key = self.key
        return (
            f'<article class="run" id="{key}" data-state="running">{self._head()}'
            f'<div class="question" id="{key}-question"></div>'
            f'<div class="reply"><div class="phase" id="{key}-phase" role="status">{self._phase(Phase("waiting"), 0.0)}</div>'
            f'<div class="rounds" id="{key}-rounds"></div><div class="ending" id="{key}-ending"></div></div>{self._foot()}</article>'
        )

    def take(self, entries: Iterable[Timed]) -> list[Patch]:
        """Patches that bring the browser from the last call's state to the one after `entries`."""
        found: list[Patch] = []
        for timed in entries:
            self._event(timed)
        if self._waiting and self._rounds and self._rounds[-1].reply.first_token_at is not None:
            self._waiting = False
            self._pending.append(set_html(f"{self.key}-phase", ""))
        found += self._pending
        self._pending = []
        for view in self._rounds:
            found += view.patches()
        return found

    def _event(self, timed: Timed) -> None:
        match timed.event:
            case Asked(text=text, parameters=parameters) as asked:
                self._asked = asked
                limit = parameters.get("max_tokens")
                self._max_tokens = limit if isinstance(limit, int) else None
                bubble = f'<div class="bubble">{escape(text)}</div>'
                self._pending.append(set_html(f"{self.key}-question", shown_html(parameters, self._texts) + bubble))
            case Phase() as phase:
                if phase.name.startswith("tools."):  # a remark on the conversation, which stays
                    self._pending.append(add_html(f"{self.key}-rounds", notice_html("info", phase_words(phase, self._texts))))
                else:
                    self._pending.append(set_html(f"{self.key}-phase", self._phase(phase, timed.at)))
            case RoundStarted(index=index):
                self._end_round(timed.at)
                title = self._texts.say("tools.round", number=index + 1) if self._titled else ""
                view = RoundView(f"{self.key}-{index}", self._texts, title=title, tools=self._titled)
                view.take(timed)
                self._rounds.append(view)
                self._waiting = True
                self._pending.append(set_html(f"{self.key}-phase", self._phase(Phase("answering"), 0.0)))
                self._flush_earlier()
                self._pending.append(add_html(f"{self.key}-rounds", view.skeleton()))
            case Failed() as failed:
                self._failed = failed
            case Ended() as ended:
                self._end_round(timed.at)
                self._waiting = False
                last = self._rounds[-1].reply if self._rounds else None
                self._ended_at = timed.at
                self._pending.append(set_html(f"{self.key}-phase", ""))
                html = self._ending(ended, last)
                if self._asked.parameters.get("imported"):
                    html += f'<div class="imported fine">{escape(self._texts.say("turn.imported"))}</div>'
                self._pending.append(set_html(f"{self.key}-ending", html))
                self._pending.append(set_state(self.key, ended.state))
                self._pending += self._actions(last)
            case _:
                if self._rounds:
                    self._rounds[-1].take(timed)

    def _head(self) -> str:
        """What stands above the question."""
        return ""

    def _ending(self, ended: Ended, last: Reply | None) -> str:
        """What is said at the end, and what can be done about it."""
        run_id = self._turn.run_id if self._turn is not None else ""
        return ending(ended, last, self._failed, self._texts, max_tokens=self._max_tokens, run_id=run_id)

    def _foot(self) -> str:
        if self._turn is None:
            return ""
        versions = f'<span id="{self.key}-versions">{versions_html(self._turn, self._texts)}</span>'
        return f'<div class="turn-foot">{versions}<span class="actions" id="{self.key}-actions"></span></div>'

    def _actions(self, last: Reply | None) -> list[Patch]:
        """What can be done with the finished turn."""
        if self._turn is None:
            return []
        thought, answer = (bool(last.thought.strip()), bool(last.answer.strip())) if last is not None else (False, False)
        thinking = bool(self._asked.parameters.get("thinking", True))
        return [
            set_html(f"{self.key}-actions", actions_html(self._turn, self._texts, thinking=thinking, thought=thought, answer=answer)),
        ]

    def _flush_earlier(self) -> None:
        for view in self._rounds[:-1]:
            self._pending += view.patches()

    def _end_round(self, at: float) -> None:
        if self._rounds:
            self._rounds[-1].end(at)

    def _phase(self, phase: Phase, elapsed: float) -> str:
        return spinner(escape(phase_words(phase, self._texts)), seconds_html(elapsed, self._texts, running=True))
