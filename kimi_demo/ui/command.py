"""`ui`, the command that starts the page (the default)."""

import argparse
import asyncio
import os
from importlib import import_module

from kimi_demo.flags import add_flags, settings_from
from kimi_demo.settings import Settings
from kimi_demo.ui.access import Access
from kimi_demo.ui.doors import listen, refuse_open_doors
from kimi_demo.ui.serve import Build, Page, serve
from kimi_demo.ui.texts import texts


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `ui`, with a flag for every setting."""
    line = texts().say("cli.ui")
    parser = subparsers.add_parser("ui", help=line, description=line, usage="%(prog)s [flags]", allow_abbrev=False)
    add_flags(parser)
    parser.set_defaults(handler=lambda given: start(settings_from(given)))


def start(settings: Settings, build: Build | None = None) -> int:
    """Run the page until it is stopped; `build` makes what is served (the Gradio page by default).

    Raises Failure: access.*_without_auth, page.*, data.locked, and what `build` raises.
    """
    from kimi_demo.runs.lock import DataLock

    refuse_open_doors(settings)
    with listen(settings.host, settings.port) as sock, DataLock(settings.data):
        asyncio.run(serve(settings, sock, build or _gradio_page))
    return 0


async def _gradio_page(settings: Settings, access: Access) -> Page:
    # Read by Gradio and huggingface_hub when they are imported: nothing is reported to anyone, no copy of runs is kept.
    os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")
    os.environ.setdefault("GRADIO_RUN_HISTORY", "False")
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    application = await asyncio.to_thread(import_module, "kimi_demo.ui.application")
    page: Page = await application.build(settings, access)
    return page
