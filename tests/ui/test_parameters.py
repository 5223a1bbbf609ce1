"""The fields of the page as sampling parameters: what is valid goes through, what is not is named."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kimi_demo.dialect.failure import Failure
from kimi_demo.dialect.sampling import DEFAULT_PRESET, PRESETS, Sampling
from kimi_demo.ui.parameter_panel import Panel, preset_for
from kimi_demo.ui.parameters import CHAT_PRESETS, FIELDS, Field, from_fields, is_changed, is_taken, problem, sampling, saved_values
from kimi_demo.ui.texts import texts

BY_NAME = {field.name: field for field in FIELDS}


def shown(preset: str) -> dict[str, Any]:
    return {field.name: field.shown(PRESETS[preset].sampling) for field in FIELDS}


def test_every_field_is_one_of_samplings_and_has_its_words() -> None:
    # The thinking budget has a control of its own.
    assert {field.name for field in FIELDS} | {"thinking_token_budget"} == set(Sampling.model_fields) | {"thinking_token_budget"}
    for field in FIELDS:
        for part in ("label", "meaning"):
            assert texts("en").say(f"parameter.{field.name}.{part}") and texts("zh").say(f"parameter.{field.name}.{part}")


@pytest.mark.parametrize("preset", CHAT_PRESETS)
def test_the_fields_show_a_preset_and_give_it_back(preset: str) -> None:
    values = shown(preset)
    assert from_fields(preset, values) == PRESETS[preset].sampling
    assert not any(is_changed(field, values[field.name], preset) for field in FIELDS)


def test_what_the_fields_say_is_what_is_sent() -> None:
    values = shown(DEFAULT_PRESET) | {
        "max_tokens": 100.0,
        "top_k": "",
        "seed": " 7 ",
        "stop": "END\n\\n\\n\n",
        "presence_penalty": "0.5",
        "json_schema": '{"type": "object"}',
    }
    chosen = from_fields(DEFAULT_PRESET, values)
    assert (chosen.max_tokens, chosen.top_k, chosen.seed) == (100, None, 7), "an emptied field is left to the server"
    assert chosen.stop == ("END", "\n\n") and chosen.json_schema == {"type": "object"} and chosen.presence_penalty == 0.5
    assert {field.name for field in FIELDS if is_changed(field, values[field.name], DEFAULT_PRESET)} == {
        "max_tokens",
        "top_k",
        "seed",
        "stop",
        "presence_penalty",
        "json_schema",
    }


@pytest.mark.parametrize(
    ("name", "value", "code"),
    [
        ("max_tokens", None, "parameters.number"),
        ("max_tokens", 0, "parameters.at_least"),
        ("max_tokens", 1.5, "parameters.whole"),
        ("temperature", None, "parameters.number"),
        ("temperature", 2.1, "parameters.at_most"),
        ("temperature", float("nan"), "parameters.number"),
        ("top_p", 0, "parameters.above"),
        ("top_k", "-1", "parameters.at_least"),
        ("min_p", "1.1", "parameters.at_most"),
        ("seed", "-1", "parameters.at_least"),
        ("seed", "abc", "parameters.number"),
        ("seed", "1.5", "parameters.whole"),
        ("top_k", "9" * 40, "parameters.below"),
        ("stop", "x" * 201, "parameters.too_long"),
        ("stop", "\n".join("abcdefghijklmnopq"), "parameters.too_many"),
        ("presence_penalty", "3", "parameters.at_most"),
        ("repetition_penalty", "0", "parameters.above"),
        ("json_schema", "{", "schema.not_json"),
        ("json_schema", '{"type": "x"}', "schema.invalid"),
    ],
)
def test_a_bad_value_is_named_by_its_field(name: str, value: Any, code: str) -> None:
    found = problem(BY_NAME[name], value)
    assert found is not None and found.code == code and found.params.get("field", name) == name
    with pytest.raises(Failure):
        Panel.chosen([True, DEFAULT_PRESET, *(shown(DEFAULT_PRESET) | {name: value}).values()])


@pytest.mark.parametrize(
    ("name", "value", "english", "chinese"),
    [
        ("max_tokens", 4.5, 'max_tokens: "4.5" cannot be used (a whole number is needed).', "max_tokens：“4.5”不可用（需要填整数）。"),
        ("top_p", 3, 'top_p: "3" cannot be used (it must be at most 1).', "top_p：“3”不可用（不能大于 1）。"),
        ("seed", "x", 'seed: "x" cannot be used (a number is needed).', "seed：“x”不可用（需要填数字）。"),
        ("json_schema", "{", "a name in double quotes is missing", "缺少用双引号括起来的名称"),
    ],
)
def test_it_is_said_in_words_of_our_own_and_in_chinese(name: str, value: Any, english: str, chinese: str) -> None:
    found = problem(BY_NAME[name], value)
    assert found is not None and english in texts("en").sentence(found)
    assert chinese in texts("zh").sentence(found) and "Input" not in texts("zh").sentence(found)


def test_an_unknown_preset_is_named() -> None:
    with pytest.raises(Failure, match="parameters.preset"):
        sampling("no such")
    with pytest.raises(Failure, match="parameters.preset"):
        from_fields("no such", {})


JSON: Any = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(["preset", "thinking", "values", *BY_NAME]) | st.text(), inner),
    max_leaves=20,
)


@given(JSON)
def test_whatever_the_browser_kept_the_page_comes_up_with_valid_fields(saved: object) -> None:
    preset, thinking, values = saved_values(saved)
    assert preset in CHAT_PRESETS and isinstance(thinking, bool) and list(values) == list(BY_NAME)
    assert isinstance(from_fields(preset, values), Sampling)


@given(st.dictionaries(st.sampled_from(sorted(BY_NAME)), JSON))
def test_any_fields_are_parameters_or_a_named_failure(values: dict[str, Any]) -> None:
    try:
        assert isinstance(from_fields(DEFAULT_PRESET, values), Sampling)
    except Failure as failure:
        assert failure.code.startswith(("parameters.", "schema."))


def test_what_was_saved_comes_back_and_one_bad_value_does_not_spoil_the_others() -> None:
    kept = {"preset": "moonshot_instant", "thinking": True, "values": {"temperature": 0.9, "top_p": 7, "stop": "END", "gone": 1}}
    preset, thinking, values = saved_values(kept)
    assert (preset, thinking) == ("moonshot_instant", True)
    assert (values["temperature"], values["top_p"], values["stop"]) == (0.9, 0.95, "END")


@pytest.mark.parametrize(
    ("name", "kinds"),
    [("temperature", {"vllm", "openai"}), ("top_k", {"vllm"}), ("max_tokens", {"vllm", "openai", "moonshot"})],
)
def test_what_a_kind_of_server_takes(name: str, kinds: set[str]) -> None:
    field: Field = BY_NAME[name]
    assert {kind for kind in ("vllm", "openai", "moonshot") if is_taken(field, kind)} == kinds
    assert is_taken(field, None), "nothing is taken away before it is known"


def test_a_preset_for_the_other_mode_is_offered() -> None:
    assert preset_for(False, "guide_thinking") == "moonshot_instant"
    assert preset_for(True, "moonshot_instant") == "guide_thinking"
    assert preset_for(True, "moonshot_thinking") is None and preset_for(False, "moonshot_instant") is None
