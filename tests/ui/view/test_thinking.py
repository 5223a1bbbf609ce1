"""Thoughts: what is sent while they are written and afterwards, what is said when they are not whole, what they cost."""

import json
from collections.abc import Iterator

import pytest

from kimi_demo.dialect.events import (
    AnswerDelta,
    Asked,
    CarriedOver,
    Ended,
    Event,
    Finished,
    Remark,
    RoundStarted,
    ThoughtDelta,
    Timed,
    Usage,
)
from kimi_demo.dialect.reply import Reply, rounds
from kimi_demo.ui.texts import texts
from kimi_demo.ui.thoughts import MARKDOWN_LIMIT, segments, thought_html
from kimi_demo.ui.view.again import has_room, may_continue, more_tokens
from kimi_demo.ui.view.notice import ending
from kimi_demo.ui.view.run_view import RunView
from tests.ui.view.browser import Elements

KEY = "run-x"
EN = texts("en")


def timed(*events: Event) -> list[Timed]:
    return [Timed(index / 2, event) for index, event in enumerate(events)]


def shown(*events: Event) -> Elements:
    return Elements().apply(RunView("x", EN).take(timed(*events)))


def reply(*events: Event) -> Reply:
    return rounds(timed(*events))[-1]


# Sent when opened


def test_a_finished_conversation_brings_no_thoughts_until_they_are_opened() -> None:
    page = shown(
        Asked("q"), RoundStarted(0), ThoughtDelta("secret " * 50_000), AnswerDelta("A"), Usage(9, 9, 8), Finished("stop"), Ended("done")
    )
    assert page.lazy == {f"{KEY}-0-thought-text": "kimi/thought/x/0"} and page.sent < 5_000


def test_a_short_thought_is_markdown_a_long_one_plain_with_a_button() -> None:
    assert "<strong>b</strong>" in thought_html("**b**", "at", EN, render=False)
    long = "**b**\n\tindented\n\n" * 5_000
    assert len(long) > MARKDOWN_LIMIT
    plain = thought_html(long, "kimi/thought/x/0", EN, render=False)
    assert 'data-render="kimi/thought/x/0?render=1"' in plain and "<strong>" not in plain and f"{len(long):,}" in plain
    assert thought_html(long, "at", EN, render=True).count("<strong>b</strong>") == 5_000


def test_segments_lose_nothing_but_the_breaks_between_them() -> None:
    text = "".join(f"  line {number}\n\n\ttab\n" for number in range(3_000))
    found = segments(text)
    assert "\n".join(found) == text and len(found) > 5 and max(map(len, found)) < 5_000
    assert segments("x" * 20_000) == ["x" * 20_000] and segments("") == [""]


# Counts and clocks


def test_without_reasoning_counts_all_tokens_before_the_answer_are_thought() -> None:
    page = shown(Asked("q"), RoundStarted(0), ThoughtDelta("a b c"), Usage(9, 7, None, final=False))
    assert page.text(f"{KEY}-0-thought-title").endswith("7 tokens") and "about" not in page.text(f"{KEY}-0-thought-title")
    page = shown(Asked("q"), RoundStarted(0), ThoughtDelta("a"), AnswerDelta("b"), Usage(9, 7, None, final=False))
    assert page.text(f"{KEY}-0-thought-title").endswith("about 1 tokens")


def test_no_usage_at_all_is_marked() -> None:
    page = shown(Asked("q"), RoundStarted(0), ThoughtDelta("a"), ThoughtDelta("b"), AnswerDelta("c"), Finished("stop"), Ended("done"))
    assert page.text(f"{KEY}-0-thought-title").endswith("about 2 tokens")


# Not whole


def cut(asked: int, context: int | None, *, prompt: int = 100, spent: int | None = None, answer: str = "", can: bool = True) -> Reply:
    said = [AnswerDelta(answer)] if answer else []
    used = Usage(prompt, asked if spent is None else spent, None)
    return reply(RoundStarted(0, {"max_tokens": asked}, can, context), ThoughtDelta("T"), *said, used, Finished("length"))


@pytest.mark.parametrize(
    ("asked", "context", "more"),
    [(4, 8192, 1024), (200, 8192, 1024), (2000, 8192, 8000), (4096, 8192, 8092), (8092, 8192, None), (500, None, 2000), (900, 1000, None)],
)
def test_the_limit_to_ask_again_with(asked: int, context: int | None, more: int | None) -> None:
    assert more_tokens(cut(asked, context)) == more


def test_cut_off_in_thought_offers_more_tokens_and_a_brief_thought() -> None:
    html = ending(Ended("done"), cut(200, 8192), None, EN, max_tokens=200, run_id="x")
    assert "All 200 tokens went into thinking; there is no answer." in html
    assert 'data-act="chat_give_more" data-value-run="x" data-value-max_tokens="1024">Give it 1,024 tokens<' in html
    assert 'data-act="chat_keep_brief" data-value-run="x">Keep the thinking brief<' in html and "chat_continue" not in html


def test_where_the_context_is_full_no_more_is_offered_and_that_is_said() -> None:
    html = ending(Ended("done"), cut(8092, 8192), None, EN, max_tokens=None, run_id="x")
    assert "chat_give_more" not in html and "the whole context is 8192 tokens" in html and "chat_keep_brief" in html


def test_cut_off_in_the_answer_offers_to_continue_where_the_server_can() -> None:
    html = ending(Ended("done"), cut(200, 8192, answer="A"), None, EN, max_tokens=200, run_id="x")
    assert "cut off at the limit of 200 tokens" in html and 'data-act="chat_continue" data-value-run="x">Continue<' in html
    assert "chat_continue" not in ending(Ended("done"), cut(200, 8192, answer="A", can=False), None, EN, max_tokens=200, run_id="x")
    assert "<button" not in ending(Ended("done"), cut(200, 8192, answer="A"), None, EN, max_tokens=200)  # not part of a conversation


def test_nothing_is_continued_beyond_the_context() -> None:
    full = cut(200, 300, answer="A")
    assert not has_room(full) and not may_continue(Ended("done"), full)


@pytest.mark.parametrize("state", ["stopped", "failed", "interrupted"])
def test_what_broke_off_can_be_continued_also_in_mid_thought(state: str) -> None:
    half = reply(RoundStarted(0, {}, True, 8192), ThoughtDelta("T"))
    assert may_continue(Ended(state), half)  # type: ignore[arg-type]
    nothing = reply(RoundStarted(0, {}, True, 8192))
    assert not may_continue(Ended(state), nothing)  # type: ignore[arg-type]


def test_a_whole_reply_offers_nothing() -> None:
    whole = reply(RoundStarted(0, {}, True, 8192), AnswerDelta("A"), Finished("stop"))
    assert ending(Ended("done"), whole, None, EN, max_tokens=9, run_id="x") == ""


def test_an_answer_that_was_cut_off_does_not_show_half_of_its_marks() -> None:
    page = shown(Asked("q"), RoundStarted(0), AnswerDelta("A **language mod"), Finished("length"), Ended("done"))
    assert page.html[f"{KEY}-0-answer-done"] == "<p>A <strong>language mod</strong></p>\n"


# Going on


CARRIED = CarriedOver("before", "The sky ", "half", 3.5, 12)


def test_a_continued_answer_is_one_answer_and_its_thought_stays_what_it_was() -> None:
    page = shown(Asked("q"), RoundStarted(0), CARRIED, AnswerDelta("is blue."), Usage(50, 3), Finished("stop"), Ended("done"))
    assert page.text(f"{KEY}-0-answer-done").strip() == "halfis blue."
    assert page.text(f"{KEY}-0-thought-title") == "Thought3.5 s12 tokens" and page.open[f"{KEY}-0-thought"] is False
    whole = reply(RoundStarted(0), CARRIED, AnswerDelta("is blue."))
    assert (whole.thought, whole.answer) == ("The sky ", "halfis blue.")


def test_a_continued_thought_counts_on() -> None:
    half = CarriedOver("before", "The sky ", "", 3.5, 12)
    page = shown(Asked("q"), RoundStarted(0), half, ThoughtDelta("is"), Usage(50, 3, None, final=False))
    assert page.text(f"{KEY}-0-thought-text") == "The sky is"
    assert page.text(f"{KEY}-0-thought-title") == "Thinking5.0 s15 tokens"


# Servers that leak


def test_what_a_server_leaks_is_named_with_the_flag_that_mends_it() -> None:
    page = shown(
        Asked("q"), RoundStarted(0), ThoughtDelta("T"), AnswerDelta("<|tool_call_begin|>functions.f:0"), Finished("stop"), Ended("done")
    )
    assert "--tool-call-parser kimi_k2" in page.text(f"{KEY}-0-notes")
    page = shown(
        Asked("q"), RoundStarted(0), ThoughtDelta("T"), AnswerDelta("A"), Remark("no_reasoning_parser"), Finished("stop"), Ended("done")
    )
    assert "--reasoning-parser kimi_k2" in page.text(f"{KEY}-0-notes")
    assert f"{KEY}-0-notes" not in shown(Asked("q"), RoundStarted(0), AnswerDelta("A"), Finished("stop"), Ended("done")).html


def test_a_thought_that_goes_on_after_its_budget_is_folded_above_the_answer() -> None:
    begun = RoundStarted(0, {"thinking_token_budget": 5})
    late = AnswerDelta("more <b>thought</b>\n  indented</think>\n\n**A**")
    page = shown(Asked("q"), begun, ThoughtDelta("T"), late, Finished("stop"), Ended("done"))
    assert "went on with it in its answer" in page.text(f"{KEY}-0-notes")
    html = page.html[f"{KEY}-0-answer-done"]
    panel, _, answer = html.partition("</details>")
    assert answer == "<p><strong>A</strong></p>\n"
    assert "more &lt;b&gt;thought&lt;/b&gt;\n  indented</div>" in panel and '<details class="thought" data-state="done">' in panel
    assert "Thought that went on after its budget" in panel and "</think>" not in html


def test_without_a_budget_the_mark_stays_where_the_model_wrote_it() -> None:
    page = shown(Asked("q"), RoundStarted(0), ThoughtDelta("T"), AnswerDelta("more</think>A"), Finished("stop"), Ended("done"))
    assert page.text(f"{KEY}-0-answer-done").strip() == "more</think>A"


def test_a_limit_that_was_lowered_is_said_in_the_reply() -> None:
    lowered = Remark("max_tokens_lowered", {"wanted": "9,000", "sent": "8,100"})
    page = shown(Asked("q"), RoundStarted(0), lowered, AnswerDelta("A"), Finished("stop"), Ended("done"))
    assert page.text(f"{KEY}-0-notes").startswith("Max tokens was lowered from 9,000 to 8,100")


# Cost


def costs(tokens: int, piece: str, *, step: int = 5) -> Iterator[int]:
    """Bytes on the wire for each `step` tokens of a thought, as the event stream writes them."""
    view = RunView("x", EN)
    view.take(timed(Asked("q"), RoundStarted(0)))
    for number in range(0, tokens, step):
        at = number / 50
        entries = [Timed(at, ThoughtDelta(piece)) for _ in range(step)] + [Timed(at, Usage(9, number, number, final=False))]
        yield len(json.dumps(view.take(entries), ensure_ascii=False).encode())


def test_a_token_of_thought_costs_the_same_at_50_000_as_at_1_000(record_property: pytest.FixtureRequest) -> None:
    told = list(costs(50_000, " word"))
    per_token = {mark: sum(told[mark // 5 - 200 : mark // 5]) / 1_000 for mark in (1_000, 10_000, 50_000)}
    for mark, size in per_token.items():
        record_property(f"bytes_per_token_at_{mark}", round(size, 1))  # type: ignore[operator]
    assert per_token[50_000] <= 1.1 * per_token[1_000] and per_token[10_000] <= 1.1 * per_token[1_000]
    assert per_token[50_000] < 100


def answered(text: str, step: int = 20, rate: float = 100.0) -> tuple[Elements, list[int]]:
    view, page, sizes = RunView("x", EN), Elements(), []
    page.apply(view.take(timed(Asked("q"), RoundStarted(0))))
    for start in range(0, len(text), step):
        before = page.sent
        page.apply(view.take([Timed(2.0 + start / step / rate, AnswerDelta(text[start : start + step]))]))
        sizes.append(page.sent - before)
    return page, sizes


def test_a_long_block_of_code_is_not_sent_again_and_again() -> None:
    code = "".join(f"    line_{number} = {number}\n" for number in range(4_000))
    page, sizes = answered(f"Here:\n\n```python\n{code}")
    assert sum(sizes[-1_000:]) < 1.1 * 1_000 * 20  # what is new, once
    assert page.html[f"{KEY}-0-answer-code"].endswith("line_3998 = 3998\n    line_3999 = 3999")


def test_a_long_block_of_code_ends_where_its_fence_does() -> None:
    code = "".join(f"x{number} = '``` no fence'\n" for number in range(600))
    page, _ = answered(f"````py\n{code}```\n````\nAfter **it**.")
    done, tail = page.html[f"{KEY}-0-answer-done"], page.html[f"{KEY}-0-answer-tail"]
    assert done.count('<div class="code">') == 1 and "x599" in done and "hl-" in done
    assert tail == "<p>After <strong>it</strong>.</p>\n"


def test_a_long_list_is_sent_again_once_a_second_at_most() -> None:
    text = "".join(f"- point **{number}**\n" for number in range(2_000))
    _, sizes = answered(text)
    late = sizes[-500:]  # five seconds
    assert sum(1 for size in late if size) <= 6
