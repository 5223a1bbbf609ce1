"""A question that was asked many times: how often the same tool and arguments came, and what each attempt answered."""

from collections.abc import Iterable
from html import escape

from kimi_demo.dialect.events import Asked, Attempt, Ended, Failed, Phase, Timed
from kimi_demo.tools.attempts import Tally, tallied
from kimi_demo.ui.texts import Texts
from kimi_demo.ui.view.json_text import brief, one_line
from kimi_demo.ui.view.notice import failure_html, notice_html
from kimi_demo.ui.view.patch import Patch, set_html, set_state, spinner
from kimi_demo.ui.view.words import phase_words, seconds_html


class RepeatView:
    """The live view of a repetition in the element `run-{run_id}`."""

    def __init__(self, run_id: str, texts: Texts) -> None:
        self.key = f"run-{run_id}"
        self._texts = texts
        self._times = 0
        self._attempts: list[Attempt] = []
        self._failed: Failed | None = None

    def skeleton(self) -> str:
        key = self.key
        return (
            f'<article class="run repeat" id="{key}" data-state="running"><h4 class="round-title" id="{key}-title"></h4>'
            f'<div class="phase" id="{key}-phase" role="status"></div><div id="{key}-tally"></div><div id="{key}-ending"></div></article>'
        )

    def take(self, entries: Iterable[Timed]) -> list[Patch]:
        found: list[Patch] = []
        changed = False
        for timed in entries:
            match timed.event:
                case Asked(parameters=parameters):
                    self._times = int(parameters.get("times") or 0)
                    words = self._texts.say("repeat.title", count=self._times)
                    found.append(set_html(f"{self.key}-title", escape(words)))
                case Phase() as phase:
                    clock = seconds_html(timed.at, self._texts, running=True)
                    found.append(set_html(f"{self.key}-phase", spinner(escape(phase_words(phase, self._texts)), clock)))
                case Attempt() as attempt:
                    self._attempts.append(attempt)
                    changed = True
                case Failed() as failed:
                    self._failed = failed
                case Ended() as ended:
                    found += [set_html(f"{self.key}-phase", ""), set_state(self.key, ended.state)]
                    found.append(set_html(f"{self.key}-ending", self._ending(ended)))
                case _:
                    pass
        if changed:
            found.append(set_html(f"{self.key}-tally", self._tally()))
        return found

    def _ending(self, ended: Ended) -> str:
        if self._failed is not None:
            return failure_html(self._failed, self._texts)
        if ended.state == "done":
            return ""
        return notice_html("info", self._texts.say(f"notice.{ended.state}"))

    def _tally(self) -> str:
        say = self._texts.say
        tallies = tallied(self._attempts)
        same = len(tallies[0].numbers)
        key = "repeat.always" if same == len(self._attempts) else "repeat.mostly"
        verdict = say(key, same=same, count=len(self._attempts), different=len(tallies))
        rows = "".join(self._row(tally) for tally in tallies)
        head = (
            f"<tr><th>{escape(say('repeat.times'))}</th><th>{escape(say('repeat.calls'))}</th><th>{escape(say('repeat.answers'))}</th></tr>"
        )
        table = f'<div class="table-scroll"><table><thead>{head}</thead><tbody>{rows}</tbody></table></div>'
        return f'<p class="verdict" data-same="{"all" if same == len(self._attempts) else "some"}">{escape(verdict)}</p>{table}'

    def _row(self, tally: Tally) -> str:
        say, total = self._texts.say, len(self._attempts)
        calls = "".join(f"<li><code>{escape(name)}({escape(brief(arguments))})</code></li>" for name, arguments, _ in tally.calls)
        called = f"<ol>{calls}</ol>" if calls else escape(say("repeat.no_call"))
        by_number = {attempt.number: attempt for attempt in self._attempts}
        answers = "".join(f"<li>{self._answer(by_number[number])}</li>" for number in tally.numbers)
        share = f"{len(tally.numbers)}/{total}"
        return f'<tr><td class="count">{share}</td><td>{called}</td><td><ul>{answers}</ul></td></tr>'

    def _answer(self, attempt: Attempt) -> str:
        meta = self._texts.say("repeat.attempt", number=attempt.number + 1, rounds=attempt.rounds, seconds=f"{attempt.seconds:.1f}")
        if attempt.error is not None:
            what, _ = self._texts.failure(attempt.error, attempt.error_params)
            told = f'<span class="row-error">{escape(what)}</span>'
        else:
            told = escape(one_line(attempt.answer))
        return f'{told} <span class="meta">{escape(meta)}</span>'
