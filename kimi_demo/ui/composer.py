"""The parts that the tabs share: the live box, the row with Send and Stop, and how their handlers are wired."""

import logging
from collections.abc import Awaitable, Callable
from typing import Any

import gradio as gr

from kimi_demo.dialect.failure import Failure
from kimi_demo.ui.live import Kind
from kimi_demo.ui.services import Services

log = logging.getLogger(__name__)


def live_box(elem_id: str, label: str) -> None:
    """An element that assets/live.js fills. `role=log` without live announcements: a screen reader is not read every token."""
    gr.HTML(
        f'<div class="live" role="log" aria-live="off" aria-label="{label}" tabindex="0"></div>', elem_id=elem_id, apply_default_css=False
    )


def wire(
    services: Services,
    kind: Kind,
    *,
    field: gr.Textbox,
    send: gr.Button,
    stop: gr.Button,
    clear: gr.Button | None,
    notice: gr.HTML,
    settings: list[gr.components.Component],
    start: Callable[..., Awaitable[None]],
    keep_text: bool = False,
) -> None:
    """Send (and Enter) calls start(request, group, text, *settings); what it raises is shown in `notice` and the text stays.

    None of these handlers waits for a model: they return at once, and the page follows the run by itself.
    """

    async def on_send(request: gr.Request, text: str, *values: Any) -> tuple[Any, str]:
        owner = services.access.owner_of(request)
        try:
            await services.require_idle(owner, kind)
            await start(request, await services.desk.group(owner, kind), text, *values)
        except Failure as failure:
            return gr.skip(), services.notice(failure)
        except Exception as error:
            log.exception("%s could not be started", kind)
            return gr.skip(), services.notice(Failure("unexpected", error=error))
        return (gr.skip() if keep_text else ""), ""

    async def on_stop(request: gr.Request) -> None:
        await services.stop(services.access.owner_of(request), kind)

    async def on_clear(request: gr.Request) -> str:
        owner = services.access.owner_of(request)
        await services.stop(owner, kind)
        services.desk.begin(owner, kind)
        return ""

    follow = f"() => window.kimi.follow('{kind}')"
    quick: dict[str, Any] = {"queue": False, "show_progress": "hidden", "api_visibility": "private"}
    triggers = [send.click] if keep_text else [send.click, field.submit]
    gr.on(triggers, on_send, [field, *settings], [field, notice], **quick).then(fn=None, js=follow)
    stop.click(on_stop, None, None, **quick)
    if clear is not None:
        clear.click(on_clear, None, notice, **quick).then(fn=None, js=follow)
