"""The chat template against what Kimi's own renders (the structure; tools as JSON)."""

from typing import Any

import pytest

WEATHER = {"type": "function", "function": {"name": "get_weather", "description": "Weather.", "parameters": {"type": "object"}}}
CALL: dict[str, Any] = {
    "id": "functions.get_weather:0",
    "type": "function",
    "function": {"name": "get_weather", "arguments": '{"location": "NYC"}'},
}
RESULT: dict[str, Any] = {"role": "tool", "tool_call_id": "functions.get_weather:0", "content": '{"t": 72}'}
CALLED = (
    "<|tool_calls_section_begin|><|tool_call_begin|>functions.get_weather:0<|tool_call_argument_begin|>"
    '{"location": "NYC"}<|tool_call_end|><|tool_calls_section_end|><|im_end|>'
    '<|im_system|>tool<|im_middle|>## Return of functions.get_weather:0\n{"t": 72}<|im_end|>'
)
OPEN = "<|im_assistant|>assistant<|im_middle|><think>"


def render(tokenizer: Any, messages: list[dict[str, Any]], **kwargs: Any) -> str:
    return str(tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True, **kwargs))


def test_one_question_opens_a_thought_and_has_no_default_system_prompt(kimi_tokenizer: Any) -> None:
    text = render(kimi_tokenizer, [{"role": "user", "content": "什么是大模型？"}])
    assert text == f"<|im_user|>user<|im_middle|>什么是大模型？<|im_end|>{OPEN}"


@pytest.mark.parametrize(("thinking", "tail"), [(False, "<think></think>"), (True, "<think>"), ("false", "<think>")])
def test_only_the_boolean_false_switches_thinking_off(kimi_tokenizer: Any, thinking: Any, tail: str) -> None:
    text = render(kimi_tokenizer, [{"role": "user", "content": "hi"}], thinking=thinking)
    assert text == f"<|im_user|>user<|im_middle|>hi<|im_end|><|im_assistant|>assistant<|im_middle|>{tail}"


def test_enable_thinking_is_ignored_as_by_kimi(kimi_tokenizer: Any) -> None:
    assert render(kimi_tokenizer, [{"role": "user", "content": "hi"}], enable_thinking=False).endswith("<think>")


@pytest.mark.parametrize("key", ["reasoning", "reasoning_content"])
def test_reasoning_is_kept_in_a_running_tool_loop(kimi_tokenizer: Any, key: str) -> None:
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": "weather NYC?"},
        {"role": "assistant", "content": "", key: "I should call the tool.", "tool_calls": [CALL]},
        RESULT,
    ]
    assert render(kimi_tokenizer, messages) == (
        f"<|im_user|>user<|im_middle|>weather NYC?<|im_end|>{OPEN}I should call the tool.</think>{CALLED}{OPEN}"
    )


@pytest.mark.parametrize("reasoning", [{}, {"reasoning": None}, {"reasoning_content": None, "reasoning": None}])
def test_missing_reasoning_is_empty_and_never_the_word_none(kimi_tokenizer: Any, reasoning: dict[str, Any]) -> None:
    called: dict[str, Any] = {"role": "assistant", "content": None, "tool_calls": [CALL], **reasoning}
    messages = [{"role": "user", "content": "weather?"}, called, RESULT]
    text = render(kimi_tokenizer, messages)
    assert "None" not in text and f"{OPEN}</think>{CALLED}" in text


def test_thoughts_before_the_last_answer_are_dropped(kimi_tokenizer: Any) -> None:
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": "weather?"},
        {"role": "assistant", "content": "", "reasoning": "old call", "tool_calls": [CALL]},
        RESULT,
        {"role": "assistant", "content": "72.", "reasoning": "old answer"},
        {"role": "user", "content": "again?"},
        {"role": "assistant", "content": "", "reasoning": "new call", "tool_calls": [CALL]},
        RESULT,
    ]
    text = render(kimi_tokenizer, messages)
    assert "old call" not in text and "old answer" not in text and f"{OPEN}new call</think>" in text


def test_instant_mode_drops_every_thought(kimi_tokenizer: Any) -> None:
    called: dict[str, Any] = {"role": "assistant", "content": "", "reasoning": "T", "tool_calls": [CALL]}
    messages = [{"role": "user", "content": "w?"}, called, RESULT]
    assert "T</think>" not in render(kimi_tokenizer, messages, thinking=False)


def test_tools_come_first_as_compact_json_before_the_system_message(kimi_tokenizer: Any) -> None:
    messages = [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "hi"}]
    assert render(kimi_tokenizer, messages, tools=[WEATHER]).startswith(
        "<|im_system|>tool_declare<|im_middle|>"
        '[{"type":"function","function":{"name":"get_weather","description":"Weather.","parameters":{"type":"object"}}}]<|im_end|>'
        "<|im_system|>system<|im_middle|>Be kind.<|im_end|><|im_user|>user<|im_middle|>hi<|im_end|>"
    )


def test_content_in_parts_and_names(kimi_tokenizer: Any) -> None:
    messages = [{"role": "user", "name": "anna", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}]
    assert render(kimi_tokenizer, messages) == f"<|im_user|>anna<|im_middle|>ab<|im_end|>{OPEN}"
