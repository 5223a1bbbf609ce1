"""A thumb under a reply: what was asked becomes a case of the suite `captured`, to be asked again and judged by hand."""

import asyncio

from fastapi import FastAPI, Request
from pydantic import Field

from kimi_demo.dialect.failure import Failure
from kimi_demo.dialect.reply import rounds
from kimi_demo.qa.case import Words
from kimi_demo.qa_captured import Captured, judged_case
from kimi_demo.runs.rows import whole
from kimi_demo.ui.acts import Given, add_act
from kimi_demo.ui.services import Services
from kimi_demo.ui.texts import LANGUAGES, texts
from kimi_demo.ui.view.rate_view import MOST_NOTE, kept_html

MOST_ANSWER = 1_000
"""Characters of the judged answer that stand beside the case."""


class Rate(Given):
    run: str
    good: bool
    note: str = Field("", max_length=MOST_NOTE)


def add_rate_acts(app: FastAPI, services: Services) -> None:
    captured = Captured(services.qa.catalogue.folder)

    async def rate(request: Request, given: Rate) -> dict[str, str]:
        services.access.require_trusted(request)
        run = await services.registry.get(given.run, services.access.owner_of(request))
        if run.kind not in ("chat", "tools"):
            raise Failure("runs.unknown")
        if not run.ended:
            raise Failure("qa_page.captured_unfinished")
        replies, note = rounds(run.entries), " ".join(whole(given.note).split())
        first = next((reply for reply in replies if reply.request), None)
        if first is None:
            raise Failure("qa_page.not_captured", problem="nothing was sent")
        case = judged_case(
            first,
            f"{run.kind}-{run.id[:12]}",
            whole(run.title),
            good=given.good,
            about=_about(replies[-1].answer, f"{run.created_at:%Y-%m-%d}"),
            look_for=_look_for(note, good=given.good),
        )
        await asyncio.to_thread(captured.keep, case)
        return {"html": kept_html(run.id, note, services.texts, good=given.good)}

    add_act(app, services, "rate", Rate, rate)


def _about(answer: str, date: str) -> Words:
    text = whole(answer).strip()
    text = text if len(text) <= MOST_ANSWER else f"{text[:MOST_ANSWER]}…"
    return {language: texts(language).say("rate.about", date=date, answer=text or "–") for language in LANGUAGES}  # type: ignore[misc]


def _look_for(note: str, *, good: bool) -> Words:
    key = f"rate.look_{'good' if good else 'bad'}{'_note' if note else ''}"
    return {language: texts(language).say(key, note=note) for language in LANGUAGES}  # type: ignore[misc]
