"""Conversations as files, out and back in."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kimi_demo.dialect.failure import Failure
from kimi_demo.dialect.transcript import Transcript, Turn, as_json, as_markdown, read

HEADINGS = {"you": "You", "model": "Model", "thought": "Thought", "system": "System prompt"}
TEXT = st.text(st.characters(codec="utf-8"), max_size=40)


def refused(value: Any) -> Failure:
    with pytest.raises(Failure) as raised:
        read(value if isinstance(value, str | bytes) else json.dumps(value))
    return raised.value


@given(TEXT, TEXT, st.lists(st.tuples(TEXT.filter(str.strip), TEXT, TEXT), min_size=1, max_size=5))
def test_what_is_exported_comes_back_as_it_was(title: str, system: str, turns: list[tuple[str, str, str]]) -> None:
    known = Transcript(title, [Turn(*turn) for turn in turns], system if system.strip() else "")
    assert read(as_json(known)) == known


def test_the_messages_are_openais_and_nothing_else() -> None:
    known = Transcript("T", [Turn("q", "t", "a", {"model": "m"}), Turn("unanswered")], "Be brief.")
    value = json.loads(as_json(known))
    assert value["messages"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "q"},
        {"role": "assistant", "content": "a", "reasoning": "t"},
        {"role": "user", "content": "unanswered"},
    ]
    assert value["replies"] == [{"message": 2, "model": "m"}]
    assert read(json.dumps(value["messages"])).turns == [Turn("q", "t", "a"), Turn("unanswered")]


def test_images_are_part_of_the_file_and_come_back() -> None:
    urls = ("data:image/png;base64,AAAA", "data:image/jpeg;base64,BBBB")
    known = Transcript("T", [Turn("what?", "", "a", images=urls), Turn("", "", "b", images=urls[:1])])
    messages = json.loads(as_json(known))["messages"]
    assert messages[0]["content"] == [
        *({"type": "image_url", "image_url": {"url": url}} for url in urls),
        {"type": "text", "text": "what?"},
    ]
    assert messages[2]["content"] == [{"type": "image_url", "image_url": {"url": urls[0]}}]
    assert read(as_json(known)) == known
    text = as_markdown(known, **HEADINGS).decode()
    assert f"## You\n\n![]({urls[0]})\n\n![]({urls[1]})\n\nwhat?\n\n## Model\n\na\n\n## You\n\n![]({urls[0]})\n\n## Model" in text


def test_half_a_surrogate_pair_is_written_and_read() -> None:
    data = as_json(Transcript("T", [Turn("q", "", "\ud83d half")]))
    assert b"\\ud83d half" in data
    assert read(data).turns[0].answer == "\ufffd half"


def test_other_programs_shapes_are_read() -> None:
    found = read(
        json.dumps(
            [
                {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], "name": "x"},
                {"role": "assistant", "content": "c", "reasoning_content": "t", "refusal": None},
            ]
        )
    )
    assert found.turns == [Turn("ab", "t", "c")] and found.title == ""


@pytest.mark.parametrize(
    ("messages", "code", "params"),
    [
        (
            [{"role": "user"}, {"role": "bot", "content": "y"}],
            "chat_import.field",
            {"index": "0", "place": "content", "problem": "no text"},
        ),
        (
            [{"role": "user", "content": "x"}, {"role": "bot"}],
            "chat_import.field",
            {"index": "1", "place": "role", "problem": "must be system, user or assistant"},
        ),
        (
            [{"role": "user", "content": [{"type": "text"}]}],
            "chat_import.field",
            {"index": "0", "place": "content.0.text", "problem": "it is missing"},
        ),
        (
            [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "http://e.invalid/x.png"}}]}],
            "chat_import.field",
            {"index": "0", "place": "content.0.image_url.url", "problem": "only images that are part of the file are taken"},
        ),
        (
            [{"role": "user", "content": [{"type": "audio", "audio": "x"}]}],
            "chat_import.field",
            {"index": "0", "place": "content.0", "problem": "only text and images are taken"},
        ),
        (
            [{"role": "user", "content": 7}],
            "chat_import.field",
            {"index": "0", "place": "content", "problem": "text is needed"},
        ),
        (
            ["hello"],
            "chat_import.message",
            {"index": "0", "problem": "an object is needed"},
        ),
        ([{"role": "user", "content": "x"}, {"role": "system", "content": "s"}], "chat_import.late_system", {"index": "1"}),
        ([{"role": "assistant", "content": "x"}], "chat_import.no_question", {"index": "0"}),
        (
            [{"role": "user", "content": "x"}, {"role": "assistant", "content": "1"}, {"role": "assistant", "content": "2"}],
            "chat_import.no_question",
            {"index": "2"},
        ),
        ([], "chat_import.empty", {}),
        ([{"role": "user", "content": "x"}] * 1001, "chat_import.too_many", {"turns": "1001", "limit": "1000"}),
    ],
)
def test_a_mistake_is_named_by_its_message(messages: list[Any], code: str, params: dict[str, str]) -> None:
    failure = refused({"messages": messages})
    assert (failure.code, failure.params) == (code, params)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "chat_import.not_json"),
        ('{"messages": [}', "chat_import.not_json"),
        (b"\xff\xfe\xfa", "chat_import.not_json"),
        ("{}", "chat_import.shape"),
        ("12", "chat_import.shape"),
        ('{"messages": "x"}', "chat_import.shape"),
        ("[" * 100_000, "chat_import.shape"),
        ("1" * 10_000, "chat_import.shape"),
    ],
)
def test_what_is_no_conversation_is_refused_in_words(text: str | bytes, code: str) -> None:
    assert refused(text).code == code


def test_a_thought_cannot_end_its_quotation() -> None:
    known = Transcript("T", [Turn("q", "one\n\n# two\n</details>", "answer")], about={"Model": "Kimi"})
    text = as_markdown(known, **HEADINGS).decode()
    assert "> **Thought**\n>\n> one\n>\n> # two\n> </details>\n\nanswer" in text
    assert text.startswith("# T\n\n## You\n\nq\n\n## Model\n\n") and text.endswith("---\n\nModel: Kimi  \n")
