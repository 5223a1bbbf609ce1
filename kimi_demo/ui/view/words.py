"""Small pieces of wording that several views share."""

from kimi_demo.dialect.events import Phase
from kimi_demo.ui.texts import Texts
from kimi_demo.ui.view.patch import clock


def phase_words(phase: Phase, texts: Texts) -> str:
    """What is being done, with its count where it has one: "Loading weights 3/64"."""
    words = texts.say(f"phase.{phase.name}", **phase.params)
    return words if phase.done is None or phase.total is None else f"{words} {phase.done}/{phase.total}"


def seconds_html(elapsed: float, texts: Texts, *, running: bool) -> str:
    """ "3.2 s" as HTML; while `running` the browser counts on."""
    return texts.say("thought.seconds", seconds="\0").replace("\0", clock(elapsed, running=running))
