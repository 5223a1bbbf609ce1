"""`check` as a person and a program meet it."""

import json
from collections.abc import Iterator

import pytest

from kimi_demo import cli
from tests import scripted_server
from tests.ports import free_port
from tests.scripted_server import Scripted


@pytest.fixture
def server() -> Iterator[Scripted]:
    with scripted_server.running() as scripted:
        yield scripted


def test_a_failed_check_names_the_flag_and_ends_with_1(server: Scripted, capsys: pytest.CaptureFixture[str]) -> None:
    server.scenario("no_auto_tool_choice")
    assert cli.main(["check", server.base_url]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 8 and lines[0].startswith("ok ") and lines[-1] == "2 of 7 failed."
    [tool] = [line for line in lines if "tool call" in line and line.startswith("FAIL")]
    assert "--enable-auto-tool-choice --tool-call-parser kimi_k2" in tool


def test_json(server: Scripted, capsys: pytest.CaptureFixture[str]) -> None:
    server.scenario("thought_in_content")
    assert cli.main(["check", "--base-url", server.base_url, "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["passed"] is False and found["url"] == server.base_url
    checks = {check["name"]: check for check in found["checks"]}
    assert checks["health"]["state"] == "passed" and checks["health"]["seconds"] >= 0
    assert checks["thinking"]["code"] == "check.no_reasoning_parser" and "--reasoning-parser kimi_k2" in checks["thinking"]["message"]


@pytest.mark.parametrize(("url", "code"), [("127.0.0.1:8000", 2), ("ftp://x/v1", 2), (f"http://127.0.0.1:{free_port()}/v1", 1)])
def test_addresses_that_lead_nowhere(url: str, code: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["check", url]) == code
    printed = capsys.readouterr()
    assert "FAIL" in printed.out and "Traceback" not in printed.out + printed.err


def test_a_time_limit_that_is_none(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["check", "--timeout-s", "0"]) == 2
    assert "--timeout-s cannot be 0" in capsys.readouterr().err
    assert cli.main(["check", "--timeout-s", "100000"]) == 2
    assert "at most 86400" in capsys.readouterr().err
