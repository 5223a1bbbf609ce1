"""MCP servers as real processes: their tools are listed and called; slow, gone and wrong ones are failed calls."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import psutil
import pytest
import pytest_asyncio

from kimi_demo.engines.guardian import Guardian
from kimi_demo.mcp_target import McpTarget, mcp_target, mcp_targets
from kimi_demo.tools.mcp_server import McpServer, tool_name
from kimi_demo.tools.mcp_transport import transport
from kimi_demo.tools.schema_checker import SchemaChecker
from kimi_demo.tools.toolbox import Toolbox
from tests.ports import free_port
from tests.programs import ROOT, Program

PROGRAM = str(Path(__file__).with_name("mcp_program.py"))
STDIO = McpTarget("local", command=(sys.executable, PROGRAM))
START_S = 60.0

Make = Callable[..., McpServer]


@pytest_asyncio.fixture
async def make(tmp_path: Path) -> AsyncIterator[Make]:
    """Makes servers that are closed at the end."""
    checker, guardian, made = SchemaChecker(), Guardian(), list[McpServer]()

    def one(target: McpTarget = STDIO, connect_s: float = START_S) -> McpServer:
        made.append(McpServer(target, lambda: transport(target, guardian, tmp_path), checker, connect_s=connect_s))
        return made[-1]

    yield one
    for server in made:
        await server.aclose()
    await checker.aclose()
    guardian.close()


async def started(server: McpServer) -> McpServer:
    server.start()
    await server.settled(START_S)
    assert server.state == "ready", server.why
    return server


def toolbox_of(server: McpServer) -> Toolbox:
    return Toolbox([each.tool for each in server.tools if each.tool is not None])


def children() -> set[int]:
    return {child.pid for child in psutil.Process().children() if PROGRAM in " ".join(child.cmdline())}


async def test_a_child_lists_its_tools_and_answers(make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KIMI_DEMO_API_KEY", "sk-secret")
    server = await started(make())
    assert [tool.name for tool in server.tools][:3] == ["local__add", "local__environment", "local__with_dots_and_slashes"]
    toolbox = toolbox_of(server)
    assert (await toolbox.call("local__add", '{"a": 2, "b": 40}')).result == "42"
    wrong = await toolbox.call("local__add", '{"a": "2"}')
    assert wrong.error is not None and 'a: must be an integer (got "2")' in wrong.error and "b: is missing" in wrong.error
    assert (await toolbox.call("local__with_dots_and_slashes", "")).result == "odd"
    environment = json.loads((await toolbox.call("local__environment", "{}")).text)
    assert "PATH" in environment and not [name for name in environment if "API_KEY" in name]
    assert (await toolbox.call("local__picture", "{}")).result == "two lines\nof text\n[image: image/png; not shown to the model]"
    assert "Error executing tool broken" in ((await toolbox.call("local__broken", "{}")).error or "")
    assert "this goes to the log" in (tmp_path / "mcp-local.log").read_text()
    assert len(children()) == 1
    await server.aclose()
    assert not children()


async def test_a_slow_call_is_one_failed_call(make: Make) -> None:
    server = await started(make())
    tools = {tool.name: tool.tool for tool in server.tools if tool.tool is not None}
    toolbox = Toolbox([tools["local__add"], replace(tools["local__slow"], limit_s=1.0)])
    slow = asyncio.create_task(toolbox.call("local__slow", '{"seconds": 600}'))
    assert (await toolbox.call("local__add", '{"a": 1, "b": 1}')).result == "2"
    assert (await slow).error == "The tool local__slow did not finish within 1 seconds."
    assert (await toolbox.call("local__add", '{"a": 1, "b": 2}')).result == "3"


async def test_a_server_that_goes_is_one_failed_call_and_comes_back(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kimi_demo.tools.mcp_server.AGAIN_S", 0.0)
    server = await started(make())
    toolbox = toolbox_of(server)
    gone = await toolbox.call("local__leave", "{}")
    assert gone.error is not None and gone.error.startswith("The MCP server local")
    await server._link.gone.wait()
    assert server._task is not None
    await asyncio.wait({server._task})
    assert server.state == "failed" and [tool.name for tool in server.tools][0] == "local__add"  # still known
    assert (await toolbox.call("local__add", '{"a": 1, "b": 2}')).result == "3"


async def test_stopping_a_run_leaves_the_server_of_use(make: Make) -> None:
    server = await started(make())
    toolbox = toolbox_of(server)
    stopped = asyncio.create_task(toolbox.call("local__slow", '{"seconds": 600}'))
    assert (await toolbox.call("local__add", '{"a": 1, "b": 2}')).result == "3"
    stopped.cancel()
    with pytest.raises(asyncio.CancelledError):
        await stopped
    assert (await toolbox.call("local__add", '{"a": 1, "b": 3}')).result == "4"


@pytest.mark.parametrize(
    ("target", "words"),
    [
        (McpTarget("none", command=("/no/such/program",)), "no program /no/such/program"),
        (McpTarget("mute", command=(sys.executable, "-c", "import time; time.sleep(600)")), "did not answer within 1.5 seconds"),
        (McpTarget("rude", command=(sys.executable, "-c", "print('no JSON at all')")), ""),
        (McpTarget("shut", url="http://127.0.0.1:9/mcp"), ""),
    ],
)
async def test_a_server_that_is_none_says_why(make: Make, target: McpTarget, words: str) -> None:
    server = make(target, connect_s=1.5 if target.name == "mute" else START_S)
    server.start()
    await server.settled(START_S)
    assert server.state == "failed" and server.why and words in server.why
    assert server.tools == ()


async def test_over_http_and_gone(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kimi_demo.tools.mcp_server.AGAIN_S", 0.0)
    port = free_port()
    program = Program([PROGRAM, "http", str(port)], ROOT, {})
    try:
        server = make(McpTarget("web", url=f"http://127.0.0.1:{port}/mcp"))
        async with asyncio.timeout(START_S):
            while server.state != "ready":  # until the program listens
                server.start()
                await server.settled(START_S)
        toolbox = toolbox_of(server)
        assert (await toolbox.call("web__add", '{"a": 2, "b": 3}')).result == "5"
        slow = asyncio.create_task(toolbox.call("web__slow", '{"seconds": 600}'))
        assert (await toolbox.call("web__add", '{"a": 2, "b": 4}')).result == "6"
        program.kill()
        assert ((await slow).error or "").startswith("The MCP server web")
        assert ((await toolbox.call("web__add", '{"a": 2, "b": 3}')).error or "").startswith("The MCP server web")
    finally:
        program.kill()


async def test_a_bearer_token_comes_from_a_variable(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kimi_demo.tools.mcp_server.AGAIN_S", 0.0)
    port = free_port()
    program = Program([PROGRAM, "http", str(port)], ROOT, {"TEST_TOKEN": "t-1"})
    try:
        program.wait_for("running on")
        server = make(McpTarget("with-token", url=f"http://127.0.0.1:{port}/mcp"))
        server.start()
        await server.settled(START_S)
        assert server.state == "failed" and "t-1" not in server.why
        monkeypatch.setenv("KIMI_DEMO_MCP_TOKEN_WITH_TOKEN", "t-1")
        await started(server)
        assert (await toolbox_of(server).call("with-token__add", '{"a": 2, "b": 3}')).result == "5"
    finally:
        program.kill()


def test_names_cannot_pass_for_others() -> None:
    taken: set[str] = set()
    for theirs, name in [("add", "a__add"), ("x.y", "a__x_y"), ("x/y", "a__x_y_2"), ("é" * 80, "a__" + "_" * 61)]:
        assert tool_name("a", theirs, taken) == name
        taken.add(name)
    again = tool_name("a", "é" * 90, taken)
    assert again not in taken and len(again) <= 64


def test_what_the_operator_writes() -> None:
    assert mcp_target("files=npx -y 'a b' /tmp") == McpTarget("files", command=("npx", "-y", "a b", "/tmp"))
    assert mcp_target(" web = http://127.0.0.1:8792/mcp ") == McpTarget("web", url="http://127.0.0.1:8792/mcp")
    wrong = {"files": "NAME=COMMAND", "=x": "name", "Files=x": "small letters", "a='x": "quotation", "a=http://": "host"}
    for text, words in wrong.items():
        with pytest.raises(ValueError, match=words):
            mcp_target(text)
    with pytest.raises(ValueError, match="given twice"):
        mcp_targets(("a=x", "a=y"))


async def test_what_a_server_offered_is_known_after_a_restart_at_which_it_is_gone(tmp_path: Path) -> None:
    checker, guardian, note = SchemaChecker(), Guardian(), tmp_path / "mcp-local.json"
    gone = McpTarget("local", command=("/no/such/program",))
    servers = [McpServer(target, partial(transport, target, guardian, tmp_path), checker, note=note) for target in (STDIO, gone)]
    try:
        first = await started(servers[0])
        servers[1].start()
        await servers[1].settled(START_S)
        assert servers[1].state == "failed" and [each.name for each in servers[1].tools] == [each.name for each in first.tools]
        toolbox = toolbox_of(servers[1])
        assert "a: is missing" in ((await toolbox.call("local__add", "{}")).error or "")
        failed = await toolbox.call("local__add", '{"a": 1, "b": 2}')
        assert failed.error == "The MCP server local is not there: there is no program /no/such/program."
        note.write_text("no JSON")
        assert servers[0]._noted() == []
    finally:
        for server in servers:
            await server.aclose()
        await checker.aclose()
        guardian.close()
