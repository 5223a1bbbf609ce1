"""The verdicts themselves: for each check, a server that breaks just that rule fails just that check, and a right one passes."""

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from kimi_demo.qa.judging import CHECKS
from tests.qa.playing import Play, kimi_template, one_case, outcomes, playing, run_suite, with_template
from tests.scripted_scenarios import rejected
from tests.scripted_script import Ask, Refusal, Script, call, thought_of, told
from tests.scripted_server import Scripted

Template = Callable[[dict[str, Any]], str]


def says(answer: str, thought: str = "Hm.", **fields: Any) -> Play:
    return lambda ask: Script((*thought_of(ask, thought), *told("content", answer)), **fields)


def calls(*made: tuple[str, str, str], after: str = "The result is 42.", finish: str = "tool_calls") -> Play:
    """(id, name, arguments) each, and the answer once the tools have returned."""

    def play(ask: Ask) -> Script:
        if ask.round:
            return Script((*thought_of(ask, "Done."), *told("content", after)))
        deltas = [delta for i, (call_id, name, arguments) in enumerate(made) for delta in call(i, call_id, name, arguments)]
        return Script((*thought_of(ask, "I will call."), *deltas), finish=finish)

    return play


ADD = ("functions.add:0", "add", '{"a": 17, "b": 25}')
GOOD_CALL = calls(ADD)


def lost_in_stream(ask: Ask) -> Script:
    if ask.stream and not ask.round:
        return Script((*thought_of(ask, "I will call."), {"tool_calls": []}), finish="tool_calls")
    return GOOD_CALL(ask)  # type: ignore[return-value]


def only_streamed_thinks(ask: Ask) -> Script:
    return Script((*(thought_of(ask, "Hm.") if ask.stream else ()), *told("content", "Blue.")))


def only_streamed_says(ask: Ask) -> Script:
    return Script((*thought_of(ask, "Hm."), *told("content", "Blue." if ask.stream else "Green.")))


def another_every_time() -> Play:
    numbers = itertools.count()
    return lambda ask: GOOD_CALL(ask) if ask.round else calls(("functions.add:0", "add", f'{{"a": {next(numbers)}, "b": 25}}'))(ask)


def no_history(body: dict[str, Any]) -> str:
    return kimi_template({**body, "messages": [{**m, "reasoning": ""} for m in body["messages"]]})


def other_marks(ask: Ask) -> Script:
    other = "AAA-1" if "BBB-2" in str(ask.body["messages"]) else "BBB-2"
    return Script((*thought_of(ask, "Hm."), *told("content", other)))


@dataclass
class Break:
    """case: with the one check that is meant, beside others that must stay good. bad, bad_server, bad_template: what breaks its rule."""

    case: dict[str, Any]
    good: Play
    bad: Play | None = None
    bad_server: dict[str, Any] = field(default_factory=dict)
    bad_template: Template | None = None


def refuses(ask: Ask) -> Refusal:
    return rejected(ask)


CHAT = {"ask": "Name a colour."}
SUM = {"ask": "What is 17 + 25?", "tools": ["add", "mul"]}
RENDER = {"ask": "hi", "mode": "render"}
ALWAYS = {"closed": True, "no_leaks": True}

BREAKS: dict[str, Break] = {
    "answered": Break(CHAT | {"checks": ALWAYS}, says("Blue."), refuses),
    "fails_with": Break(CHAT | {"checks": {"fails_with": "endpoint.rejected"}}, refuses, says("Blue.")),
    "thought_present": Break(CHAT | {"checks": ALWAYS | {"thought": "present"}}, says("Blue."), says("Blue.", thought="")),
    "thought_absent": Break(
        CHAT | {"mode": "instant", "checks": ALWAYS | {"thought": "absent"}},
        says("Blue."),
        lambda ask: Script((*told("reasoning", "Hm."), *told("content", "Blue."))),
    ),
    "closed": Break(CHAT | {"checks": ALWAYS | {"thought": "present"}}, says("Blue."), says("", finish="length")),
    "no_leaks": Break(
        CHAT | {"checks": ALWAYS | {"answer": {"contains": "blue"}}}, says("Blue."), says("So it is blue.</think>Blue.", thought="")
    ),
    "contains": Break(CHAT | {"checks": ALWAYS | {"answer": {"contains": ["blue", "sky"]}}}, says("The SKY is blue."), says("Blue.")),
    "any_of": Break(CHAT | {"checks": {"answer": {"any_of": ["blue", "蓝"]}}}, says("蓝色。"), says("Red.")),
    "excludes": Break(CHAT | {"checks": {"answer": {"excludes": "red"}}}, says("Blue."), says("Blue, not red.")),
    "matches": Break(CHAT | {"checks": {"answer": {"matches": "^[A-Z]\\w+\\.$"}}}, says("Blue."), says("It is blue.")),
    "equals": Break(CHAT | {"checks": {"answer": {"equals": "Blue."}}}, says(" Blue.\n"), says("Blue!")),
    "larger": Break(CHAT | {"checks": {"answer": {"larger": [9.9, 9.11]}}}, says("9.9 is larger."), says("9.9 is less than 9.11.")),
    "json": Break(
        CHAT | {"checks": {"answer": {"json_schema": {"type": "object", "required": ["c"]}}}}, says('{"c": 1}'), says('{"d": NaN}')
    ),
    "empty": Break(CHAT | {"checks": {"answer": {"empty": True}}}, says(" \n"), says("Blue.")),
    "not_empty": Break(CHAT | {"checks": {"answer": {"empty": False}}}, says("Blue."), says(" ")),
    "call_count": Break(SUM | {"checks": {"calls": {"count": 1, "valid": True}}}, GOOD_CALL, calls(ADD, ("functions.mul:1", *ADD[1:]))),
    "first_round": Break(SUM | {"checks": {"calls": {"first_round": 1}}}, GOOD_CALL, says("42")),
    "tool_choice": Break(SUM | {"checks": {"calls": {"tools": "add", "count": 1}}}, GOOD_CALL, calls(("functions.mul:0", "mul", ADD[2]))),
    "arguments": Break(
        SUM | {"checks": {"calls": {"arguments": {"a": 17, "b": 25.0}, "tools": "add"}}},
        GOOD_CALL,
        calls(("functions.add:0", "add", '{"a": 17, "b": 26}')),
    ),
    "valid_arguments": Break(
        SUM | {"checks": {"calls": {"valid": True, "tools": "add"}}}, GOOD_CALL, calls(("functions.add:0", "add", '{"a": "x", "b": 1}'))
    ),
    "kimi_ids": Break(SUM | {"checks": {"calls": {"kimi_ids": True, "valid": True}}}, GOOD_CALL, calls(("call_a1b2", *ADD[1:]))),
    "argument_length": Break(
        SUM | {"checks": {"calls": {"chars_at_least": 18}}}, GOOD_CALL, calls(("functions.add:0", "add", '{"a":1,"b":2}'))
    ),
    "calls_arrive": Break(SUM | {"checks": ALWAYS | {"calls_arrive": True, "calls": {"count": 1}}}, GOOD_CALL, lost_in_stream),
    "agrees": Break(SUM | {"checks": {"agrees": True, "calls": {"count": 1}}}, GOOD_CALL, calls(ADD, after="The result is 43.")),
    "finish": Break(CHAT | {"checks": ALWAYS | {"finish": "stop"}}, says("Blue."), says("Blue.", finish="length")),
    "prompt_tokens": Break(
        CHAT | {"checks": {"tokens": {"prompt": 8}}},
        says("Blue."),
        # Another template: a system prompt that nobody asked for.
        bad=lambda ask: _with_longer_prompt(ask, "Blue."),
    ),
    "completion_tokens": Break(
        CHAT | {"checks": {"tokens": {"completion_at_most": 6}}}, says("Blue."), says("It is blue, and so on, and on.")
    ),
    "reasoning_counted": Break(
        CHAT | {"checks": {"thought": "present", "tokens": {"reasoning_counted": True}}},
        says("Blue."),
        says("Blue.", counts_reasoning=False),
    ),
    "model_path": Break(
        {"mode": "models", "checks": {"model": {"path": True, "context": True}}}, says(""), says(""), {"model_ids": ["kimi"]}
    ),
    "model_context": Break(
        {"mode": "models", "checks": {"model": {"path": True, "context": True}}}, says(""), says(""), {"max_model_len": None}
    ),
    "prompt_contains": Break(
        RENDER | {"checks": {"prompt": {"contains": "<|im_middle|>hi<|im_end|>", "ends_with": "<think>"}}},
        says(""),
        bad_template=lambda body: kimi_template(body).replace("<|im_end|>", "\n<|im_end|>\n"),
    ),
    "prompt_excludes": Break(
        RENDER | {"checks": {"prompt": {"excludes": "You are", "ends_with": "<think>"}}},
        says(""),
        bad_template=lambda body: "You are Kimi." + kimi_template(body),
    ),
    "prompt_ends": Break(
        RENDER | {"checks": {"prompt": {"contains": "hi", "ends_with": "<think>"}}},
        says(""),
        bad_template=lambda body: kimi_template(body).removesuffix("<think>"),
    ),
    "history_kept": Break(SUM | {"checks": ALWAYS | {"history_kept": True}}, GOOD_CALL, bad_template=no_history),
    "not_mixed_up": Break(
        {"ask": "Repeat {{mark}}", "each": [{"mark": "AAA-1"}, {"mark": "BBB-2"}], "checks": ALWAYS | {"not_mixed_up": True}},
        lambda ask: Script((*thought_of(ask, "Hm."), *told("content", str(ask.body["messages"][-1]["content"])))),
        other_marks,
    ),
    "first_token_time": Break(
        CHAT | {"checks": {"time": {"first_token_s": 2, "strict": True}}}, says("Blue."), says("Blue.", silence_s=2.1)
    ),
    "total_time": Break(CHAT | {"checks": {"time": {"total_s": 2}}}, says("Blue."), says("Blue.", silence_s=2.1)),
    "same_structure": Break(CHAT | {"stream": "both", "checks": ALWAYS | {"same_structure": True}}, says("Blue."), only_streamed_thinks),
    "same_text": Break(
        CHAT | {"stream": "both", "checks": ALWAYS | {"same_structure": True, "same_text": True}}, says("Blue."), only_streamed_says
    ),
    "same_tool": Break(
        SUM | {"repeats": 3, "checks": {"same_tool": True, "calls": {"tools": "add"}}},
        GOOD_CALL,
        another_every_time(),
    ),
}

WARNINGS = {"total_time", "same_text"}


def _with_longer_prompt(ask: Ask, answer: str) -> Script:
    ask.body["messages"] = [{"role": "system", "content": "You are Kimi."}, *ask.body["messages"]]
    return Script((*thought_of(ask, "Hm."), *told("content", answer)))


def test_every_check_is_here() -> None:
    """`prompt` (a server that does not render) and `manual` (a person) cannot fail by what a server does."""
    assert set(BREAKS) == set(CHECKS) - {"prompt", "manual"}


@pytest.mark.parametrize("check", BREAKS)
async def test_a_right_server_passes(check: str, server: Scripted, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = BREAKS[check]
    with_template(monkeypatch, kimi_template)
    with playing(server, broken.good) as scripted:
        report = await run_suite(scripted, one_case(**broken.case))
    for case in report.cases:
        assert set(outcomes(case).values()) == {"pass"}, case.checks
        assert case.state == "pass" and check in outcomes(case)
    assert not report.failed and not report.could_not_run


@pytest.mark.parametrize("check", BREAKS)
async def test_a_server_that_breaks_the_rule_fails_that_check_and_no_other(
    check: str, server: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = BREAKS[check]
    with_template(monkeypatch, broken.bad_template or kimi_template)
    with playing(server, broken.bad or broken.good, **broken.bad_server) as scripted:
        report = await run_suite(scripted, one_case(**broken.case))
    expected = "warn" if check in WARNINGS else "fail"
    for case in report.cases:
        assert {name for name, outcome in outcomes(case).items() if outcome != "pass"} == {check}, case.checks
        assert outcomes(case)[check] == expected and case.state == expected
        shown = next(each for each in case.checks if each.check == check)
        assert shown.expected or shown.got
    assert report.failed == (expected == "fail")


async def test_what_a_server_does_not_show_is_left_out(server: Scripted, monkeypatch: pytest.MonkeyPatch) -> None:
    with playing(server, says("Blue."), missing={"/tokenize"}) as scripted:
        report = await run_suite(scripted, one_case(**RENDER, checks={"prompt": {"ends_with": "<think>"}, "tokens": {"prompt": 3}}))
    assert outcomes(report.cases[0]) == {"answered": "pass", "prompt": "skip", "prompt_tokens": "skip"}
    assert report.cases[0].state == "pass" and not report.failed
