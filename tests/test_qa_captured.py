"""Judged replies on disk: a suite that grows, that people may edit, and that is never broken by what is added."""

from pathlib import Path
from typing import Any

import pytest

from kimi_demo.dialect.events import Problem
from kimi_demo.dialect.failure import Failure
from kimi_demo.dialect.images import SCHEME
from kimi_demo.dialect.reply import Call, Reply
from kimi_demo.qa.case import Case
from kimi_demo.qa.reading import find_suite
from kimi_demo.qa_captured import NAME, Captured, judged_case
from kimi_demo.tools.guide import GUIDE_TOOLS

HOSTILE = '- id: evil\n"quoted": {{x}} \u2028 \x07 # no\n\n  cases:\n- id: one\n\tend …  '


def reply(text: str = "Why?", **request: Any) -> Reply:
    return Reply(finish_reason="stop", request={"messages": [{"role": "user", "content": text}], **request})


def case(name: str, text: str = "Why?", look_for: str = "Is it kind?", *, good: bool = True, **request: Any) -> Case:
    return judged_case(reply(text, **request), name, text, good=good, about={"en": text, "zh": text}, look_for=look_for)


def cases(folder: Path) -> dict[str, Case]:
    return {each.id: each for each in find_suite(NAME, folder).cases}


def test_cases_are_added_and_one_that_is_judged_again_is_replaced(tmp_path: Path) -> None:
    captured = Captured(tmp_path)
    captured.keep(case("one"))
    captured.keep(case("one", look_for="Changed"))
    assert {name: each.manual for name, each in cases(tmp_path).items()} == {"one": "Changed"}
    captured.keep(case("two", HOSTILE, HOSTILE))
    captured.keep(case("three"))
    captured.keep(case("two", HOSTILE, "Changed too"))
    found = cases(tmp_path)
    assert list(found) == ["one", "three", "two"] and found["two"].manual == "Changed too"
    assert found["two"].messages == ({"role": "user", "content": HOSTILE},) and found["two"].about == {"en": HOSTILE, "zh": HOSTILE}


def test_what_somebody_wrote_into_the_file_stays(tmp_path: Path) -> None:
    Captured(tmp_path).keep(case("one"))
    path = tmp_path / f"{NAME}.yaml"
    path.write_text("# mine\n" + path.read_text().replace("cases:", "at_once: 1\ncases:\n- {id: own, ask: Hello}"))
    captured = Captured(tmp_path)
    captured.keep(case("two"))
    captured.keep(case("one", look_for="Changed"))
    assert path.read_text().startswith("# mine\n") and find_suite(NAME, tmp_path).at_once == 1
    assert {name: each.manual for name, each in cases(tmp_path).items()} == {"own": "", "two": "Is it kind?", "one": "Changed"}


@pytest.mark.parametrize("text", ["name: captured\ncases: 3\n", "name: captured\ntitle: x\ncases:\n  - {id: own, ask: x}\nabout: x\n"])
def test_a_file_that_cannot_take_a_case_is_left_as_it_is(tmp_path: Path, text: str) -> None:
    path = tmp_path / f"{NAME}.yaml"
    path.write_text(text)
    with pytest.raises(Failure) as failure:
        Captured(tmp_path).keep(case("one"))
    assert failure.value.code in ("qa.suite_wrong", "qa_page.not_captured") and path.read_text() == text
    assert list(tmp_path.iterdir()) == [path]


def test_a_bad_reply_expects_no_calls_and_what_cannot_be_asked_again_is_refused() -> None:
    made = reply(tools=[tool.schema() for tool in GUIDE_TOOLS])
    made.calls.append(Call(name="add", problems=()))
    judged = [judged_case(made, "a", "t", good=good, about="", look_for="x") for good in (True, False)]
    assert judged[0].checks.calls is not None and judged[1].checks.calls is None and all(each.tools for each in judged)
    made.calls.append(Call(name="add", problems=(Problem("a", "type", "x"),)))
    assert judged_case(made, "a", "t", good=True, about="", look_for="x").checks.calls is None
    picture = {"type": "image_url", "image_url": {"url": SCHEME + "a" * 64}}
    refused: dict[str, dict[str, Any]] = {
        "qa_page.captured_images": {"messages": [{"role": "user", "content": [picture]}]},
        "qa_page.captured_continued": {"messages": [{"role": "user", "content": "x"}, {"role": "assistant", "content": "y"}]},
        "qa_page.not_captured": {"messages": [{"role": "user", "content": "x"}], "tools": [{"function": {"name": "a b"}}]},
    }
    for code, request in refused.items():
        with pytest.raises(Failure, match=code):
            judged_case(Reply(request=request), "a", "t", good=True, about="", look_for="x")
    with pytest.raises(Failure, match="qa_page.not_captured"):
        judged_case(Reply(), "a", "t", good=True, about="", look_for="x")
