"""The same question many times."""

import json

from kimi_demo.dialect.conversation import ChatRequest, user
from kimi_demo.dialect.events import Attempt, Usage
from kimi_demo.dialect.sampling import PRESETS
from kimi_demo.tools.attempts import attempted, tallied
from kimi_demo.tools.guide import GUIDE_TOOLS
from kimi_demo.tools.toolbox import Toolbox
from tests.tools.scripted_port import ScriptedPort, calls, says

ADD = ("functions.add:0", "add", {"a": 2, "b": 3})


def made(number: int, *given: tuple[str, str], answer: str = "") -> Attempt:
    return Attempt(number, tuple((name, arguments, 0) for name, arguments in given), answer)


def test_the_same_calls_are_counted_together_however_they_are_written() -> None:
    attempts = [
        made(3, ("add", '{"a":1, "b":2}')),
        made(0, ("mul", '{"a":1, "b":2}')),
        made(2, ("add", '{"b": 2, "a": 1}')),
        made(1),
    ]
    assert [(tally.numbers, [call[0] for call in tally.calls]) for tally in tallied(attempts)] == [
        ((2, 3), ["add"]),
        ((0,), ["mul"]),
        ((1,), []),
    ]
    assert tallied([]) == []


def test_another_order_other_arguments_or_one_call_more_are_another_way() -> None:
    one, two = ("add", '{"a": 1}'), ("add", '{"a": 2}')
    assert len(tallied([made(0, one), made(1, two), made(2, one, two), made(3, two, one), made(4, ("add", '{"a": 1.0}'))])) == 5


async def attempt(*replies: list) -> Attempt:  # type: ignore[type-arg]
    request = ChatRequest([user("?")], PRESETS["tools"].sampling)
    return await attempted(ScriptedPort(replies), request, Toolbox(GUIDE_TOOLS, limit_s=60), 4, max_rounds=3)


async def test_an_attempt_is_a_whole_conversation() -> None:
    made = await attempt([*calls(ADD)[:-1], Usage(10, 5), calls(ADD)[-1]], [*says("5")[:-1], Usage(20, 2), says("5")[-1]])
    assert (made.number, made.answer, made.rounds, made.tokens, made.error) == (4, "5", 2, 7, None)
    assert [(name, json.loads(arguments), index) for name, arguments, index in made.calls] == [("add", {"a": 2, "b": 3}, 0)]


async def test_a_failure_is_part_of_the_attempt() -> None:
    made = await attempt(*[calls((f"functions.add:{i}", "add", {"a": i, "b": 3})) for i in range(3)])
    assert (made.error, made.error_params, made.rounds, len(made.calls)) == ("tools.max_rounds", {"limit": "3"}, 3, 3)
