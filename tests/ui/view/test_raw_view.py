"""A raw run's events → what is shown."""

from kimi_demo.dialect.events import AnswerDelta, Asked, Ended, Event, Failed, Finished, PromptTokens, RoundStarted, Timed, Usage
from kimi_demo.ui.texts import texts
from kimi_demo.ui.view.raw_view import RawView, marked
from tests.ui.view.browser import Elements

KEY = "run-x"


def shown(*events: Event) -> Elements:
    return Elements().apply(RawView("x", texts("en")).take([Timed(index / 2, event) for index, event in enumerate(events)]))


def test_tokens_marks_and_shared_characters() -> None:
    page = shown(Asked("a<think>🎉\n"), PromptTokens(5, ("a", "<think>", "🎉", "\n"), (1, 1, 2, 1)))
    assert page.text(f"{KEY}-count") == "5 tokens"
    html = page.html[f"{KEY}-prompt"]
    assert '<span class="special">&lt;think&gt;</span><span class="token" data-size="2">🎉</span><span class="token">⏎\n</span>' in html


def test_a_long_prompt_says_how_much_of_it_is_shown() -> None:
    assert shown(Asked("a"), PromptTokens(9_000, ("a",), (1,))).text(f"{KEY}-count") == "9,000 tokens (the first 1 are shown)"


def test_without_a_tokenizer_the_text_itself_is_shown() -> None:
    assert shown(Asked("<b>a</b></think>")).html[f"{KEY}-prompt"] == '&lt;b&gt;a&lt;/b&gt;<span class="special">&lt;/think&gt;</span>'


def test_output_grows_by_appending_and_is_marked_in_the_end() -> None:
    view, page = RawView("x", texts("en")), Elements()
    page.apply(view.take([Timed(0, Asked("q")), Timed(0, RoundStarted(0)), Timed(1, AnswerDelta("<i>T</th"))]))
    assert page.html[f"{KEY}-output"] == "<i>T</th" and page.html[f"{KEY}-phase"] == ""  # a text patch: never HTML
    page.apply(view.take([Timed(2, AnswerDelta("ink>A")), Timed(3, Usage(3, 4)), Timed(3, Finished("stop")), Timed(3, Ended("done"))]))
    assert page.html[f"{KEY}-output"] == '<div class="segment">&lt;i&gt;T<span class="special">&lt;/think&gt;</span>A</div>'
    assert page.state[KEY] == "done" and "finish reason stop" in page.text(f"{KEY}-0-numbers")


def test_a_failure_before_the_request() -> None:
    page = shown(Asked("q"), Failed("endpoint.refused", {"address": "http://h:1"}), Ended("failed"))
    assert "Nothing is listening" in page.text(f"{KEY}-ending") and f"{KEY}-0-numbers" not in page.html


def test_marks_are_kimis() -> None:
    assert marked("<|im_end|> <|odd mark|> [EOS] <think>").count('class="special"') == 3
