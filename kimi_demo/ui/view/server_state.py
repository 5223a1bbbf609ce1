"""The Server tab's first view: what answers, how its start goes or went, how well it is, and what can be done. Pure."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from kimi_demo.engines.accelerators import Holder
from kimi_demo.engines.chat_engine import EngineState
from kimi_demo.engines.monitor import Health
from kimi_demo.engines.saved_launches import Start
from kimi_demo.ui.texts import Texts
from kimi_demo.ui.view.act import act_button
from kimi_demo.ui.view.patch import clock
from kimi_demo.ui.view.words import phase_words, seconds_html


@dataclass(frozen=True)
class Standing:
    """What answers, as it stands. address: its base URL, "" while there is none; last_words: the end of its log.

    steps: phases of the start with their seconds; last: the start before; left: seconds that this one may still take.
    replies: runs that are being written; stops: who would lose the GPUs to a server of our own.
    """

    state: EngineState
    health: Health
    remote: bool
    model: str
    address: str
    pid: int | None = None
    last_words: Sequence[str] = ()
    steps: Sequence[tuple[str, float]] = ()
    last: Start | None = None
    left: float | None = None
    replies: int = 0
    stops: Holder | None = None


def head_html(now: Standing, texts: Texts) -> str:
    """Name, state and buttons."""
    say, state = texts.say, now.state
    facts = [say("server_page.remote") if now.remote else say("server_page.own")]
    facts += [now.address] if now.address else []
    facts += [say("server_page.pid", pid=now.pid)] if now.pid is not None and state.name in ("starting", "ready") else []
    words = say(f"server_page.state.{state.name}")
    since = time.monotonic() - state.since
    if state.name == "starting" and state.phase is not None:
        words = phase_words(state.phase, texts)
    dot = "failed" if _unwell(now) else state.name
    timed = seconds_html(since, texts, running=True) if state.name == "starting" else ""
    return (
        f'<div class="srv-name"><span class="dot" data-state="{dot}" aria-hidden="true"></span><b>{escape(now.model)}</b>'
        f'<span class="srv-state">{escape(words)}</span><span class="meta">{timed}</span></div>'
        f'<div class="fine srv-facts">{" · ".join(escape(fact) for fact in facts)}</div>'
        f'<div class="srv-acts">{_buttons(now, texts)}</div>'
    )


def trouble_html(now: Standing, texts: Texts) -> str:
    """What is wrong, what its log said last, and what helps; "" where all is well."""
    say, state = texts.say, now.state
    if state.name == "failed" and state.failure is not None:
        what, hint = texts.failure(state.failure.code, state.failure.params)
        words = state.failure.params.get("log", "").splitlines() or list(now.last_words)
        return _trouble("error", what, hint, words, texts)
    if not _unwell(now):
        return ""
    seconds = f"{time.monotonic() - now.health.since:.0f}"
    kind = "warning" if now.health.name == "stuck" else "error"
    hint = say(f"server_page.health.{now.health.name}_hint") if not now.remote else say("server_page.health.remote_hint")
    return _trouble(kind, say(f"server_page.health.{now.health.name}", seconds=seconds), hint, now.last_words, texts)


def _unwell(now: Standing) -> bool:
    return now.state.name == "ready" and now.health.name in ("silent", "sick", "stopped", "stuck")


def _trouble(kind: str, what: str, hint: str, words: Sequence[str], texts: Texts) -> str:
    log = ""
    if words:
        lines = escape("\n".join(words))
        title = escape(texts.say("server_page.last_words"))
        log = f'<details class="srv-words" id="srv-words" open><summary>{title}</summary><pre tabindex="0">{lines}</pre></details>'
    return f'<div class="notice" data-kind="{kind}" role="alert"><b>{escape(what)}</b> {escape(hint)}{log}</div>'


def _buttons(now: Standing, texts: Texts) -> str:
    say, name = texts.say, now.state.name
    takeover = "true" if now.stops is not None and not now.remote else "false"
    again = "server_page.reconnect" if now.remote else "server_page.restart"
    found = []
    if name in ("off", "failed"):
        words = "server_page.connect" if now.remote else "server_page.start" if name == "off" else "server_page.restart"
        found.append(_warned("server_restart", say(words), _stopped(now, texts, ends=False), texts, takeover=takeover))
    else:
        found.append(_warned("server_restart", say(again), _stopped(now, texts, ends=True), texts, takeover=takeover))
        words = "server_page.disconnect" if now.remote else "server_page.stop"
        found.append(_warned("server_stop", say(words), _stopped(now, texts, ends=True, takes=False), texts))
    return "".join(found)


def stopped(stops: Holder | None, replies: int, texts: Texts, *, ends: bool, takes: bool = True) -> list[str]:
    """What a start, restart or stop puts an end to, a sentence each: said before it is done."""
    found = []
    if ends and replies:
        found.append(texts.say("server_page.ends_replies", count=replies))
    if takes and stops is not None:
        found.append(texts.say("server_page.ends_holder", holder=texts.say(f"accelerators.holder.{stops}")))
    return found


def _stopped(now: Standing, texts: Texts, *, ends: bool, takes: bool = True) -> list[str]:
    return stopped(now.stops if not now.remote else None, now.replies, texts, ends=ends, takes=takes)


def _warned(act: str, words: str, ends: Sequence[str], texts: Texts, takeover: str | None = None) -> str:
    """A button; where it puts an end to something, behind a menu that says so."""

    def button(shown: str) -> str:
        return act_button("server", act, shown) if takeover is None else act_button("server", act, shown, takeover=takeover)

    if not ends:
        return button(words)
    told = "".join(f'<p class="fine">{escape(sentence)}</p>' for sentence in ends)
    sure = button(texts.say("server_page.sure", what=words))
    return (
        f'<details class="menu srv-menu" id="srv-menu-{act}"><summary class="act">{escape(words)}</summary>'
        f'<div class="menu-items">{told}{sure}</div></details>'
    )


def steps_html(now: Standing, texts: Texts) -> str:
    """The phases of the start, how long each took and took the last time, and how long it may still go on."""
    say = texts.say
    if now.remote or not now.steps:
        return ""
    going = now.state.name == "starting"
    before = dict(now.last.phases) if now.last is not None else {}
    longest = max([seconds for _, seconds in now.steps] + list(before.values()) + [0.1])
    rows = []
    for at, (name, seconds) in enumerate(now.steps):
        running = going and at == len(now.steps) - 1
        state = "running" if running else "done"
        if now.state.name == "failed" and at == len(now.steps) - 1:
            state = "failed"
        last = f"{before[name]:.1f}" if name in before else "–"
        share = min(100.0, 100 * seconds / longest)
        rows.append(
            f'<tr data-state="{state}"><th scope="row">{escape(say(f"phase.{name}"))}</th>'
            f'<td class="srv-bar"><span style="width:{share:.0f}%"></span></td>'
            f"<td>{clock(seconds, running=running)}</td><td>{last}</td></tr>"
        )
    phase, taken, before_words = (escape(say(f"server_page.steps.{name}")) for name in ("phase", "now", "last"))
    heads = f'<th scope="col">{phase}</th><td></td><th scope="col">{taken}</th><th scope="col">{before_words}</th>'
    total = sum(seconds for _, seconds in now.steps)
    whole = f'<p class="fine">{escape(say("server_page.steps.total", seconds=f"{total:.1f}"))}</p>' if not going else ""
    table = f'<table class="srv-steps"><thead><tr>{heads}</tr></thead><tbody>{"".join(rows)}</tbody></table>'
    return f"<h3>{escape(say('server_page.steps.title'))}</h3>{table}{whole}"


def left_html(now: Standing, texts: Texts) -> str:
    """How long the start may still take, by the last one; "" where there is none to go by."""
    if now.state.name != "starting" or now.remote:
        return ""
    if now.left is None or now.last is None:
        return f'<p class="fine">{escape(texts.say("server_page.first_start"))}</p>'
    done = sum(seconds for _, seconds in now.steps)
    share = 100 * done / max(done + now.left, 0.1)
    words = escape(texts.say("server_page.left", seconds=f"{now.left:.0f}", total=f"{now.last.total:.0f}"))
    return f'<progress max="100" value="{share:.0f}" aria-label="{words}"></progress><p class="fine">{words}</p>'
