"""Arguments held against strangers' schemas: the worker finds what jsonschema finds, and survives what is meant to hurt it."""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from kimi_demo.dialect.events import Problem
from kimi_demo.dialect.failure import Failure
from kimi_demo.tools.schema_checker import SchemaChecker
from kimi_demo.tools.tool import SchemaTool
from kimi_demo.tools.toolbox import Toolbox

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "minLength": 1},
        "days": {"type": "integer", "minimum": 1, "maximum": 9},
        "unit": {"enum": ["c", "f"]},
        "many": {"type": "array", "items": {"type": "number"}},
    },
    "required": ["city"],
    "additionalProperties": False,
}
EXPLODES = {"type": "object", "properties": {"a": {"type": "string", "pattern": "^(a+)+$"}}}
EXPLODING = json.dumps({"a": "a" * 40 + "b"})


@pytest_asyncio.fixture
async def checker() -> AsyncIterator[SchemaChecker]:
    checker = SchemaChecker()
    yield checker
    await checker.aclose()


@pytest.mark.parametrize(
    ("arguments", "problems"),
    [
        ({"city": "Beijing", "days": 3, "unit": "c", "many": [1, 2.5]}, []),
        ({}, [("city", "required", "is missing")]),
        ({"city": 5}, [("city", "type", "must be a string (got 5)")]),
        ({"city": "x", "days": "3"}, [("days", "type", 'must be an integer (got "3")')]),
        ({"city": "x", "days": 10}, [("days", "maximum", "must be at most 9 (got 10)")]),
        ({"city": "x", "unit": "k"}, [("unit", "enum", 'must be one of "c", "f" (got "k")')]),
        ({"city": ""}, [("city", "minLength", "must have at least 1 characters (has 0)")]),
        ({"city": "x", "many": [1, "2"]}, [("many.1", "type", 'must be a number (got "2")')]),
        ({"city": "x", "zip": 1, "day": 2}, [("zip", "additionalProperties", "is not a parameter of this tool"),
                                            ("day", "additionalProperties", "is not a parameter of this tool")]),
    ],
)  # fmt: skip
async def test_problems_are_told_in_the_words_of_json(
    checker: SchemaChecker, arguments: dict[str, Any], problems: list[tuple[str, str, str]]
) -> None:
    assert await checker.problems(json.dumps(SCHEMA), json.dumps(arguments)) == tuple(Problem(*each) for each in problems)


async def test_what_no_float_can_hold_is_a_problem(checker: SchemaChecker) -> None:
    assert [each.where for each in await checker.problems(json.dumps(SCHEMA), '{"city": "x", "many": [1e400]}')] == ["many.0"]


async def test_a_pattern_that_explodes_is_ended_and_the_next_call_is_served(checker: SchemaChecker) -> None:
    began = time.monotonic()
    exploding = [asyncio.create_task(checker.problems(json.dumps(EXPLODES), EXPLODING)) for _ in range(3)]
    assert await checker.problems(json.dumps(EXPLODES), '{"a": "aaa"}') == ()
    for task in exploding:
        with pytest.raises(Failure) as raised:
            await task
        assert raised.value.code == "tool_schema.too_slow"
    assert time.monotonic() - began < 60
    assert await checker.problems(json.dumps(EXPLODES), '{"a": "aaa"}') == ()


async def test_a_caller_who_goes_away_leaves_no_answer_behind_for_the_next(checker: SchemaChecker) -> None:
    await asyncio.gather(*(checker.read(json.dumps(SCHEMA)) for _ in range(2)))  # the workers are there
    for _ in range(2):
        task = asyncio.create_task(checker.problems(json.dumps(EXPLODES), EXPLODING))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    answers = await asyncio.gather(
        *(checker.problems(json.dumps(SCHEMA), json.dumps({"city": "x", "days": day})) for day in (1, 10, 2, 11))
    )
    assert [len(each) for each in answers] == [0, 1, 0, 1]


async def test_the_worker_has_no_secrets_and_ends_with_the_checker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KIMI_DEMO_API_KEY", "sk-secret")
    checker = SchemaChecker()
    await checker.read('{"type": "object"}')
    (process,) = checker._all
    assert b"sk-secret" not in environment(process.pid)
    await checker.aclose()
    assert process.returncode is not None


async def test_a_schema_comes_back_or_says_where_it_is_wrong(checker: SchemaChecker) -> None:
    assert await checker.read(json.dumps(SCHEMA)) == SCHEMA
    with pytest.raises(Failure) as raised:
        await checker.read('{"type": "object",\n"$ref": "http://127.0.0.1/x"}')
    assert (raised.value.code, raised.value.params["line"]) == ("tool_schema.remote", "2")


def environment(pid: int) -> bytes:
    """Of a process, as the system knows it."""
    path = Path(f"/proc/{pid}/environ")
    return path.read_bytes() if path.exists() else b""


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 12) | st.floats() | st.sampled_from(["", "c", "Paris"]) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)
TEXTS = (
    st.fixed_dictionaries({}, optional={name: VALUES for name in ("city", "days", "unit", "many", "x")}).map(json.dumps)
    | st.text(max_size=30)
    | st.sampled_from(["", "null", "[]", '"{}"', '{"city": "a", "city": "b"}', '{"city": "\\ud800"}', '{"city": "x", "days": 1e400}'])
)


def test_nothing_that_fails_validation_reaches_a_tool() -> None:
    """Against jsonschema itself, in this process: the tool is called exactly when the text is strict JSON that fits the schema."""
    reached: list[str] = []

    async def answer(arguments: str) -> str:
        reached.append(arguments)
        return "done"

    def fits(text: str) -> bool:
        def no_constant(name: str) -> None:
            raise ValueError(name)

        def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
            if len(dict(pairs)) < len(pairs):
                raise ValueError("twice")
            return dict(pairs)

        try:
            value = json.loads(text or "{}", parse_constant=no_constant, object_pairs_hook=once)
            json.dumps(value, ensure_ascii=False).encode()
        except ValueError:
            return False
        return "1e400" not in text and Draft202012Validator(SCHEMA).is_valid(value)

    with asyncio.Runner() as runner:
        checker = runner.run(_made())
        schema = json.dumps(SCHEMA)
        tool = SchemaTool("weather", "", SCHEMA, lambda arguments: checker.problems(schema, arguments), answer)
        toolbox = Toolbox([tool], limit_s=60)

        @settings(max_examples=150, deadline=None)
        @given(TEXTS)
        def each(text: str) -> None:
            reached.clear()
            outcome = runner.run(toolbox.call("weather", text))
            assert bool(reached) == (outcome.result == "done") == (outcome.error is None)
            assert bool(reached) == fits(text if text.strip() else "")

        each()
        runner.run(checker.aclose())


async def _made() -> SchemaChecker:
    return SchemaChecker()
