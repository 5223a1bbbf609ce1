"""What strangers read: all of the run, none of the places where it was made, and nothing that could run."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from kimi_demo.batches.finished import Finished
from kimi_demo.batches.results import Result
from kimi_demo.batches.shelf import Entry
from kimi_demo.dialect.events import (
    AnswerDelta,
    Asked,
    Attempt,
    Ended,
    Event,
    Failed,
    Phase,
    Problem,
    Remark,
    RoundStarted,
    ThoughtDelta,
    Timed,
    ToolCallDelta,
    ToolChecked,
    ToolResult,
    Usage,
)
from kimi_demo.dialect.events import Finished as RoundFinished
from kimi_demo.dialect.sampling import Sampling
from kimi_demo.model_name import shown_name
from kimi_demo.runs.conversations import Conversation
from kimi_demo.runs.run import Run
from kimi_demo.settings import Settings
from kimi_demo.ui import published_page
from kimi_demo.ui.published_page import PageMaker
from kimi_demo.ui.static_page import BAR, with_bar
from kimi_demo.ui.texts import texts
from kimi_demo.ui.view.qr import qr_html, qr_svg
from kimi_demo.ui.view.server_links import links_view_html
from tests.ui.test_transcript import HOSTILE, Tags

NOW = datetime(2026, 12, 1, 4, 0, tzinfo=UTC)
PLACES = ("/models", "secret-host", "10.0.0.3", "sk-secret", "/srv/data", "moonshotai/")
FLAGS = "--chat-template /srv/data/t.jinja --hf-overrides sk-secret"
LOCAL = Settings(model="/models/moonshotai/Kimi-K2.5", vllm_args=FLAGS, _env_file=None)
REMOTE = Settings(base_url="http://user:pass@secret-host:8000/v1", api_key="sk-secret", _env_file=None)


def run_of(kind: str, *events: Event, parameters: dict[str, Any] | None = None) -> Run:
    asked = Asked(HOSTILE, {"max_tokens": 9, **(parameters or {})})
    return Run(owner="me", kind=kind, title="t", created_at=NOW, entries=[Timed(i / 2, event) for i, event in enumerate((asked, *events))])


def reply(*more: Event, state: Any = "done") -> list[Event]:
    request: dict[str, Any] = {"model": "/models/moonshotai/Kimi-K2.5", "messages": [{"role": "user", "content": "x"}]}
    return [
        *(Phase("loading", params={"path": "/srv/data"}), RoundStarted(0, request), ThoughtDelta(f"I wonder {HOSTILE}")),
        *(AnswerDelta(f"**Yes** {HOSTILE}"), Usage(10, 4, 1), RoundFinished("stop"), *more, Ended(state)),
    ]


def chat(run: Run, settings: Settings = LOCAL, title: str = HOSTILE, system: str = "Be brief.") -> str:
    conversation = Conversation("c" * 32, "me", title, NOW, NOW, leaf=run.id, system=system)
    return PageMaker(settings, texts()).chat(title, conversation, [run]).decode()


def harmless(page: str) -> Tags:
    """The page's tags, held against what must not be in any."""
    seen = Tags(page)
    assert not {"script", "iframe", "object", "embed", "form", "input", "button", "textarea", "link", "base"} & set(seen.tags)
    assert seen.tags.count("style") == 1
    for name, value in seen.attributes:
        assert not name.startswith("on"), name
        if name in ("src", "href"):
            assert value is not None and value.startswith(("data:image/", "http://", "https://")), value
            assert name == "href" or value.startswith("data:"), value
    assert ("name", "referrer") in seen.attributes and ("content", "no-referrer") in seen.attributes
    assert ("content", "noindex, nofollow") in seen.attributes
    for place in PLACES:
        assert place not in page, place
    return seen


@pytest.mark.parametrize("settings", [LOCAL, REMOTE], ids=["launched", "attached"])
def test_a_conversation_is_told_whole_and_without_its_places(settings: Settings) -> None:
    seen = harmless(chat(run_of("chat", *reply()), settings))
    for part in ("I wonder", "Yes", "Kimi-K2.5", "Be brief.", "10", "stop", "<script>alert(1)</script>"):
        assert part in seen.text, part
    assert ("--tensor-parallel-size" in seen.text) == (settings is LOCAL)
    assert "pass" not in seen.text


def test_flags_are_not_told_of_a_model_that_is_not_served_any_more() -> None:
    conversation, run = Conversation("c" * 32, "me", "t", NOW, NOW), run_of("chat", *reply())
    for serves, told in ((LOCAL.model, True), (None, True), ("/models/another", False)):
        page = PageMaker(LOCAL, texts(), serves=serves).chat("t", conversation, [run]).decode()
        assert ("--tensor-parallel-size" in page) is told, serves


def test_the_operators_name_stands_for_the_models_own_everywhere() -> None:
    titled = LOCAL.model_copy(update={"model_title": "Our <b>Kimi</b>"})
    page = chat(run_of("chat", *reply()), titled, title="t")
    seen = harmless(page)
    assert "Our <b>Kimi</b>" in seen.text and "b" not in seen.tags
    facts = page[page.index("<dl>") : page.index("</dl>")]
    assert "Our &lt;b&gt;Kimi&lt;/b&gt;" in facts and "Our &lt;b&gt;Kimi&lt;" in page[page.index('class="numbers"') :]


@pytest.mark.parametrize(
    ("model", "shown"),
    [("/models/moonshotai/Kimi-K2.5", "Kimi-K2.5"), ("/models/kimi/", "kimi"), (r"C:\models\kimi", "kimi"), ("kimi", "kimi"), ("/", "/")],
)
def test_a_display_name_is_the_last_part_of_a_path(model: str, shown: str) -> None:
    assert shown_name(model) == shown


def test_a_failure_keeps_its_details_to_itself() -> None:
    failed = Failed("endpoint.unreachable", {"url": "http://10.0.0.3:8000/v1", "error": "refused by secret-host"})
    seen = harmless(chat(run_of("chat", *reply(failed, state="failed"))))
    assert "This run failed." in seen.text and "I wonder" in seen.text


def test_a_tool_conversation_shows_calls_and_results_and_no_buttons() -> None:
    events = reply()
    call = ToolCallDelta(0, f"functions.{HOSTILE}:0", HOSTILE, '{"a": "' + HOSTILE.replace('"', "'") + '"}')
    problem = Problem(HOSTILE, "type", HOSTILE)
    calls: list[Event] = [call, ToolChecked(0, (problem,)), ToolResult(0, "i", HOSTILE, error=HOSTILE)]
    calls.append(ToolCallDelta(1, "ok", "add", '{"a": 1}'))
    calls += [ToolChecked(1), ToolResult(1, "ok", "add", result=f"42 {HOSTILE}"), Remark("no_reasoning_parser")]
    run = run_of("tools", *events[:-3], *calls, *events[-3:])
    page = PageMaker(LOCAL, texts()).tools(HOSTILE, run).decode()
    seen = harmless(page)
    for part in ("I wonder", "42", "add", "Round 1", "Yes", "functions."):
        assert part in seen.text, part
    assert 'class="edit"' not in page and 'class="menu"' not in page and "Repeat" not in seen.text


def test_a_repetition_is_published_without_what_its_failures_told() -> None:
    attempt = Attempt(0, (("add", "{}", 0),), error="endpoint.unreachable", error_params={"url": "http://10.0.0.3:8000", "error": "x"})
    run = run_of("tools", attempt, Attempt(1, answer=HOSTILE), Ended("done"), parameters={"as": "repeat", "times": 2})
    seen = harmless(PageMaker(LOCAL, texts()).tools("t", run).decode())
    assert "This run failed." in seen.text and "<script>alert(1)</script>" in seen.text


def batch(tmp_path: Path, *results: Result) -> str:
    path = tmp_path / "results.jsonl"
    path.write_bytes(b"".join(result.to_line() for result in results))
    table = Finished(path)
    table.update()
    asked = {"engine": "server", "preset": "guide_thinking", "sampling": Sampling(max_tokens=64), "thinking": True}
    entry = Entry(owner="me", title="t", input="input.csv", rows=9, state="done", **asked)
    return PageMaker(LOCAL, texts()).batch(HOSTILE, entry, table).decode()


def test_a_batch_shows_its_rows_without_further_columns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(published_page, "MOST_ROWS", 2)
    rows = [
        Result(
            0, 1, HOSTILE, reasoning="I wonder", answer=f"Yes {HOSTILE}", model=LOCAL.model or "", columns={"email": "a@b"}, custom_id="x-1"
        ),
        Result(1, 2, "second", error="endpoint.unreachable", error_params={"url": "http://10.0.0.3:8000", "error": "x"}),
        Result(2, 3, "third", answer="last"),
    ]
    seen = harmless(batch(tmp_path, *rows))
    for part in ("I wonder", "second", "This run failed.", "Kimi-K2.5", "3 of 9 rows", "first 2 of 3"):
        assert part in seen.text, part
    for left_out in ("a@b", "x-1", "third"):
        assert left_out not in seen.text, left_out
    assert "svg" in seen.tags


def test_what_stands_above_the_page_is_put_there_once_whatever_the_page_holds() -> None:
    page = chat(run_of("chat", *reply()), title=f"{BAR} title").encode()
    assert page.count(BAR.encode()) == 1
    assert b"<nav>here</nav><main>" in with_bar(page, "<nav>here</nav>") and BAR.encode() not in with_bar(page, "")


def test_a_public_link_is_shown_with_a_code_of_it() -> None:
    link = "https://abc.gradio.live"
    shown = links_view_html([], link, None, texts(), wanted=True)
    assert link in Tags(shown).text and qr_svg(link) in shown
    assert qr_svg(link) != qr_svg(link + "x") and "width" not in qr_svg(link).split(">")[0] and "viewBox" in qr_svg(link)
    assert "--share" in links_view_html([], None, None, texts(), wanted=False)


def test_the_code_of_a_link_says_where_a_phone_cannot_get_there() -> None:
    assert "Scan it" in qr_html("https://demo.example.org/kimi/p/x", texts())
    for here in ("http://127.0.0.1:7860/kimi/p/x", "http://[::1]:7860/kimi/p/x", "http://localhost/kimi/p/x"):
        assert "this machine only" in qr_html(here, texts()), here
    for wrong in ("javascript:alert(1)", "file:///etc/passwd", "http://", "x"):
        with pytest.raises(ValueError, match="address"):
            qr_html(wrong, texts())
