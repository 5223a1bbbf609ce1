"""A tool conversation on the page: its versions, its rounds, what it took in all, and what can be done with it when it has ended."""

from html import escape

from kimi_demo.dialect.events import Ended
from kimi_demo.dialect.reply import Reply
from kimi_demo.tools.replay import may_go_on
from kimi_demo.ui.questions import Placed, role_of
from kimi_demo.ui.texts import Texts
from kimi_demo.ui.view.act import act_button, button, icon
from kimi_demo.ui.view.again import more_tokens
from kimi_demo.ui.view.notice import ending, failure_html, notice_html
from kimi_demo.ui.view.patch import Patch, set_html
from kimi_demo.ui.view.publish_view import publish_button
from kimi_demo.ui.view.rate_view import rate_buttons
from kimi_demo.ui.view.repeat_view import RepeatView
from kimi_demo.ui.view.run_view import RunView
from kimi_demo.ui.view.totals import totals_words

USUAL_REPEATS = 5


def tools_view(placed: Placed, texts: Texts) -> RunView | RepeatView:
    match role_of(placed.run):
        case "repeat":
            return RepeatView(placed.run.id, texts)
        case "plain":
            return PlainRunView(placed.run.id, texts)
        case _:
            return ToolRunView(placed, texts)


def holder_html(placed: Placed, skeleton: str) -> str:
    """The element of a run that assets/live.js keeps; beside: the style sheet puts it beside the one before."""
    beside = " data-beside" if placed.beside else ""
    return f'<div id="holder-{placed.run.id}" data-run="{placed.run.id}" data-question="{placed.question}"{beside}>{skeleton}</div>'


class ToolRunView(RunView):
    """A version of a question."""

    def __init__(self, placed: Placed, texts: Texts) -> None:
        super().__init__(placed.run.id, texts, titled=True)
        self._run_id = placed.run.id
        self._versions = placed.versions

    def _foot(self) -> str:
        return (
            f'<div class="tool-foot"><div class="totals" id="{self.key}-totals"></div>'
            f'<div class="turn-foot"><span>{self._arrows()}</span><span class="actions" id="{self.key}-actions"></span></div></div>'
        )

    def _arrows(self) -> str:
        """To the question's other versions; "" for the only one."""
        total, number = len(self._versions), list(self._versions).index(self._run_id)
        if total < 2:
            return ""

        def arrow(name: str, target: int) -> str:
            words = self._texts.say(f"turn.{name}")
            if 0 <= target < total:
                return act_button("tools", "tools_version", words, picture=name, run=self._versions[target])
            return button(words, "disabled", picture=name)

        label = escape(self._texts.say("turn.versions"))
        return (
            f'<span class="versions" role="group" aria-label="{label}">{arrow("previous", number - 1)}'
            f'<span class="version">{number + 1}/{total}</span>{arrow("next", number + 1)}</span>'
        )

    def _ending(self, ended: Ended, last: Reply | None) -> str:
        offers = self._offers(ended, last)
        if self._failed is not None:
            return failure_html(self._failed, self._texts, offers)
        said = ending(ended, last, None, self._texts, max_tokens=self._max_tokens)
        if not said and not any(view.reply.calls for view in self._rounds):
            said = notice_html("info", self._texts.say("tools.no_tool_used"))
        return f"{said}{offers}" if said else ""

    def _offers(self, ended: Ended, last: Reply | None) -> str:
        """What helps after this end, as buttons."""
        say, run = self._texts.say, self._run_id
        code = self._failed.code if self._failed is not None else ""
        found = []
        if last is None:
            if ended.state != "done":
                found.append(act_button("tools", "tools_again", say("tools.again"), run=run))
            return _offers(found)
        number = len(self._rounds) - 1
        if code == "tools.max_rounds":
            found.append(act_button("tools", "tools_go_on", say("tools.go_on"), run=run))
        elif ended.state != "done" and code != "tools.loop" and may_go_on(last):
            found.append(act_button("tools", "tools_go_on", say("tools.go_on_calls"), run=run))
        more = more_tokens(last) if last.finish_reason == "length" else None
        if more is not None:
            words = say("tools.more_tokens", count=f"{more:,}")
            found.append(act_button("tools", "tools_again", words, run=run, round=str(number), max_tokens=str(more)))
        elif ended.state != "done" or not last.answer.strip():
            found.append(act_button("tools", "tools_again", say("tools.retry", number=number + 1), run=run, round=str(number)))
        return _offers(found)

    def _actions(self, last: Reply | None) -> list[Patch]:
        say, run = self._texts.say, self._run_id
        found = []
        if last is not None and last.answer.strip():
            copy = f'data-copy-run="{run}" data-what="answer"'
            found.append(button(say("turn.copy_answer"), copy, picture="copy", plain=True))
        found.append(act_button("tools", "tools_again", say("tools.again"), picture="again", run=run))
        found.append(rate_buttons(run, self._texts))
        found.append(act_button("tools", "tools_plain", say("tools.plain"), plain=True, run=run))
        found.append(self._repeat_menu())
        found.append(publish_button("tools", run, self._texts))
        words = totals_words([view.reply for view in self._rounds], self._ended_at, self._texts)
        for view in self._rounds:
            view.over()
        return [
            set_html(f"{self.key}-actions", "".join(found)),
            set_html(f"{self.key}-totals", "".join(f"<span>{escape(each)}</span>" for each in words)),
        ]

    def _repeat_menu(self) -> str:
        say = self._texts.say
        return (
            f'<details class="menu" id="{self.key}-repeat"><summary class="act plain">{escape(say("tools.repeat"))}</summary>'
            f'<form class="menu-items" data-form="tools_repeat" data-value-run="{self._run_id}"><label>{escape(say("tools.repeat_times"))} '
            f'<input name="times" type="number" min="2" max="20" value="{USUAL_REPEATS}" required></label><div class="form-notice"></div>'
            f'<button type="submit" class="act">{icon("again")} {escape(say("tools.repeat_start"))}</button></form></details>'
        )


class PlainRunView(RunView):
    """The same question without tools, for comparison."""

    def _head(self) -> str:
        return f'<h4 class="round-title">{escape(self._texts.say("tools.plain_title"))}</h4>'


def _offers(buttons: list[str]) -> str:
    return f'<div class="offers">{"".join(buttons)}</div>' if buttons else ""
