"""`python -m kimi_demo tools` as a person meets it, against a scripted server."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kimi_demo import cli
from kimi_demo.command_runs import OWNER
from kimi_demo.dialect.events import Asked, Ended, Failed, Phase, Timed
from kimi_demo.dialect.failure import Failure
from kimi_demo.engines.server_note import NotedServer, ServerNote
from kimi_demo.runs.run import Run
from kimi_demo.runs.store import STORE, Store
from kimi_demo.tools.guide import GUIDE_TOOLS
from kimi_demo.tools.summary import summary
from kimi_demo.tools_console import ToolsConsole
from kimi_demo.ui.texts import texts
from tests import scripted_server
from tests.programs import ROOT, running
from tests.scripted_server import Scripted

MCP = f"local={sys.executable} {ROOT / 'tests' / 'tools' / 'mcp_program.py'}"
ONE_CALL = {
    "rounds": [
        {
            "reasoning": "I will use the tool.",
            "calls": [{"id": "functions.add:0", "name": "add", "arguments": {"a": 17, "b": 25}, "result": "42", "error": None}],
        },
        {"reasoning": "The tool has answered.", "calls": []},
    ],
    "answer": "The result: 42",
}


@pytest.fixture(scope="module")
def shared() -> Iterator[Scripted]:
    with scripted_server.running() as server:
        yield server


@pytest.fixture
def server(shared: Scripted) -> Scripted:
    shared.reset()
    return shared


def ran(capsys: pytest.CaptureFixture[str], tmp_path: Path, *arguments: str) -> tuple[int, str, str]:
    """(exit code, stdout, stderr) of the command, in this process."""
    code = cli.main(["tools", *arguments, "--data", str(tmp_path)])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_the_run_as_the_pages_endpoint_returns_it(server: Scripted, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = ran(capsys, tmp_path, "What is 17 + 25? [[one_call]]", "--json", "--base-url", server.base_url)
    assert (code, json.loads(out)) == (0, ONE_CALL)
    body = server.chats[0].body
    assert [tool["function"]["name"] for tool in body["tools"]] == [tool.name for tool in GUIDE_TOOLS]
    assert body["temperature"] == 0.01 and "tool_choice" not in body and "parallel_tool_calls" not in body


def test_for_a_person(server: Scripted, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = ran(capsys, tmp_path, "What is 17 + 25? [[one_call]]", "--base-url", server.base_url)
    lines = [line for line in out.splitlines() if line]
    assert code == 0
    assert lines == [
        *("Round 1", "I will use the tool.", '→ add {"a": 17, "b": 25}', "← add: 42"),
        *("Round 2", "The tool has answered.", "The result: 42"),
    ]


def kept(tmp_path: Path) -> list[Run]:
    """What the commands left in the store that the page uses."""
    store = Store(tmp_path / STORE)
    runs = [store.load(run_id, OWNER) for run_id in store.ids(OWNER)]
    store.close()
    return [run for run in runs if run is not None]


def test_the_run_is_kept_beside_those_of_a_page_that_is_open(server: Scripted, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = Store(tmp_path / STORE)
    going = Run(owner="a" * 32, kind="chat", title="t", entries=[Timed(0.0, Asked("still going"))])
    page.add(going)
    page.write(going.id, going.entries[0])
    page.flush()
    assert ran(capsys, tmp_path, "What is 17 + 25? [[one_call]]", "--base-url", server.base_url)[0] == 0
    page.write(going.id, Timed(1.0, Ended("done")))
    page.close()

    (run,) = kept(tmp_path)
    assert (run.kind, run.state, run.title) == ("tools", "done", "What is 17 + 25? [[one_call]]")
    assert run.asked is not None and run.asked.parameters["temperature"] == 0.01
    assert summary(run.entries) == ONE_CALL
    store = Store(tmp_path / STORE)
    finished = store.load(going.id, "a" * 32)
    store.close()
    assert finished is not None and [item.event for item in finished.entries] == [Asked("still going"), Ended("done")]


def test_a_run_that_failed_is_kept_with_what_it_had(server: Scripted, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, told = ran(capsys, tmp_path, "x [[dies]]", "--base-url", server.base_url)
    (run,) = kept(tmp_path)
    assert (code, run.state) == (1, "failed")
    (failed,) = [item.event for item in run.entries if isinstance(item.event, Failed)]
    assert texts().sentence(Failure(failed.code, **failed.params)) in told


def test_an_answer_is_not_lost_where_nothing_can_be_kept(server: Scripted, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / STORE).write_text("no database" * 100)
    code, out, told = ran(capsys, tmp_path, "What is 17 + 25? [[one_call]]", "--json", "--base-url", server.base_url)
    assert (code, json.loads(out)) == (0, ONE_CALL)
    assert STORE in told


def test_which_tools_and_how(server: Scripted, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flags = ("--tools", "calculate,add,add", "--tool-choice", "calculate", "--no-parallel", "--temperature", "0.5", "--seed", "7")
    code, _, _ = ran(capsys, tmp_path, "x [[answer_only]]", "--base-url", server.base_url, *flags)
    body = server.chats[0].body
    assert code == 0
    assert [tool["function"]["name"] for tool in body["tools"]] == ["calculate", "add"]
    assert body["tool_choice"] == {"type": "function", "function": {"name": "calculate"}}
    assert (body["parallel_tool_calls"], body["temperature"], body["seed"]) == (False, 0.5, 7)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "nothing to send"),
        (("  ",), "nothing to send"),
        (("q", "--tools", "rm"), "There is no tool named rm. Tools: add, mul"),
        (("q", "--tool-choice", "calculate"), "call calculate"),
        (("q", "--temperature", "-1"), "temperature"),
        (("x" * 50, "--max-prompt-chars", "10"), "10"),
        (("q", "--tools", "gone__x", "--mcp", "gone=/no/such/program"), "The MCP server gone is not there: there is no program"),
    ],
)
def test_what_is_impossible_is_said_in_one_line_before_anything_starts(
    arguments: tuple[str, ...], words: str, server: Scripted, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = ran(capsys, tmp_path, *arguments, "--json", "--base-url", server.base_url)
    assert (code, out) == (2, "")
    assert words in err.splitlines()[-1] and "Traceback" not in err
    assert not server.chats


def test_a_failure_on_the_way_keeps_what_came_until_then(server: Scripted, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = ran(capsys, tmp_path, "again [[endless_call]]", "--json", "--base-url", server.base_url)
    found: dict[str, Any] = json.loads(out)
    assert code == 1 and found["error"]["code"] == "tools.loop" and len(found["rounds"]) == 3
    assert found["rounds"][0]["calls"][0]["result"] == "2" and "add" in err


def test_no_server_is_a_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = ran(capsys, tmp_path, "q", "--base-url", "http://127.0.0.1:9/v1")
    assert code == 1 and "127.0.0.1:9" in err and "Traceback" not in err


def test_the_tools_there_are(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = ran(capsys, tmp_path, "--list", "--mcp", MCP)
    names = [line.partition(":")[0] for line in out.splitlines()]
    assert code == 0 and {"add", "calculate", "local__add"} <= set(names)


def test_an_mcp_servers_tool(server: Scripted, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    question = "q [[one_call name=local__add]]"
    code, out, _ = ran(capsys, tmp_path, question, "--json", "--base-url", server.base_url, "--mcp", MCP, "--tools", "local__add")
    assert code == 0 and json.loads(out)["rounds"][0]["calls"][0]["result"] == "42"


def test_terminal_commands_in_what_a_model_writes_are_not_obeyed(
    server: Scripted, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = ran(capsys, tmp_path, '[[answer_only answer="\\u001b[31mevil\\u0007\\u009b31m"]]', "--base-url", server.base_url)
    assert code == 0 and "evil" in out and not {"\x1b", "\x07", "\x9b"} & set(out)


def test_the_pages_server_is_used_and_its_key_shows_nowhere(tmp_path: Path) -> None:
    """As beside a page: its note is in the data folder. Another process, so that its command line can be read."""
    with scripted_server.running(api_key="sk-of-the-page") as server:
        ServerNote(tmp_path).write(NotedServer(base_url=server.base_url, api_key="sk-of-the-page", pid=os.getpid()))
        question = "slow [[long_thought tokens=2000 rate=20]]"
        with running("-m", "kimi_demo", "tools", question, "--data", str(tmp_path), cwd=tmp_path) as program:
            program.wait_for("Round 1")
            listed = subprocess.run(["ps", "-o", "args=", "-p", str(program.process.pid)], capture_output=True, text=True).stdout
            assert "kimi_demo" in listed and "sk-of-the-page" not in listed
            program.signal(signal.SIGINT)
            code, printed = program.ended()
        assert (code, len(server.chats)) == (130, 1)
        assert "sk-of-the-page" not in printed and "Traceback" not in printed
        with running("-m", "kimi_demo", "tools", "q [[one_call]]", "--json", "--data", str(tmp_path), cwd=tmp_path) as program:
            code, printed = program.ended()
        assert code == 0 and '"answer": "The result: 42"' in printed


def test_a_question_from_standard_input(server: Scripted, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "kimi_demo", "tools", "-", "--json", "--base-url", server.base_url, "--data", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, input="草莓 [[one_call]]".encode(), capture_output=True, timeout=120)
    assert done.returncode == 0 and json.loads(done.stdout) == ONE_CALL
    assert server.chats[0].body["messages"][-1]["content"] == "草莓 [[one_call]]"
    bad = subprocess.run(command, cwd=ROOT, input=b"\xff", capture_output=True, timeout=120)
    assert bad.returncode == 2 and b"not UTF-8" in bad.stderr


def test_a_phase_that_counts_is_told_once(capsys: pytest.CaptureFixture[str]) -> None:
    console = ToolsConsole(texts(), as_json=True)
    for done in range(3):
        console.event(Phase("server.loading_weights", done, 3))
    console.event(Phase("server.ready"))
    assert capsys.readouterr().err.splitlines() == ["Loading weights", "Ready"]
