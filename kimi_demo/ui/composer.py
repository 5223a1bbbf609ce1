"""The parts that the tabs share: the live box, the row with Send and Stop, and how their handlers are wired."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import gradio as gr

from kimi_demo.dialect.failure import Failure
from kimi_demo.ui.live import Kind
from kimi_demo.ui.services import Services

log = logging.getLogger(__name__)

QUICK: dict[str, Any] = {"queue": False, "show_progress": "hidden", "api_visibility": "private"}


def live_box(elem_id: str, label: str, attributes: str = "") -> None:
    """An element that assets/live.js fills. `role=log` without live announcements: a screen reader is not read every token."""
    html = f'<div class="live" role="log" aria-live="off" aria-label="{label}" tabindex="0" {attributes}></div>'
    gr.HTML(html, elem_id=elem_id, apply_default_css=False)


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
    js: str | None = None,
) -> None:
    """Send (and Enter) calls start(request, group, text, *settings); what it raises is shown in `notice` and the text stays.
    js: makes, in the browser, the values that the handler gets.

    None of these handlers waits for a model: they return at once, and the page follows the run by itself.
    """

    starting = asyncio.Lock()

    async def on_send(request: gr.Request, text: str, *values: Any) -> tuple[str, str]:
        async def begin() -> None:
            owner = services.access.owner_of(request)
            async with starting:  # two clicks at once must not both find it idle
                await services.require_idle(owner, kind)
                await start(request, await services.desk.group(owner, kind), text, *values)

        notice = await _told(services, kind, begin())
        return notice, "" if notice or keep_text else text

    async def on_stop(request: gr.Request) -> None:
        await services.stop(services.access.owner_of(request), kind)

    async def on_clear(request: gr.Request) -> str:
        owner = services.access.owner_of(request)
        await services.stop(owner, kind)
        services.desk.begin(owner, kind)
        return ""

    # The browser empties the field, and only if nothing else has been typed meanwhile: a late answer must not wipe that.
    taken = gr.Textbox(visible=False)
    began = f"(text) => {{ window.kimi.taken('{kind}', text); window.kimi.follow('{kind}'); }}"
    triggers = [send.click] if keep_text else [send.click, field.submit]
    gr.on(triggers, on_send, [field, *settings], [notice, taken], js=js, **QUICK).then(fn=None, inputs=taken, js=began)
    stop.click(on_stop, None, None, **QUICK)
    if clear is not None:
        clear.click(on_clear, None, notice, **QUICK).then(fn=None, js=f"() => window.kimi.follow('{kind}')")


def wire_chat(*, field: gr.Textbox, send: gr.Button, stop: gr.Button, settings: list[gr.components.Component]) -> None:
    """As `wire`, for conversations; assets/chat.js sends the message itself (kimi_demo/ui/chat_send.py takes it).

    Sending while a reply is being written is allowed: the message waits in line. The browser empties the field at once, so that
    what is typed next is not lost to a late answer; a message that could not be sent comes back before it.
    """
    gr.on(
        [send.click, field.submit],
        fn=None,
        inputs=[field, *settings],
        js="(text, ...values) => window.kimi.send(text, values)",
        trigger_mode="multiple",
    )
    stop.click(fn=None, js="() => window.kimi.stop()")


async def _told(services: Services, kind: Kind, begin: Awaitable[None]) -> str:
    """The notice after what was asked for has begun ("") or failed to."""
    try:
        await begin
    except Failure as failure:
        return services.notice(failure)
    except Exception as error:
        log.exception("%s could not be started", kind)
        return services.notice(Failure("unexpected", error=error))
    return ""
