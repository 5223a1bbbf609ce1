"""Puts the application together: engines, runs, the page and its routes; and takes it apart again."""

import asyncio
import logging
from dataclasses import dataclass
from pathlib import Path

import gradio as gr
from fastapi import FastAPI
from starlette.types import ASGIApp

from kimi_demo.engines.accelerators import Lease
from kimi_demo.engines.chat_engine import ChatEngine
from kimi_demo.engines.guardian import Guardian
from kimi_demo.engines.model_folder import ModelFolder
from kimi_demo.engines.offline import Emit, OfflineEngine
from kimi_demo.engines.offline_launch import OfflineLaunch
from kimi_demo.runs.registry import Registry
from kimi_demo.runs.store import Store
from kimi_demo.settings import Settings
from kimi_demo.ui import page
from kimi_demo.ui.access import Access
from kimi_demo.ui.desk import Desk
from kimi_demo.ui.routes import add_routes
from kimi_demo.ui.services import Services
from kimi_demo.ui.texts import Texts, texts

log = logging.getLogger(__name__)

WORKERS = 128
"""Queue workers of Gradio, which also cap its async handlers; waiting API calls hold one each."""


@dataclass(frozen=True)
class Application:
    asgi: ASGIApp
    services: Services

    async def aclose(self) -> None:
        """Stops all runs, then the engines, then the store; each even if the one before fails."""
        services = self.services
        for step in (services.registry.aclose, services.chat_engine.stop, services.offline.close):
            try:
                await step()
            except Exception:
                log.exception("while closing")
        await asyncio.to_thread(services.registry.store.close)


async def build(settings: Settings, access: Access) -> Application:
    """The whole application; the chat engine begins to start. Raises Failure of the store (an unreadable or newer database)."""
    words = texts(settings.language)
    store = await asyncio.to_thread(Store, settings.data / "runs.sqlite3")
    registry = Registry(store, settings.max_runs_at_once)
    folder, lease, guardian = ModelFolder(settings), Lease(shared=settings.rehearsal or settings.base_url is not None), Guardian()

    async def offline_launch(on_event: Emit) -> OfflineLaunch:
        return OfflineLaunch.from_settings(settings, await folder.path(on_event))

    services = Services(
        settings=settings,
        texts=words,
        access=access,
        registry=registry,
        desk=Desk(registry),
        chat_engine=ChatEngine(settings, folder, lease, guardian),
        offline=OfflineEngine(offline_launch, guardian),
        lease=lease,
    )
    blocks = await asyncio.to_thread(page.build, services)
    blocks.queue(max_size=256, default_concurrency_limit=WORKERS)
    blocks.max_threads = WORKERS
    app = FastAPI(title=words.say("page.title"), docs_url=None, redoc_url=None, openapi_url=None)
    add_routes(app, services)
    mounted = gr.mount_gradio_app(
        app,
        blocks,
        path="/",
        show_error=True,
        footer_links=["api"],
        run_history=False,
        ssr_mode=False,
        max_file_size="1mb",
        theme=_theme(),
        css_paths=[Path(__file__).parent / "assets" / "page.css"],
        head=_head(words),
    )
    services.chat_engine.start()
    return Application(mounted, services)


def _theme() -> gr.Theme:
    """Gradio's base theme with system fonts (nothing is fetched), quiet labels and visible borders."""
    theme = gr.themes.Base(
        primary_hue="indigo",
        neutral_hue="slate",
        radius_size="lg",
        font=["system-ui", "-apple-system", "Segoe UI", "PingFang SC", "Microsoft YaHei", "Noto Sans CJK SC", "sans-serif"],
        font_mono=["ui-monospace", "SFMono-Regular", "Menlo", "Consolas", "monospace"],
    )
    return theme.set(
        block_border_width="0px",
        block_shadow="none",
        block_background_fill="transparent",
        block_background_fill_dark="transparent",
        block_padding="0px",
        block_title_text_weight="500",
        block_title_text_size="*text_sm",
        block_label_text_size="*text_sm",
        input_border_width="1px",
        input_background_fill="*background_fill_primary",
        input_background_fill_dark="*background_fill_secondary",
        button_large_padding="8px 18px",
        button_large_text_weight="550",
        button_primary_background_fill="*primary_600",
        button_primary_background_fill_hover="*primary_500",
        button_primary_background_fill_dark="*primary_600",
        button_primary_text_color="white",
        layout_gap="12px",
    )


def _head(words: Texts) -> str:
    """Our script, and the two words that the style sheet shows on copy buttons."""
    names = "; ".join(f'--kd-{key}: "{words.say(f"page.{key}")}"' for key in ("copy", "copied"))
    return f'<style>:root {{ {names} }}</style><script src="kimi/static/live.js" defer></script>'
