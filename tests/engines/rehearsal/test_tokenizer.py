"""Which tokens are special decides what survives in vLLM's text."""

from typing import Any

import pytest

from kimi_demo.engines.rehearsal.tokenizer import TEXT_MARKS, TURN_MARKS


@pytest.mark.parametrize("mark", [*TURN_MARKS, *TEXT_MARKS, "<|im_end|>"])
def test_a_mark_is_one_token(kimi_tokenizer: Any, mark: str) -> None:
    assert len(kimi_tokenizer.encode(f"a{mark}b", add_special_tokens=False)) == 3


@pytest.mark.parametrize("mark", TEXT_MARKS)
def test_thought_and_tool_marks_survive_skipping_special_tokens(kimi_tokenizer: Any, mark: str) -> None:
    assert kimi_tokenizer.decode(kimi_tokenizer.encode(mark), skip_special_tokens=True) == mark


@pytest.mark.parametrize("mark", [*TURN_MARKS, "<|im_end|>"])
def test_turn_marks_do_not(kimi_tokenizer: Any, mark: str) -> None:
    assert kimi_tokenizer.decode(kimi_tokenizer.encode(mark), skip_special_tokens=True) == ""


def test_no_begin_token_and_the_turn_end_ends(kimi_tokenizer: Any) -> None:
    assert kimi_tokenizer.encode("x") == kimi_tokenizer.encode("x", add_special_tokens=False)
    assert kimi_tokenizer.eos_token == "<|im_end|>" and kimi_tokenizer.eos_token_id == 2


@pytest.mark.parametrize("text", ["9.11", "it's 42!", "草莓 🍓\n\tx", "  two  spaces "])
def test_text_comes_back_as_it_was(kimi_tokenizer: Any, text: str) -> None:
    assert kimi_tokenizer.decode(kimi_tokenizer.encode(text)) == text


def test_every_digit_is_a_token(kimi_tokenizer: Any) -> None:
    assert len(kimi_tokenizer.encode("1234567")) == 7
