"""A batch: its progress, and a table to which each row is added as it finishes."""

from collections.abc import Iterable
from html import escape

from kimi_demo.dialect.events import Asked, BatchProgress, BatchStarted, Ended, Failed, Phase, RowFinished, Timed
from kimi_demo.ui.texts import Texts
from kimi_demo.ui.view.json_text import clipped
from kimi_demo.ui.view.notice import failure_html, notice_html
from kimi_demo.ui.view.patch import Patch, add_html, set_html, set_state, spinner
from kimi_demo.ui.view.words import phase_words, seconds_html


class BatchView:
    """The live view of one batch run in the element `run-{run_id}`."""

    def __init__(self, run_id: str, texts: Texts) -> None:
        self.run_id = run_id
        self.key = f"run-{run_id}"
        self._texts = texts
        self._phase = phase_words(Phase("waiting"), texts)
        self._rows = 0
        self._finished = 0
        self._progress = BatchProgress(0, 0, 0, 0)
        self._row_tokens = 0
        self._failed: Failed | None = None
        self._ended: Ended | None = None
        self._at = 0.0
        self._started_at: float | None = None

    def skeleton(self) -> str:
        columns = ("row", "prompt", "thought", "answer", "finish", "tokens")
        heads = "".join(f"<th>{escape(self._texts.say(f'batch.column.{name}'))}</th>" for name in columns)
        key = self.key
        table = f'<table><thead><tr>{heads}</tr></thead><tbody id="{key}-rows"></tbody></table>'
        return (
            f'<article class="batch" id="{key}" data-state="running"><div id="{key}-head"></div><div id="{key}-ending"></div>'
            f'<div class="table-scroll" tabindex="0">{table}</div></article>'
        )

    def take(self, entries: Iterable[Timed]) -> list[Patch]:
        found: list[Patch] = []
        rows: list[str] = []
        for timed in entries:
            self._at = timed.at
            match timed.event:
                case RowFinished() as row:
                    self._finished += 1
                    self._row_tokens += row.completion_tokens
                    rows.append(self._row(row))
                case BatchStarted(rows=count):
                    self._rows, self._phase, self._started_at = count, "", timed.at
                case BatchProgress() as progress:
                    self._progress = progress
                case Phase() as phase:
                    self._phase = phase_words(phase, self._texts)
                case Failed() as failed:
                    self._failed = failed
                case Ended() as ended:
                    self._ended = ended
                case Asked(parameters=parameters):
                    self._rows = int(parameters.get("rows", 0))
                case _:
                    pass
        if rows:
            found.append(add_html(f"{self.key}-rows", "".join(rows)))
        if self._ended is not None:
            found += [set_html(f"{self.key}-ending", self._ending(self._ended)), set_state(self.key, self._ended.state)]
        found.append(set_html(f"{self.key}-head", self._head()))
        return found

    def _head(self) -> str:
        texts = self._texts
        running = self._ended is None
        share = 100 * self._finished / self._rows if self._rows else 0
        tokens = max(self._progress.generated_tokens, self._row_tokens)
        parts = [texts.say("batch.rows_done", done=self._finished, total=self._rows), texts.say("batch.tokens", count=tokens)]
        seconds = self._at - (self._started_at or 0.0)
        if self._started_at is not None and seconds > 0.5 and tokens:
            parts.append(texts.say("batch.speed", rate=f"{tokens / seconds:.1f}"))
        if running and self._started_at is not None:
            parts.append(texts.say("batch.running", running=self._progress.running, waiting=self._progress.waiting))
        phase = ""
        if self._phase and running:
            ticking = seconds_html(self._at, texts, running=True)
            phase = f'<div class="phase" role="status">{spinner(escape(self._phase), ticking)}</div>'
        export = ""
        if self._finished:
            export = f'<a class="export" href="kimi/export/{self.run_id}.jsonl" download>{escape(texts.say("batch.download"))}</a>'
        figures = "".join(f"<span>{escape(part)}</span>" for part in parts)
        bar = f'<progress max="100" value="{share:.1f}" aria-label="{escape(parts[0])}"></progress>'
        return f'{phase}{bar}<div class="numbers">{figures}{export}</div>'

    def _row(self, row: RowFinished) -> str:
        texts = self._texts
        if row.error is not None:
            what, hint = texts.failure(row.error, row.error_params)
            cells = f'<td colspan="3" class="row-error">{escape(what)} {escape(hint)}</td>'
        else:
            thought = "–" if row.reasoning is None else self._folded(row.reasoning)
            cut = row.finish_reason == "length" and not row.answer.strip()
            answer = (
                f"<em>{escape(texts.say('batch.cut_off_in_thought'))}</em>"
                if cut
                else f'<div class="cell">{escape(clipped(row.answer))}</div>'
            )
            cells = f'<td>{thought}</td><td dir="auto">{answer}</td><td><code>{escape(row.finish_reason or "–")}</code></td>'
        prompt = f'<td dir="auto"><div class="cell">{escape(clipped(row.prompt))}</div></td>'
        tokens = f'<td class="count">{row.prompt_tokens} + {row.completion_tokens}</td>'
        return f'<tr data-row="{row.index}"><td class="count">{row.index + 1}</td>{prompt}{cells}{tokens}</tr>'

    def _folded(self, thought: str) -> str:
        title = self._texts.say("batch.thought_characters", count=len(thought))
        return f'<details><summary>{escape(title)}</summary><div class="cell" dir="auto">{escape(clipped(thought))}</div></details>'

    def _ending(self, ended: Ended) -> str:
        if self._failed is not None:
            return failure_html(self._failed, self._texts)
        if ended.state in ("stopped", "interrupted"):
            return notice_html("info", self._texts.say(f"batch.{ended.state}", done=self._finished, total=self._rows))
        return ""
