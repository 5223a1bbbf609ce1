"""The self-test in the Server tab, check by check as it goes. Pure."""

from collections.abc import Sequence
from html import escape

from kimi_demo.checks.result import CheckResult
from kimi_demo.checks.server import CHECKS
from kimi_demo.dialect.failure import Failure
from kimi_demo.ui.texts import Texts
from kimi_demo.ui.view.act import act_button
from kimi_demo.ui.view.patch import clock


def check_html(results: Sequence[CheckResult], running_s: float | None, may: bool, texts: Texts) -> str:
    """The self-test. running_s: seconds that it has been going on, None while it is not; may: there is a server to test."""
    say = texts.say
    if running_s is not None:
        button = act_button("server", "server_check_stop", say("page.stop"))
    elif may:
        button = act_button("server", "server_check", say("server_page.check.again" if results else "server_page.check.run"))
    else:
        button = ""
    if not button and not results:
        return ""
    signs = {"passed": "✓", "failed": "✗", "skipped": "–"}
    rows = ""
    for result in results:
        told = ", ".join(say(f"check.fact.{name}", value=value) for name, value in result.facts.items())
        if result.code:
            told = texts.sentence(Failure(result.code, **result.params))
        elif result.state == "skipped":
            told = say("check.skipped")
        rows += (
            f'<li data-check="{result.name}" data-state="{result.state}"><span aria-hidden="true">{signs[result.state]}</span> '
            f'<b>{escape(say(f"check.{result.name}"))}</b> <span class="meta">{result.seconds:.2f} s</span> '
            f'<span class="fine">{escape(told)}</span></li>'
        )
    if running_s is not None and len(results) < len(CHECKS):
        name = CHECKS[len(results)]
        ticking = clock(max(0.0, running_s - sum(result.seconds for result in results)), running=True)
        rows += (
            f'<li data-check="{name}" data-state="running"><span class="spinner" aria-hidden="true"></span> '
            f'<b>{escape(say(f"check.{name}"))}</b> <span class="meta">{ticking} s</span></li>'
        )
    verdict = ""
    if running_s is None and results:
        failed = sum(result.state == "failed" for result in results)
        if len(results) < len(CHECKS):
            verdict = f'<p class="fine">{escape(say("server_page.check.stopped"))}</p>'
        else:
            words = say("check.some_failed", count=failed) if failed else say("server_page.check.passed")
            verdict = f'<p class="srv-verdict" data-state="{"failed" if failed else "passed"}">{escape(words)}</p>'
    head = f"<h3>{escape(say('server_page.check.title'))}</h3>"
    note = f'<p>{button} <span class="fine">{escape(say("server_page.check.note"))}</span></p>'
    return f'{head}{note}<ul class="srv-checks">{rows}</ul>{verdict}'
