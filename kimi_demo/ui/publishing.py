"""`Publishing`: what of a visitor's can be published, and publishing it. Every look-up takes the owner."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from kimi_demo.dialect.failure import Failure
from kimi_demo.qa.case import told
from kimi_demo.qa.report import Report
from kimi_demo.runs.conversations import MOST_TITLE_CHARS, Conversation, shortened
from kimi_demo.runs.published import Kind, Publication
from kimi_demo.runs.run import Run
from kimi_demo.ui.published_page import PageMaker
from kimi_demo.ui.published_report import report_page
from kimi_demo.ui.services import Services


@dataclass(frozen=True)
class Subject:
    """What would be published. id: as pages of it are found again; title: as it is called so far."""

    kind: Kind
    id: str
    title: str
    conversation: Conversation | None = None
    runs: Sequence[Run] = ()
    report: Report | None = None


@dataclass(frozen=True)
class Publishing:
    services: Services

    async def subject(self, owner: str, kind: Kind, named: str) -> Subject:
        """named: the id of a conversation (chat), run (turn, tools), batch or QA run; who may see a QA run is the caller's to check.

        Raises Failure: publish.nothing, publish.unfinished, and those of the look-up.
        """
        services = self.services
        if kind == "batch":
            entry = await services.batches.get(owner, named)
            if entry.going:
                raise Failure("publish.unfinished")
            if not len(await services.batches.table(entry)):
                raise Failure("publish.nothing")
            return Subject(kind, entry.id, entry.title)
        if kind == "qa":
            card, report = services.qa.card(named), await services.qa.report(named)
            if card.going:
                raise Failure("publish.unfinished")
            if report is None:
                raise Failure("publish.nothing")
            return Subject(kind, card.id, told(card.title, services.texts.language), report=report)
        if kind == "chat":
            conversation = await services.chats.conversations.find(named, owner)
            if conversation is None or conversation.deleted:
                raise Failure("publish.nothing")
            runs = (await services.chats.shown(conversation)).runs
            found = Subject(kind, conversation.id, conversation.title, conversation, runs)
        else:
            run = await services.registry.get(named, owner)
            if run.kind != ("chat" if kind == "turn" else "tools"):
                raise Failure("runs.unknown")
            if kind == "turn":
                of_turn = await services.chats.conversations.get(run.group or "", owner)
                found = Subject(kind, of_turn.id, run.title, of_turn, [run])
            else:
                found = Subject(kind, run.id, run.title, None, [run])
        if not found.runs:
            raise Failure("publish.nothing")
        if not all(run.ended for run in found.runs):
            raise Failure("publish.unfinished")
        return found

    async def publish(self, owner: str, kind: Kind, named: str, title: str) -> Publication:
        """title: in place of the subject's own, when it is not empty. Raises those of `subject` and of `Published.add`."""
        services = self.services
        subject = await self.subject(owner, kind, named)
        name = shortened(title, MOST_TITLE_CHARS) or subject.title or services.texts.say("chats.untitled")
        page = await self._page(owner, subject, name)
        return await services.published.add(owner, kind, subject.id, name, [run.id for run in subject.runs], page)

    async def _page(self, owner: str, subject: Subject, title: str) -> bytes:
        services = self.services

        def image_url(image: str) -> str | None:
            try:
                return services.attachments.images.data_url(owner, image)
            except Failure:
                return None

        if subject.report is not None:
            first = await services.qa.baseline(services.qa.card(subject.id).key)
            first = None if first is not None and first.run == subject.id else first
            return await asyncio.to_thread(report_page, title, subject.report, first, services.chat_engine.settings, services.texts)
        engine = services.chat_engine
        serves = engine.endpoint.info.id if engine.endpoint is not None else engine.settings.model
        maker = PageMaker(engine.settings, services.texts, image_url, serves)
        if subject.kind == "batch":
            entry = await services.batches.get(owner, subject.id)
            return await asyncio.to_thread(maker.batch, title, entry, await services.batches.table(entry))
        if subject.kind == "tools":
            return await asyncio.to_thread(maker.tools, title, subject.runs[0])
        assert subject.conversation is not None
        return await asyncio.to_thread(maker.chat, title, subject.conversation, subject.runs)

    async def own(self, owner: str, subject: Subject | None = None) -> list[Publication]:
        """The owner's links, or those to one subject."""
        found = await self.services.published.list(owner)
        return found if subject is None else [each for each in found if (each.kind, each.subject) == (subject.kind, subject.id)]
