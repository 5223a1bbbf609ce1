"""The exported web page: everything is in it, nothing runs, nothing is fetched."""

from datetime import UTC, datetime
from html.parser import HTMLParser
from typing import Any

import pytest

from kimi_demo.dialect.events import AnswerDelta, Asked, Ended, Event, Finished, RoundStarted, ThoughtDelta, Timed, Usage
from kimi_demo.runs.conversations import Conversation
from kimi_demo.runs.run import Run
from kimi_demo.settings import Settings
from kimi_demo.ui.texts import texts
from kimi_demo.ui.transcript import as_page, served_by, transcript

HOSTILE = (
    "<script>alert(1)</script><img src=x onerror=alert(2)> [x](javascript:alert(3)) ![i](http://e.invalid/?s) </style></details>"
    "<style>body{display:none}</style> ${title} $title"
)
ATTACHED = Settings(base_url="http://user-free.example:8000/v1", api_key="sk-secret", _env_file=None)


class Tags(HTMLParser):
    """The page as a parser sees it: its tags and attributes, and the text beside styles."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""
        self._styles = 0
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        self._styles += tag == "style"

    def handle_endtag(self, tag: str) -> None:
        self._styles -= tag == "style"

    def handle_data(self, data: str) -> None:
        if not self._styles:
            self.text += data


IMAGE = "data:image/png;base64,AAAA"


def page(*events: Event, title: str = "A title", system: str = "", settings: Settings = ATTACHED) -> str:
    now = datetime(2026, 11, 30, 16, 0, tzinfo=UTC)
    run = Run(owner="me", kind="chat", title="t", entries=[Timed(i / 2, event) for i, event in enumerate(events)])
    conversation = Conversation("c" * 32, "me", title, now, now, leaf=run.id, system=system)

    def image_url(image: str) -> str | None:
        return IMAGE if image == "here" else None

    return as_page(transcript(conversation, [run], settings, texts(), image_url), [run], texts(), image_url).decode()


def reply(thought: str, answer: str, question: str = "hi") -> list[Event]:
    request: dict[str, Any] = {"model": "/models/moonshotai/Kimi-K2.5"}
    return [
        *(Asked(question, {"max_tokens": 9}), RoundStarted(0, request), ThoughtDelta(thought), AnswerDelta(answer)),
        *(Usage(10, 4, 1), Finished("stop"), Ended("done")),
    ]


def test_question_thought_answer_figures_model_and_versions_are_in_it() -> None:
    seen = Tags(page(*reply("I wonder", "**Yes** $x^2$"), system="Be brief."))
    for part in (
        "A title",
        "hi",
        "I wonder",
        "Yes",
        "10",
        "stop",
        "Kimi-K2.5",
        "user-free.example:8000",
        "Be brief.",
        "2026-11-30 16:00 UTC",
    ):
        assert part in seen.text, part
    assert {"strong", "math", "details", "summary"} <= set(seen.tags)
    assert "/models/moonshotai" not in seen.text and "sk-secret" not in page(*reply("t", "a"))


def test_hostile_text_does_nothing() -> None:
    html = page(*reply(HOSTILE, HOSTILE, HOSTILE), title=HOSTILE, system=HOSTILE)
    seen = Tags(html)
    assert not {"script", "img", "iframe", "form", "button", "input", "link", "object"} & set(seen.tags)
    assert seen.tags.count("style") == 1
    names = {name for name, _ in seen.attributes}
    assert not [name for name in names if name.startswith("on")]
    assert not [value for name, value in seen.attributes if name in ("href", "src") and (value or "").lower().startswith("javascript")]
    assert seen.text.count("<script>alert(1)</script>") == 6  # title twice, system, question, thought, answer: as text
    assert "$title" in seen.text


def test_images_are_in_the_page_and_one_that_is_gone_leads_nowhere() -> None:
    asked = Asked("What is this?", {"images": ["here", "gone"]})
    seen = Tags(page(asked, RoundStarted(0), AnswerDelta("A dot."), Finished("stop"), Ended("done")))
    assert seen.tags.count("img") == 2
    assert [value for name, value in seen.attributes if name == "src"] == [IMAGE]
    assert not [value for name, value in seen.attributes if name == "href"]
    assert "Image 2 of 2" in [value for name, value in seen.attributes if name == "alt"]


def test_nothing_is_fetched() -> None:
    seen = Tags(page(*reply("t", "a")))
    policy = next(value for name, value in seen.attributes if name == "content" and value and value.startswith("default-src"))
    assert policy.startswith("default-src 'none'; style-src 'sha256-") and "unsafe" not in policy
    assert not [name for name, _ in seen.attributes if name in ("src", "srcset", "background")]
    assert "@import" not in page(*reply("t", "a")) and "url(" not in page(*reply("t", "a"))


@pytest.mark.parametrize("end", ["stopped", "interrupted"])
def test_a_turn_that_did_not_finish_says_so(end: Any) -> None:
    seen = Tags(page(Asked("hi"), RoundStarted(0), ThoughtDelta("I won"), Ended(end)))
    assert "I won" in seen.text and texts().say(f"notice.{end}") in seen.text


def test_a_server_of_our_own_is_named_with_its_flags_but_no_path() -> None:
    settings = Settings(
        model="/data/secret place/Kimi-K2.5", tensor_parallel_size=8, vllm_args="--hf-token hf_secret --seed=7", _env_file=None
    )
    told = " ".join(served_by(settings, texts()).values())
    assert "--model Kimi-K2.5 --tensor-parallel-size 8" in told and "--reasoning-parser kimi_k2" in told
    assert "--hf-token --seed" in told and "hf_secret" not in told and "7" not in told.rpartition("--hf-token")[2]
    assert "secret place" not in told and "--port" not in told and "127.0.0.1" not in told
