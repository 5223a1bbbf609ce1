"""What strangers read of a run: a page made once, by the views that the owner sees, without the places where it was made."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from html import escape

from kimi_demo.batches.finished import Finished, Sight
from kimi_demo.batches.results import Result
from kimi_demo.batches.shelf import Entry
from kimi_demo.dialect.events import Attempt, Event, Failed, Phase, RoundStarted, Timed
from kimi_demo.dialect.sampling import PRESETS
from kimi_demo.model_name import last_part, shown_name
from kimi_demo.runs.conversations import Conversation
from kimi_demo.runs.run import Run
from kimi_demo.settings import Settings
from kimi_demo.ui.questions import Placed
from kimi_demo.ui.static_page import static_page
from kimi_demo.ui.texts import Texts
from kimi_demo.ui.transcript import ImageUrl, served_by, still, system_html
from kimi_demo.ui.view.batch_charts import charts_html
from kimi_demo.ui.view.batch_table import clipped, row_html
from kimi_demo.ui.view.document import Document
from kimi_demo.ui.view.repeat_view import RepeatView
from kimi_demo.ui.view.run_view import RunView
from kimi_demo.ui.view.tool_run_view import tools_view

MOST_ROWS = 1000
MOST_ROWS_CHARS = 6_000_000
"""Of a batch as many rows as a browser shows without effort; its owner's downloads have all."""
_STYLES = ("tools.css", "batch.css", "published.css")


@dataclass(frozen=True)
class PageMaker:
    """settings: of the engine that answers now. serves: id of its model, where that is known: its flags are told of no other's runs."""

    settings: Settings
    texts: Texts
    image_url: ImageUrl = lambda image: None
    serves: str | None = None

    def chat(self, title: str, conversation: Conversation, runs: Sequence[Run]) -> bytes:
        """runs: the turns, all of them ended."""
        body = system_html(conversation.system, self.texts) if conversation.system.strip() else ""
        shown = [self._cleaned(run) for run in runs]
        return self._page(title, shown, body + "".join(self._still(run, RunView(run.id, self.texts)) for run in shown))

    def tools(self, title: str, run: Run) -> bytes:
        shown = self._cleaned(run)
        return self._page(title, [shown], self._still(shown, tools_view(Placed(shown, shown.id, [shown.id]), self.texts)))

    def batch(self, title: str, entry: Entry, table: Finished) -> bytes:
        """The first finished rows of the file, without columns that only travelled along. Raises Failure("batches.unreadable")."""
        say, total, left, rows = self.texts.say, len(table), MOST_ROWS_CHARS, []
        models: dict[str, None] = {}
        for result in table.read(table.found(Sight(order="file"))[:MOST_ROWS]):
            models.setdefault(result.model)
            rows.append(self._row(result))
            left -= len(rows[-1])
            if left < 0:
                break
        told = say("batch.rows_done", done=f"{total:,}", total=f"{entry.rows:,}")
        less = (
            f'<p class="fine">{escape(say("published.first_rows", shown=f"{len(rows):,}", total=f"{total:,}"))}</p>'
            if len(rows) < total
            else ""
        )
        preset = say(f"preset.{entry.preset}.label") if entry.preset in PRESETS else entry.preset
        facts = {
            say("transcript.model"): self._models(models),
            **self._served(models),
            say("published.rows"): told,
            say("batch.preset"): preset,
            say("page.max_tokens"): f"{entry.sampling.max_tokens:,}",
            say("batch_page.engine.label"): say(f"batch_page.engine.{entry.engine}"),
        }
        body = f'{charts_html(table, self.texts)}{less}<div class="published-rows">{"".join(rows)}</div>'
        return self._framed(title, entry.created_at, facts, body)

    def _row(self, result: Result) -> str:
        model = self._display(result.model)
        result = replace(result, model=model, columns={}, custom_id=None, rendered_prompt=None)
        if result.error is not None:
            result = replace(result, error="publish.run_failed", error_params={})
        asked, came = (escape(clipped(" ".join(text.split()), 160)) for text in (result.prompt, result.answer))
        head = f'<span class="count">{result.index + 1}</span><span dir="auto">{asked}</span><span class="came" dir="auto">{came}</span>'
        return f"<details><summary>{head}</summary>{Document(row_html(result, self.texts)).html()}</details>"

    # What is told about the model

    def _page(self, title: str, runs: Sequence[Run], body: str) -> bytes:
        asked = [item.event.request.get("model") for run in runs for item in run.entries if isinstance(item.event, RoundStarted)]
        models = [str(name) for name in asked if name]
        facts = {self.texts.say("transcript.model"): self._models(models), **self._served(models)}
        return self._framed(title, runs[0].created_at if runs else None, facts, body)

    def _framed(self, title: str, made_at: datetime | None, facts: dict[str, str], body: str) -> bytes:
        say, now = self.texts.say, datetime.now(UTC)
        dates = [say("transcript.created", date=f"{made_at:%Y-%m-%d %H:%M} UTC")] if made_at is not None else []
        dates.append(say("published.at", date=f"{now:%Y-%m-%d %H:%M} UTC"))
        return static_page(title, " · ".join(dates), facts, body, self.texts, styles=_STYLES, public=True)

    def _served(self, models: Iterable[str]) -> dict[str, str]:
        """Program and flags; of another's server nothing, since its name is all that we know of it, nor of a model that is gone."""
        asked = {self._shown(name) for name in models if name}
        if self.settings.base_url is not None or (self.serves is not None and asked and self._shown(self.serves) not in asked):
            return {}
        return {
            name: " ".join(last_part(part) for part in value.split(" ")) for name, value in served_by(self.settings, self.texts).items()
        }

    def _models(self, names: Iterable[str]) -> str:
        return ", ".join(dict.fromkeys(self._display(name) for name in names if name))

    def _display(self, model: str) -> str:
        return shown_name(model, self.settings.model_title)

    def _shown(self, model: str) -> str:
        """As it stands in the events: views show what follows the last slash of a name."""
        return self._display(model).replace("/", "\N{DIVISION SLASH}")

    # What is left out of the events

    def _still(self, run: Run, view: RunView | RepeatView) -> str:
        return still(run, view, self.texts, self.image_url)

    def _cleaned(self, run: Run) -> Run:
        entries = [Timed(item.at, event) for item in run.entries if (event := self._clean(item.event)) is not None]
        return Run(
            id=run.id,
            owner=run.owner,
            kind=run.kind,
            title=run.title,
            group=run.group,
            parent=run.parent,
            created_at=run.created_at,
            entries=entries,
        )

    def _clean(self, event: Event) -> Event | None:
        """Failures and phases tell of addresses, folders and logs, a request of the model's folder."""
        match event:
            case Failed():
                return Failed("publish.run_failed")
            case Attempt(error=error) if error is not None:
                return replace(event, error="publish.run_failed", error_params={})
            case Phase(name=name) if not name.startswith("tools."):
                return None
            case RoundStarted(request=request) if "model" in request:
                return replace(event, request={**request, "model": self._shown(str(request["model"]))})
            case _:
                return event
