"""Tools of a visitor's own: what is taken, what they answer, out and in again; nothing in them is ever carried out."""

import asyncio
import json
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from hypothesis import given
from hypothesis import strategies as st

from kimi_demo.dialect.failure import Failure
from kimi_demo.tools.bench import Bench, Benches
from kimi_demo.tools.error import ToolError
from kimi_demo.tools.own import MOST_ANSWER_CHARS, OwnTool, checked, field_of, filled, tool_of
from kimi_demo.tools.own_exchange import exported, imported
from kimi_demo.tools.schema_checker import SchemaChecker
from kimi_demo.tools.toolbox import Toolbox

SCHEMA = json.dumps({"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "number"}}, "required": ["city"]})
WEATHER = OwnTool(name="weather", description="Weather.", parameters=SCHEMA, answering="template", text="In {{city}}: sunny ({{days}}).")
OWNER, OTHER = "0" * 32, "1" * 32


@pytest_asyncio.fixture
async def checker() -> AsyncIterator[SchemaChecker]:
    checker = SchemaChecker()
    yield checker
    await checker.aclose()


@pytest.mark.parametrize(
    ("template", "arguments", "text"),
    [
        ("In {{city}}.", '{"city": "Beijing"}', 'In "Beijing".'),
        ("{{a}}{{b}}", '{"a": "{{b}}", "b": "{{a}}"}', '"{{b}}""{{a}}"'),
        ("{{n}}", '{ "n" :\t0.10 , "m":[1 , {"x": "}"}]}', "0.10"),
        ("{{m}}", '{ "n" :\t0.10 , "m":[1 , {"x": "}"}]}', '[1 , {"x": "}"}]'),
        ("{{n}}", '{"n": ' + "9" * 9_000 + "}", "9" * 9_000),
        ("{{gone}}", "{}", "null"),
        ("{{ a }} {a} {{a}", '{"a": 1}', "null {a} {{a}"),
        ("{{a.__class__}} {{config}} {{ 7 * 7 }}", '{"a": 1}', "null null null"),
        ("%s {0} ${a} `id`", '{"a": 1}', "%s {0} ${a} `id`"),
        ("{{é}}", '{"\\u00e9": true}', "true"),
    ],
)
def test_a_template_is_filled_and_nothing_else(template: str, arguments: str, text: str) -> None:
    assert filled(template, arguments) == text


def test_a_template_cannot_grow_without_bound() -> None:
    with pytest.raises(ToolError, match="1,000,000"):
        filled("{{a}}" * 4_000, json.dumps({"a": "x" * 900_000}))


@given(st.dictionaries(st.text(max_size=5), st.recursive(st.none() | st.text(), lambda inner: st.lists(inner, max_size=3)), max_size=4))
def test_what_is_put_in_is_the_arguments_own_json(arguments: dict[str, object]) -> None:
    for name, value in arguments.items():
        if not set(name) & set("{}"):
            assert json.loads(filled("{{" + name + "}}", json.dumps(arguments, indent=1))) == value


@pytest.mark.parametrize(
    ("change", "code", "field"),
    [
        ({"name": ""}, "own_tools.name", "name"),
        ({"name": "two words"}, "own_tools.name", "name"),
        ({"name": "1st"}, "own_tools.name", "name"),
        ({"name": "x" * 65}, "own_tools.name", "name"),
        ({"name": "wetter_天气"}, "own_tools.name", "name"),
        ({"name": "add"}, "own_tools.name_taken", "name"),
        ({"description": "x" * 5_000}, "own_tools.description_too_long", "description"),
        ({"parameters": "{"}, "schema.not_json", "parameters"),
        ({"parameters": '{"type": "array"}'}, "tool_schema.not_object", "parameters"),
        ({"text": "  "}, "own_tools.text_missing", "answer"),
        ({"text": "x" * (MOST_ANSWER_CHARS + 1)}, "own_tools.text_too_long", "answer"),
        ({"text": "one\n{{town}}"}, "own_tools.placeholder", "answer"),
    ],
)
async def test_a_mistake_is_named_with_its_field(checker: SchemaChecker, change: dict[str, str], code: str, field: str) -> None:
    with pytest.raises(Failure) as raised:
        await checked(WEATHER.model_copy(update=change), {"add"}, checker)
    assert (raised.value.code, field_of(raised.value)) == (code, field)
    if code == "own_tools.placeholder":
        assert raised.value.params == {"line": "2", "name": "town", "known": "city, days"}


async def test_half_a_surrogate_pair_is_neither_kept_nor_sent(checker: SchemaChecker) -> None:
    draft = OwnTool(name="t", description="a\ud800", parameters='{"type": "object", "description": "\\ud800"}', answering="ask", text="x")
    tool = await checked(draft, (), checker)
    assert (tool.description, tool.text) == ("a\ufffd", "")
    assert json.dumps(tool_of(tool, checker).schema(), ensure_ascii=False).encode()


async def test_how_it_answers(checker: SchemaChecker) -> None:
    fixed = WEATHER.model_copy(update={"name": "fixed", "answering": "fixed", "text": "Always {{city}}."})
    asks = WEATHER.model_copy(update={"name": "asks", "answering": "ask", "text": ""})
    toolbox = Toolbox([tool_of(own, checker) for own in (WEATHER, fixed, asks)], limit_s=60)
    assert (await toolbox.call("weather", '{"city": "Xi\'an", "days": 3}')).result == 'In "Xi\'an": sunny (3).'
    assert (await toolbox.call("fixed", '{"city": "x"}')).result == "Always {{city}}."
    assert (await toolbox.call("weather", '{"city": 5}')).error == "Invalid arguments for weather:\ncity: must be a string (got 5)"
    assert [toolbox.asks(name) for name in toolbox.names] == [False, False, True]
    assert toolbox.schemas()[0]["function"]["parameters"] == json.loads(SCHEMA)


async def test_a_pattern_that_explodes_is_told_to_the_model(checker: SchemaChecker) -> None:
    schema = json.dumps({"type": "object", "properties": {"city": {"type": "string", "pattern": "^(a+)+$"}}})
    toolbox = Toolbox([tool_of(WEATHER.model_copy(update={"parameters": schema}), checker)], limit_s=60)
    outcome = await toolbox.call("weather", json.dumps({"city": "a" * 40 + "b"}))
    assert outcome.error == "The arguments of weather could not be checked: it took too long."


def test_out_and_in_again() -> None:
    tools = [WEATHER, OwnTool(name="ask_me", parameters='{"type": "object"}')]
    again = imported(exported(tools))
    assert [tool.model_copy(update={"parameters": ""}) for tool in again] == [tool.model_copy(update={"parameters": ""}) for tool in tools]
    assert json.loads(again[0].parameters) == json.loads(SCHEMA)


@pytest.mark.parametrize(
    "text",
    [
        '{"type": "function", "function": {"name": "f", "description": null, "parameters": {"type": "object"}, "strict": true}}',
        '[{"name": "f", "parameters": {"type": "object"}}]',
        '\ufeff{"tools": [{"type": "function", "function": {"name": "f"}}]}',
    ],
)
def test_what_other_programs_write_is_taken(text: str) -> None:
    (tool,) = imported(text.encode())
    assert (tool.name, tool.description, tool.answering) == ("f", "", "ask")


@pytest.mark.parametrize(
    ("data", "code", "words"),
    [
        (b"", "own_tools.import_not_json", "line"),
        (b'[\n{"name": }]', "own_tools.import_not_json", "2"),
        (b"\n\xff\xfe", "own_tools.import_not_json", "2"),
        (b"[" * 100_000, "own_tools.import_not_json", "deep"),
        (b'{"name": "a", "parameters": {"x": ' + b"9" * 5000 + b"}}", "own_tools.import_not_json", "too long"),
        (b"[" + b",".join([b'{"name": "a"}'] * 51) + b"]", "own_tools.import_too_many", "51"),
        (b"[]", "own_tools.import_empty", ""),
        (b"3", "own_tools.import_empty", ""),
        (b'[{"name": "a"}, 3]', "own_tools.import_entry", "2"),
        (b'{"type": "function"}', "own_tools.import_entry", "function"),
        (b'{"name": 3}', "own_tools.import_entry", "name"),
        (b'{"name": "a", "parameters": "x"}', "own_tools.import_entry", "parameters"),
        (b'{"name": "a", "x-kimi-demo": {"answering": "code"}}', "own_tools.import_entry", "answering"),
        (b" " * 6_000_000, "own_tools.import_too_large", "5"),
    ],
)
def test_a_file_that_cannot_be_read_says_where(data: bytes, code: str, words: str) -> None:
    with pytest.raises(Failure) as raised:
        imported(data)
    assert raised.value.code == code and words in str(raised.value)


def test_a_schema_that_is_nested_as_deep_as_can_be_read_is_refused_or_taken() -> None:
    for levels in range(900, 1000):  # somewhere here it can be read and not written any more
        try:
            imported(b'{"name": "a", "parameters": {"x": ' + b"[" * levels + b"]" * levels + b"}}")
        except Failure as failure:
            assert failure.code in ("own_tools.import_entry", "own_tools.import_not_json")


async def test_benches_are_kept_one_for_each_owner(tmp_path: Path) -> None:
    benches = Benches(tmp_path / "tools")
    assert benches.get(OWNER) == Bench()
    await asyncio.gather(*(benches.change(OWNER, lambda bench, i=i: bench.switched(f"t{i}", i % 2 == 0)) for i in range(20)))  # type: ignore[misc]
    await benches.change(OWNER, lambda bench: bench.with_tool(WEATHER))
    again = Benches(tmp_path / "tools")
    assert len(again.get(OWNER).on) == 21 and again.get(OWNER).own == (WEATHER,)
    assert again.get(OTHER) == Bench()
    assert [path.name for path in (tmp_path / "tools").iterdir()] == [f"{OWNER}.json"]


async def test_a_damaged_file_is_said_and_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / f"{OWNER}.json").write_text('{"own": 3}')
    benches = Benches(tmp_path)
    with pytest.raises(Failure, match=r"own_tools\.unreadable"):
        await benches.change(OWNER, lambda bench: bench.switched("add", False))
    assert (tmp_path / f"{OWNER}.json").read_text() == '{"own": 3}'


async def test_a_disk_that_cannot_be_written_is_said_and_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    benches = Benches(tmp_path)
    await benches.change(OWNER, lambda bench: bench.with_tool(WEATHER))

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(Failure, match="No space left"):
        await benches.change(OWNER, lambda bench: bench.without("weather"))
    assert benches.get(OWNER).own == (WEATHER,) and os.listdir(tmp_path) == [f"{OWNER}.json"]


def test_renaming_takes_switch_and_choice_along() -> None:
    bench = Bench(choice="tool:weather").with_tool(WEATHER).switched("weather", False)
    renamed = bench.with_tool(WEATHER.model_copy(update={"name": "climate"}), was="weather")
    assert (renamed.on, renamed.choice, [tool.name for tool in renamed.own]) == ({"climate": False}, "tool:climate", ["climate"])
    assert renamed.without("climate").on == {}
