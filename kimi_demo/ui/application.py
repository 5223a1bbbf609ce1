"""Puts the application together: engines, runs, the page and its routes; and takes it apart again."""

import asyncio
import logging
from dataclasses import dataclass, replace
from functools import partial

import gradio as gr
from fastapi import FastAPI

from kimi_demo.batch_drafts import Drafts
from kimi_demo.batch_engines import BatchEngines
from kimi_demo.batch_queue import Batches
from kimi_demo.batches.shelf import Shelf
from kimi_demo.chats import Chats
from kimi_demo.dialect.conversation import ChatRequest
from kimi_demo.engines.accelerators import Lease
from kimi_demo.engines.chat_engine import ChatEngine
from kimi_demo.engines.guardian import Guardian
from kimi_demo.engines.model_folder import ModelFolder
from kimi_demo.engines.offline import Emit, OfflineEngine
from kimi_demo.engines.offline_launch import OfflineLaunch
from kimi_demo.engines.saved_launches import SavedLaunches
from kimi_demo.engines.server_note import ServerNote
from kimi_demo.limits.gate import Gate
from kimi_demo.mcp_target import mcp_targets
from kimi_demo.model_name import under_its_name
from kimi_demo.qa_books import Books
from kimi_demo.qa_runs import QaRuns
from kimi_demo.qa_suites import Catalogue
from kimi_demo.runs.images import Images
from kimi_demo.runs.published import Published
from kimi_demo.runs.registry import Registry
from kimi_demo.runs.run import Run
from kimi_demo.runs.store import STORE, Store
from kimi_demo.server_control import ServerControl
from kimi_demo.settings import Settings
from kimi_demo.tasks import chat
from kimi_demo.tools.bench import Benches
from kimi_demo.tools.mcp_server import McpServer
from kimi_demo.tools.mcp_transport import transport
from kimi_demo.tools.people import People
from kimi_demo.tools.schema_checker import SchemaChecker
from kimi_demo.tools.workbench import Workbench
from kimi_demo.ui import page
from kimi_demo.ui.access import Access
from kimi_demo.ui.attachments import Attachments
from kimi_demo.ui.audience import ALL, Feature, TwoAudiences, keep_only, viewers_features
from kimi_demo.ui.by_language import ByLanguage
from kimi_demo.ui.caretaker import Caretaker
from kimi_demo.ui.desk import Desk
from kimi_demo.ui.first_look import FirstLook
from kimi_demo.ui.leftovers import Leftovers
from kimi_demo.ui.limit_routes import add_limits
from kimi_demo.ui.live import Pace
from kimi_demo.ui.routes import add_routes
from kimi_demo.ui.services import Services
from kimi_demo.ui.texts import LANGUAGES, texts
from kimi_demo.ui.texts.discreet import discreet

log = logging.getLogger(__name__)

WORKERS = 128
"""Queue workers of Gradio, which also cap its async handlers; waiting API calls hold one each."""


@dataclass(frozen=True)
class Application:
    """services: with the texts of the language set at the start."""

    asgi: ByLanguage | TwoAudiences
    services: Services
    caretaker: Caretaker | None = None

    async def aclose(self) -> None:
        """Stops all runs, then the engines, then the store; each even if the one before fails."""
        services = self.services
        if self.caretaker is not None:
            await self.caretaker.aclose()
        engines = (services.workbench.aclose, services.chat_engine.stop, services.offline.close)
        runs = (services.control.aclose, services.qa.aclose, services.batches.aclose, services.chats.aclose, services.registry.aclose)
        for step in (*runs, *engines):
            try:
                await step()
            except Exception:
                log.exception("while closing")
        await asyncio.to_thread(services.registry.store.close)


async def build(settings: Settings, access: Access) -> Application:
    """The whole application; the chat engine begins to start. Raises Failure of the store (an unreadable or newer database)."""
    store = await asyncio.to_thread(Store, settings.data / STORE)
    registry = Registry(store, settings.max_runs_at_once)
    folder, lease, guardian = ModelFolder(settings), Lease(shared=settings.rehearsal or settings.base_url is not None), Guardian()

    async def offline_launch(on_event: Emit) -> OfflineLaunch:
        return OfflineLaunch.from_settings(settings, await folder.path(on_event))

    images = Images(settings.data / "images", max_side=settings.max_image_side, max_bytes=int(settings.max_image_mb * 1e6))
    attachments = Attachments(images, store, most=settings.max_images)
    await asyncio.to_thread(attachments.sweep)
    registry.on_deleted = attachments.deleted
    engine = ChatEngine(settings, folder, lease, guardian, ServerNote(settings.data))

    async def reply(run: Run, request: ChatRequest) -> None:
        await chat(run, engine, request, attachments.expanded)

    offline = OfflineEngine(offline_launch, guardian)
    gate = registry.gate = Gate(settings) if access.public else None
    shelf = Shelf(settings.data / "batches")
    await asyncio.to_thread(shelf.recover)
    batch_engines = BatchEngines(settings, folder, offline, engine, lease)
    books = Books(settings.data / "qa")
    await asyncio.to_thread(books.recover)
    saved = await asyncio.to_thread(SavedLaunches, settings.data / "servers.json")
    control = ServerControl(settings, engine, folder, lease, saved)

    services = Services(
        settings=settings,
        texts=texts(settings.language),
        access=access,
        registry=registry,
        desk=Desk(registry),
        pace=Pace(),
        chats=Chats(registry, reply, max_prompt_chars=settings.max_prompt_chars),
        attachments=attachments,
        published=Published(store, most=settings.max_published, most_bytes=settings.max_published_mb * 1_000_000),
        chat_engine=engine,
        offline=offline,
        lease=lease,
        batches=Batches(shelf, Drafts(shelf, batch_engines, settings), batch_engines, gate),
        control=control,
        qa=QaRuns(engine, books, Catalogue(settings.data / "suites"), control.connected),
        people=People(),
        workbench=_workbench(settings, guardian),
    )
    registry.viewers_veil = partial(under_its_name, title=settings.model_title)
    caretaker: Caretaker | None = None
    said = [texts(name) for name in LANGUAGES]
    everything = {each.language: await _mounted(replace(services, texts=each), ALL) for each in said}
    by_language = ByLanguage(everything, settings.language)
    application: ByLanguage | TwoAudiences = by_language
    if access.public:
        for_viewers = [replace(services, texts=discreet(each), workbench=services.workbench.plain()) for each in said]
        leftovers = Leftovers(registry, services.batches, attachments, services.workbench.benches)
        caretaker = Caretaker(settings, registry, services.batches, leftovers)
        features = viewers_features(settings)
        viewers = {each.texts.language: await _mounted(each, features, leftovers) for each in for_viewers}
        application = TwoAudiences(by_language, ByLanguage(viewers, settings.language), access, caretaker.presence)
        caretaker.start()
    services.chat_engine.start()
    services.workbench.start()
    services.control.begin()
    services.chats.purge()
    return Application(application, services, caretaker)


async def _mounted(services: Services, features: frozenset[Feature], leftovers: Leftovers | None = None) -> FastAPI:
    """The page with its routes in the language of `services.texts`, as far as these features go.

    leftovers: of viewers, who may delete what is theirs.
    """
    blocks = await asyncio.to_thread(page.build, services, features)
    blocks.queue(max_size=256, default_concurrency_limit=WORKERS)
    blocks.max_threads = WORKERS
    app = FastAPI(title=services.texts.say("page.title"), docs_url=None, redoc_url=None, openapi_url=None)
    app.add_middleware(FirstLook, texts=services.texts)
    add_routes(app, services)
    if leftovers is not None:
        add_limits(app, services, leftovers)
    if features != ALL:
        keep_only(app, services, features)
    mounted: FastAPI = gr.mount_gradio_app(
        app,
        blocks,
        path="/",
        show_error=True,
        footer_links=["api"],
        run_history=False,
        ssr_mode=False,
        max_file_size="1mb",
        theme=page.theme(),
        head=page.head(services.texts, features),
    )
    return mounted


def _workbench(settings: Settings, guardian: Guardian) -> Workbench:
    checker, logs = SchemaChecker(), settings.data / "logs"
    folder = settings.data / "tools"
    servers = [
        McpServer(target, partial(transport, target, guardian, logs), checker, note=folder / f"mcp-{target.name}.json")
        for target in mcp_targets(settings.mcp)
    ]
    return Workbench(Benches(folder), checker, servers)
