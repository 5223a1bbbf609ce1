"""A conversation as it is exported: what is known of it, gathered, and as a web page that needs neither the server nor a script."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from html import escape
from pathlib import PurePath
from typing import Any
from urllib.parse import urlsplit

from kimi_demo import __version__
from kimi_demo.dialect.events import Asked, RoundStarted
from kimi_demo.dialect.failure import Failure
from kimi_demo.dialect.reply import Reply, rounds
from kimi_demo.dialect.transcript import Transcript, Turn
from kimi_demo.engines.availability import find_vllm
from kimi_demo.engines.launch import Launch
from kimi_demo.model_name import shown_name
from kimi_demo.runs.conversations import Conversation
from kimi_demo.runs.run import Run
from kimi_demo.settings import Settings
from kimi_demo.ui.attachments import SHOWN_AT
from kimi_demo.ui.static_page import static_page
from kimi_demo.ui.texts import Texts
from kimi_demo.ui.thoughts import thought_html
from kimi_demo.ui.view.document import Document, Element
from kimi_demo.ui.view.repeat_view import RepeatView
from kimi_demo.ui.view.run_view import RunView

_LIFELESS = frozenset(("actions", "menu", "versions", "edit", "offers"))

ImageUrl = Callable[[str], str | None]
"""A data URL of an image by its id; None for one that is gone."""


def transcript(
    conversation: Conversation, runs: Sequence[Run], settings: Settings, texts: Texts, image_url: ImageUrl = lambda image: None
) -> Transcript:
    """The turns that are shown, with what is known of who made them."""
    about = {"kimi_demo": __version__, **served_by(settings, texts)}
    title = conversation.title or texts.say("chats.untitled")
    return Transcript(title, [_turn(run, image_url) for run in runs], conversation.system, conversation.created_at, about)


def served_by(settings: Settings, texts: Texts) -> dict[str, str]:
    """Who serves the model, and how it was started where we did that. No key and no path is in it."""
    if settings.base_url is not None and texts.discreet:
        return {}
    if settings.base_url is not None:
        return {texts.say("transcript.served"): urlsplit(settings.base_url).netloc.rpartition("@")[2]}
    build = find_vllm()
    served = f"{build.distribution} {build.version}" if build else "vLLM"
    try:
        launch = Launch.from_settings(settings, shown_name(settings.model or "rehearsal", settings.model_title))
    except Failure:
        return {texts.say("transcript.served"): served}
    line = replace(launch, extra=()).command()
    flags = line[line.index("--model") :]
    where = flags.index("--host")
    # Of arguments that the operator added only the names: a value can be a token or a path.
    added = [each.partition("=")[0] for each in launch.extra if each.startswith("-")]
    return {texts.say("transcript.served"): served, texts.say("transcript.flags"): " ".join([*flags[:where], *flags[where + 4 :], *added])}


def _turn(run: Run, image_url: ImageUrl) -> Turn:
    replies = rounds(run.entries)
    reply = replies[-1] if replies else Reply()
    asked = run.asked or Asked("")
    images = tuple(url for image in asked.parameters.get("images") or () if (url := image_url(image)) is not None)
    return Turn(asked.text, reply.thought, reply.answer, _details(run, reply), images)


def _details(run: Run, reply: Reply) -> dict[str, Any]:
    request = next((item.event.request for item in run.entries if isinstance(item.event, RoundStarted)), {})
    usage = reply.usage
    counts = (
        {"prompt_tokens": usage.prompt_tokens, "completion_tokens": usage.completion_tokens, "reasoning_tokens": usage.reasoning_tokens}
        if usage
        else None
    )
    return {
        "model": request.get("model"),
        "asked_at": run.created_at.isoformat(),
        "state": run.state,
        "finish_reason": reply.finish_reason,
        "usage": counts,
        "parameters": {name: value for name, value in run.asked.parameters.items() if name != "images"} if run.asked else {},
    }


def as_page(known: Transcript, runs: Sequence[Run], texts: Texts, image_url: ImageUrl = lambda image: None) -> bytes:
    """The conversation as one file: the turns as the chat shows them, thoughts folded, figures below, its style sheet inside."""
    say = texts.say
    exported = say("transcript.exported", date=f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC", version=__version__)
    created = say("transcript.created", date=f"{known.created_at:%Y-%m-%d %H:%M} UTC") if known.created_at else ""
    models = dict.fromkeys(PurePath(turn.details["model"]).name for turn in known.turns if turn.details.get("model"))
    facts = {say("transcript.model"): ", ".join(models), **known.about}
    body = (system_html(known.system, texts) if known.system.strip() else "") + "".join(_run_html(run, texts, image_url) for run in runs)
    return static_page(known.title, " · ".join(part for part in (created, exported) if part), facts, body, texts)


def system_html(text: str, texts: Texts) -> str:
    title = escape(texts.say("transcript.system"))
    summary = f'<summary><span class="label">{title}</span></summary>'
    return f'<details class="thought" data-state="done">{summary}<div class="thought-text system" dir="auto">{escape(text)}</div></details>'


def _run_html(run: Run, texts: Texts, image_url: ImageUrl) -> str:
    return still(run, RunView(run.id, texts), texts, image_url)


def still(run: Run, view: RunView | RepeatView, texts: Texts, image_url: ImageUrl) -> str:
    """The finished run as its view shows it, thoughts and images inside, without what only a script could make use of."""
    replies = rounds(run.entries)

    def load(source: str) -> str:
        """A thought: kimi/thought/{run}/{round}."""
        return thought_html(replies[int(source.rpartition("/")[2])].thought, source, texts, render=False)

    document = Document(view.skeleton(), load).apply(view.take(run.entries))
    for element in document.walk():
        _take_in(element, image_url)
        element.inside = [each for each in element.inside if isinstance(each, str) or not _lifeless(each)]
    return document.html()


def _lifeless(element: Element) -> bool:
    """A menu or a form of which only the summary would be left."""
    return not _LIFELESS.isdisjoint((element.attributes.get("class") or "").split())


def _take_in(element: Element, image_url: ImageUrl) -> None:
    """Puts the image itself where the page refers to it; there is no larger one to lead to."""
    for name in ("src", "href"):
        address = element.attributes.get(name) or ""
        if address.startswith(SHOWN_AT):
            url = image_url(address.removeprefix(SHOWN_AT)) if name == "src" else None
            del element.attributes[name]
            if url is not None:
                element.attributes[name] = url
