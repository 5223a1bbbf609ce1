"""The limits of a public page as a viewer reads them, before they bite. Pure."""

from html import escape

from kimi_demo.settings import Settings
from kimi_demo.ui.texts import Texts
from kimi_demo.ui.view.act import button


def limits_html(settings: Settings, left: int, waiting: int, texts: Texts) -> str:
    """left: tokens that this viewer has today; waiting: runs in the line, everybody's."""
    say = texts.say
    shown = {
        "reply": say("limits.reply", tokens=f"{settings.public_max_tokens:,}", seconds=f"{settings.public_run_s:g}"),
        "message": say("limits.message", characters=f"{settings.public_prompt_chars:,}", images=settings.public_images),
        "tools": say("limits.tools", rounds=settings.public_rounds),
        "pace": say("limits.requests", count=settings.public_requests_per_minute),
        "line": say("limits.line", going=settings.public_runs_each, waiting=settings.public_line_each, all=settings.public_runs),
        "now": say("limits.now", count=waiting),
        "kept": say("limits.kept", days=f"{settings.public_keep_days:g}", conversations=settings.public_conversations),
    }
    if settings.public_batch:
        shown["batch"] = say("limits.batch", rows=settings.public_rows)
    items = "".join(f"<li>{escape(words)}</li>" for words in shown.values())
    summary = say("limits.summary", left=f"{left:,}", limit=f"{settings.public_tokens_per_day:,}")
    forget = button(say("limits.forget"), f'data-forget-me data-sure="{escape(say("limits.forget_sure"))}"')
    return (
        f'<details id="limits-all"><summary class="fine">{escape(summary)}</summary><ul class="fine">{items}</ul>'
        f'<p class="fine">{escape(say("limits.stops", seconds=f"{settings.public_grace_s:g}"))}</p>{forget}</details>'
    )
