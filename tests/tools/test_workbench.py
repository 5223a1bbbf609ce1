"""All tools of a visitor together: what is on, what is chosen, and changes from several tabs at once."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from kimi_demo.dialect.failure import Failure
from kimi_demo.engines.guardian import Guardian
from kimi_demo.mcp_target import McpTarget
from kimi_demo.tools.bench import Benches
from kimi_demo.tools.guide import GUIDE_TOOLS
from kimi_demo.tools.mcp_server import McpServer
from kimi_demo.tools.mcp_transport import transport
from kimi_demo.tools.own import OwnTool
from kimi_demo.tools.own_exchange import MOST_OWN, exported
from kimi_demo.tools.schema_checker import SchemaChecker
from kimi_demo.tools.toolbox import Toolbox
from kimi_demo.tools.workbench import EntryFailure, Workbench

OWNER, OTHER = "0" * 32, "1" * 32
GUIDE = tuple(tool.name for tool in GUIDE_TOOLS)
MINE = OwnTool(name="mine", parameters='{"type": "object"}', answering="fixed", text="yes")


@pytest_asyncio.fixture
async def workbench(tmp_path: Path) -> AsyncIterator[Workbench]:
    workbench = Workbench(Benches(tmp_path), SchemaChecker())
    yield workbench
    await workbench.aclose()


async def failing(work: object) -> Failure:
    with pytest.raises(Failure) as raised:
        await work  # type: ignore[misc]
    return raised.value


async def test_at_first_the_guides_four_are_on_and_nothing_else(workbench: Workbench) -> None:
    assert (await workbench.chosen(OWNER)).names == GUIDE
    assert [row.name for row in workbench.listed(OWNER) if not row.on] == ["current_time", "convert_unit", "calculate", "look_up_planet"]


async def test_switches_are_one_visitors_own(workbench: Workbench) -> None:
    await workbench.switch(OWNER, "calculate", True)
    await workbench.switch(OWNER, "add", False)
    assert (await workbench.chosen(OWNER)).names == (*GUIDE[1:], "calculate")
    assert (await workbench.chosen(OTHER)).names == GUIDE
    assert (await failing(workbench.switch(OWNER, "rm", True))).code == "own_tools.unknown"


async def test_whether_calls_need_leave_is_one_visitors_own(workbench: Workbench) -> None:
    assert not (await workbench.chosen(OWNER)).approve
    await workbench.require_leave(OWNER, True)
    assert (await workbench.chosen(OWNER)).approve and not (await workbench.chosen(OTHER)).approve
    await workbench.require_leave(OWNER, False)
    assert not (await workbench.chosen(OWNER)).approve


async def test_the_choice(workbench: Workbench) -> None:
    assert (await workbench.chosen(OWNER)).choice is None
    await workbench.choose(OWNER, "required")
    await workbench.allow_parallel(OWNER, False)
    chosen = await workbench.chosen(OWNER)
    assert (chosen.choice, chosen.parallel) == ("required", False)
    await workbench.choose(OWNER, "tool:mul")
    assert (await workbench.chosen(OWNER)).choice == {"type": "function", "function": {"name": "mul"}}
    await workbench.switch(OWNER, "mul", False)
    assert (await failing(workbench.chosen(OWNER))).code == "tool_choice.off"
    assert (await failing(workbench.choose(OWNER, "tool:none"))).code == "tool_choice.unknown"
    await workbench.choose(OWNER, "required")
    for name in GUIDE:
        await workbench.switch(OWNER, name, False)
    assert (await failing(workbench.chosen(OWNER))).code == "tool_choice.nothing"
    await workbench.choose(OWNER, "none")
    assert (await workbench.chosen(OWNER)).choice is None  # without tools there is nothing to choose


async def test_own_tools_are_saved_changed_and_deleted(workbench: Workbench) -> None:
    await workbench.save(OWNER, MINE)
    assert (await workbench.chosen(OWNER)).names == (*GUIDE, "mine")
    assert (await failing(workbench.save(OWNER, MINE))).code == "own_tools.name_taken"
    assert (await failing(workbench.save(OWNER, MINE.model_copy(update={"name": "calculate"})))).code == "own_tools.name_taken"
    await workbench.save(OWNER, MINE.model_copy(update={"name": "ours", "text": "no"}), was="mine")
    (tool,) = workbench.tools(OWNER, ["ours"])
    assert (await Toolbox([tool], limit_s=60).call("ours", "{}")).result == "no"
    assert (await failing(workbench.save(OWNER, MINE, was="mine"))).code == "own_tools.unknown"
    await workbench.delete(OWNER, "ours")
    await workbench.delete(OWNER, "ours")
    assert (await workbench.chosen(OWNER)).names == GUIDE
    assert workbench.bench(OWNER).on == {}


async def test_of_two_tabs_that_save_the_same_name_one_is_told(workbench: Workbench) -> None:
    results = await asyncio.gather(*(workbench.save(OWNER, MINE) for _ in range(4)), return_exceptions=True)
    assert sorted(type(result).__name__ for result in results) == ["Failure", "Failure", "Failure", "OwnTool"]
    assert len(workbench.bench(OWNER).own) == 1


async def test_there_is_a_limit(workbench: Workbench) -> None:
    tools = [MINE.model_copy(update={"name": f"t{number}"}) for number in range(MOST_OWN)]
    assert len((await workbench.take_in(OWNER, exported(tools))).added) == MOST_OWN
    assert (await failing(workbench.save(OWNER, MINE))).code == "own_tools.too_many"
    assert (await failing(workbench.take_in(OWNER, exported([MINE])))).code == "own_tools.too_many"


async def test_an_import_replaces_nothing(workbench: Workbench) -> None:
    await workbench.save(OWNER, MINE)
    other = MINE.model_copy(update={"text": "another"})
    taken = await workbench.take_in(OWNER, exported([MINE, other, other.model_copy(update={"name": "add"})]))
    assert (taken.added, taken.same) == (("mine_2", "add_2"), 1)
    assert [tool.text for tool in workbench.bench(OWNER).own] == ["yes", "another", "another"]


async def test_an_import_is_all_or_nothing(workbench: Workbench) -> None:
    bad = json.loads(exported([MINE, MINE.model_copy(update={"name": "x"})]))
    bad[1]["function"]["parameters"]["$ref"] = "http://127.0.0.1/x"
    failure = await failing(workbench.take_in(OWNER, json.dumps(bad).encode()))
    assert isinstance(failure, EntryFailure) and (failure.params["number"], failure.cause.code) == ("2", "tool_schema.remote")
    assert workbench.bench(OWNER).own == ()


async def test_mcp_tools_are_off_until_switched_on_and_a_schema_that_cannot_be_is_said(tmp_path: Path) -> None:
    checker, guardian = SchemaChecker(), Guardian()
    target = McpTarget("local", command=(sys.executable, str(Path(__file__).with_name("mcp_program.py"))))
    server = McpServer(target, lambda: transport(target, guardian, tmp_path), checker)
    workbench = Workbench(Benches(tmp_path), checker, [server])
    try:
        workbench.start()
        await server.settled(60)
        assert (await workbench.chosen(OWNER)).names == GUIDE
        await workbench.switch(OWNER, "local__add", True)
        assert (await workbench.chosen(OWNER)).names == (*GUIDE, "local__add")
        rows = {row.name: row for row in workbench.listed(OWNER)}
        assert (rows["local__add"].source, rows["local__add"].server) == ("mcp", "local")
        unusable = rows["local__remote"]
        assert unusable.tool is None and unusable.failure is not None and unusable.failure.code == "tool_schema.remote"
        await workbench.switch(OWNER, "local__remote", True)
        assert "local__remote" not in (await workbench.chosen(OWNER)).names
    finally:
        await workbench.aclose()
        guardian.close()
