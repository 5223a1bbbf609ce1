"""A batch's events → its table and progress."""

from kimi_demo.dialect.events import Asked, BatchProgress, BatchStarted, Ended, Event, Phase, RowFinished, Timed
from kimi_demo.ui.texts import texts
from kimi_demo.ui.view.batch_view import BatchView
from tests.ui.view.browser import Elements

KEY = "run-x"
BEGUN = (Asked("one", {"rows": 3}), Phase("rehearsal.merging"), BatchStarted(3))
ROW = RowFinished(1, "two", reasoning="because", answer="yes", finish_reason="stop", prompt_tokens=5, completion_tokens=8)


def shown(*events: Event) -> Elements:
    return Elements().apply(BatchView("x", texts("en")).take([Timed(index / 2, event) for index, event in enumerate(events)]))


def test_while_it_loads_the_phase_is_shown() -> None:
    assert "Rehearsal model: merging the adapter0.5 s" in shown(*BEGUN[:2]).text(f"{KEY}-head")


def test_rows_and_progress_while_it_runs() -> None:
    page = shown(*BEGUN, ROW, BatchProgress(1, 2, 0, 20))
    assert "1 of 3 rows" in page.text(f"{KEY}-head") and "20 tokens generated" in page.text(f"{KEY}-head")
    assert "2 running, 0 waiting" in page.text(f"{KEY}-head")
    assert 'value="33.3"' in page.html[f"{KEY}-head"]
    assert page.text(f"{KEY}-rows") == "2twoThought, 7 charactersbecauseyesstop5 + 8"


def test_a_row_cut_off_in_thought_is_no_answer() -> None:
    row = RowFinished(0, "one", reasoning="long thought", answer="", finish_reason="length", prompt_tokens=5, completion_tokens=16)
    assert "Cut off while thinking: no answer." in shown(*BEGUN, row).text(f"{KEY}-rows")


def test_a_row_without_thinking_has_no_thought() -> None:
    row = RowFinished(0, "one", reasoning=None, answer="yes", finish_reason="stop")
    assert shown(*BEGUN, row).text(f"{KEY}-rows") == "1one–yesstop0 + 0"


def test_a_row_that_could_not_run_says_why() -> None:
    row = RowFinished(0, "one", error="batch.prompt_too_long", error_params={"tokens": "9000", "limit": "8192"})
    assert "9000" in shown(*BEGUN, row).text(f"{KEY}-rows") and "8192" in shown(*BEGUN, row).text(f"{KEY}-rows")


def test_stopping_keeps_what_is_done() -> None:
    page = shown(*BEGUN, ROW, Ended("stopped"))
    assert page.text(f"{KEY}-ending") == "Stopped. 1 of 3 rows had finished and are kept."
    assert "kimi/export/x.jsonl" in page.html[f"{KEY}-head"]


def test_prompts_and_answers_are_not_interpreted_as_html() -> None:
    html = shown(*BEGUN, RowFinished(0, "<b>p</b>", reasoning="<i>t</i>", answer="<script>a</script>", finish_reason="<u>")).html[
        f"{KEY}-rows"
    ]
    assert not any(tag in html for tag in ("<b>", "<i>", "<script", "<u>"))
