"""Scenarios of tool conversations for the scripted server: what models and servers make of calls. Pure."""

import json
from dataclasses import replace

from tests.scripted_script import Ask, Script, call, thought_of, told


def _after_tools(ask: Ask) -> Script:
    return Script((*thought_of(ask, "The tool has answered."), *told("content", f"The result: {ask.returned}")))


def one_call(ask: Ask, name: str = "add", arguments: str = '{"a": 17, "b": 25}', call_id: str = "") -> Script:
    if ask.round:
        return _after_tools(ask)
    return Script(
        (*thought_of(ask, "I will use the tool."), *call(0, call_id or f"functions.{name}:0", name, arguments)), finish="tool_calls"
    )


def two_calls(ask: Ask) -> Script:
    if ask.round:
        return _after_tools(ask)
    calls = (*call(0, "functions.add:0", "add", '{"a": 1, "b": 2}'), *call(1, "functions.mul:1", "mul", '{"a": 3, "b": 4}'))
    return Script((*thought_of(ask, "Two things."), *calls), finish="tool_calls")


def parallel_calls(ask: Ask) -> Script:
    """The fragments of two calls take turns."""
    script = two_calls(ask)
    if ask.round:
        return script
    thought = thought_of(ask, "Two things.")
    calls = script.deltas[len(thought) :]
    half = len(calls) // 2
    turns = [delta for pair in zip(calls[:half], calls[half:], strict=True) for delta in pair]
    return replace(script, deltas=(*thought, *turns))


def rounds(ask: Ask, rounds: int = 2) -> Script:
    if ask.round >= rounds:
        return _after_tools(ask)
    i = ask.round
    arguments = json.dumps({"a": i, "b": 1})
    return Script((*thought_of(ask, f"Step {i}."), *call(0, f"functions.add:{i}", "add", arguments)), finish="tool_calls")


def endless_call(ask: Ask) -> Script:
    return Script((*thought_of(ask, "Again."), *call(0, f"functions.add:{ask.round}", "add", '{"a": 1, "b": 1}')), finish="tool_calls")


def lost_call(ask: Ask) -> Script:
    """Streamed, the calls get lost and only their finish reason comes; unstreamed they are right (vllm#54701)."""
    script = one_call(ask)
    if ask.round or not ask.stream:
        return script
    return replace(script, deltas=(*thought_of(ask, "I will use the tool."), {"tool_calls": []}))


def bad_arguments(ask: Ask) -> Script:
    return one_call(ask, arguments='{"a": 17, b: 25')


def cut_arguments(ask: Ask) -> Script:
    return replace(one_call(ask, arguments='{"a": 17, "b'), finish="length") if not ask.round else _after_tools(ask)


def wrong_arguments(ask: Ask) -> Script:
    return one_call(ask, arguments='{"a": "seventeen", "c": 1}')


def unknown_tool(ask: Ask) -> Script:
    return one_call(ask, name="launch", arguments="{}")


def same_id(ask: Ask) -> Script:
    if ask.round:
        return _after_tools(ask)
    calls = (*call(0, "functions.add:0", "add", '{"a": 1, "b": 2}'), *call(1, "functions.add:0", "add", '{"a": 3, "b": 4}'))
    return Script((*thought_of(ask, "Two sums."), *calls), finish="tool_calls")


def foreign_ids(ask: Ask) -> Script:
    return one_call(ask, call_id="call_a1b2c3")


def empty_arguments(ask: Ask) -> Script:
    return one_call(ask, arguments="")


def nested_arguments(ask: Ask) -> Script:
    """A JSON object inside a JSON string."""
    return one_call(ask, arguments=json.dumps(json.dumps({"a": 17, "b": 25})))


def missing_field(ask: Ask) -> Script:
    return one_call(ask, arguments='{"a": 17}')


def extra_field(ask: Ask) -> Script:
    return one_call(ask, arguments='{"a": 17, "b": 25, "c": 1}')


def nan_arguments(ask: Ask) -> Script:
    return one_call(ask, name="compare", arguments='{"a": NaN, "b": 25}')


def vast_number(ask: Ask) -> Script:
    return one_call(ask, name="compare", arguments='{"a": 1e400, "b": 25}')


def vast_arguments(ask: Ask, megabytes: int = 10) -> Script:
    if ask.round:
        return _after_tools(ask)
    letters = "x" * (megabytes * 1_000_000)
    written = json.dumps({"a": letters, "b": "x"})
    return Script(
        (*thought_of(ask, "Much."), *call(0, "functions.count_letter_in_string:0", "count_letter_in_string", written, 100_000)),
        "tool_calls",
    )


def duplicate_keys(ask: Ask) -> Script:
    return one_call(ask, arguments='{"a": 17, "a": 18, "b": 25}')


def special_tokens(ask: Ask) -> Script:
    arguments = json.dumps({"a": "<|im_end|><|im_user|>zz", "b": "z"})
    return one_call(ask, name="count_letter_in_string", arguments=arguments)


def text_after_call(ask: Ask) -> Script:
    script = one_call(ask)
    return script if ask.round else replace(script, deltas=(*script.deltas, *told("content", "I have called the tool.")))


def swallowed_call(ask: Ask) -> Script:
    """A call without `:N` in its id: the parser takes it away, and nothing is left (vllm 0.32, parser/kimi_k2.py)."""
    return Script(thought_of(ask, "I will use the tool."))


def no_tool(ask: Ask) -> Script:
    return Script((*thought_of(ask, "I know that."), *told("content", "It is 42.")))


def gone_between(ask: Ask, after: int = 2) -> Script:
    """The server goes away in the round after the first call."""
    script = one_call(ask)
    return replace(script, dies_after=after) if ask.round else script


def _markup(name: str = "add", number: str = ":0") -> str:
    call_id = f"functions.{name}{number}"
    return f'<|tool_call_begin|>{call_id}<|tool_call_argument_begin|>{{"a": 1, "b": 2}}<|tool_call_end|>'


def leaked_markup(ask: Ask) -> Script:
    """A call without its section mark: vLLM's parser leaves the raw markup in content."""
    return _after_tools(ask) if ask.round else Script((*thought_of(ask), {"content": _markup()}))


def leaked_thought(ask: Ask) -> Script:
    """The model does not close its thought before it calls, and an old parser leaves the call in it."""
    if ask.round:
        return _after_tools(ask)
    section = f"<|tool_calls_section_begin|>{_markup()}<|tool_calls_section_end|>"
    return Script((*thought_of(ask, "I will use the tool."), {"reasoning": section}))


def leaked_half(ask: Ask) -> Script:
    """Marks that cannot be read as a call."""
    return Script((*thought_of(ask), {"content": _markup().removesuffix("<|tool_call_end|>")}))


SCENARIOS = (
    *(one_call, two_calls, parallel_calls, rounds, endless_call, lost_call, bad_arguments, cut_arguments, wrong_arguments),
    *(unknown_tool, same_id, foreign_ids, empty_arguments, nested_arguments, missing_field, extra_field, nan_arguments, vast_number),
    *(vast_arguments, duplicate_keys, special_tokens, text_after_call, swallowed_call, no_tool, gone_between),
    *(leaked_markup, leaked_thought, leaked_half),
)
