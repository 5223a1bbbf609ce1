"""The texts: same keys and same placeholders in every language, and every key that the code names exists."""

import re
import string
from pathlib import Path

import pytest

from kimi_demo.dialect.failure import Failure
from kimi_demo.ui.texts import LANGUAGES, texts

PACKAGE = Path(__file__).parents[2] / "kimi_demo"
SOURCES = {path: path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py")}


def fields(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name is not None}


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_language_has_the_same_keys_and_placeholders(language: str) -> None:
    english, other = texts("en").strings, texts(language).strings
    assert set(other) == set(english)
    assert {key: fields(text) for key, text in other.items()} == {key: fields(text) for key, text in english.items()}


def test_chinese_is_chinese() -> None:
    """A Chinese text without a Chinese character is one that was not translated (names and numbers apart)."""
    same = {key for key, text in texts("zh").strings.items() if not re.search(r"[\u4e00-\u9fff]", text)}
    assert same <= {"page.title", "batch.column.row"}


def test_every_failure_that_is_raised_has_both_sentences() -> None:
    codes = {code for source in SOURCES.values() for code in re.findall(r"Failure\(\s*\"([a-z_.]+)\"", source)}
    assert len(codes) > 30
    missing = {f"failure.{code}.{part}" for code in codes for part in ("what", "hint")} - set(texts("en").strings)
    assert not missing


def test_every_text_that_is_said_exists() -> None:
    said = {key for source in SOURCES.values() for key in re.findall(r"\bsay\(\s*\"([a-z_.]+)\"", source)}
    assert len(said) > 40
    assert not said - set(texts("en").strings)


def test_every_phase_that_is_told_exists() -> None:
    told = {name for source in SOURCES.values() for name in re.findall(r"\bPhase\(\s*\"([a-z_.]+)\"", source)}
    assert told
    assert not {f"phase.{name}" for name in told} - set(texts("en").strings)


def test_a_failure_is_told_with_its_parameters() -> None:
    failure = Failure("batch.too_many_rows", rows=12, limit=10)
    assert texts("en").sentence(failure) == "12 prompts are more than the limit of 10. Split them into several batches."
    held = Failure("accelerators.held", holder="chat")
    assert texts("en").failure(held.code, held.params)[0] == "The GPUs are in use by the chat server."
    assert texts("zh").failure(held.code, held.params)[0] == "GPU 正被聊天服务占用。"


@pytest.mark.parametrize("language", LANGUAGES)
def test_half_a_surrogate_pair_in_a_failure_can_be_sent(language: str) -> None:
    for text in texts(language).failure("own_tools.name", {"name": "\ud800x"}):
        text.encode()


def test_a_missing_key_is_an_error() -> None:
    with pytest.raises(KeyError):
        texts("en").say("no.such.key")
