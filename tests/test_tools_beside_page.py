"""Tools against real vLLM with the stand-in: the command beside the page asks the page's own server, and prints what /tools returns."""

import json
import sys
from typing import Any

import pytest
from gradio_client import Client

from tests.demo import Demo
from tests.programs import ROOT, running

QUESTION = "How many r are in strawberry?"


def printed(demo: Demo, *arguments: str) -> dict[str, Any]:
    """The run as the command prints it, without the progress before it."""
    command = ("-m", "kimi_demo", "tools", QUESTION, "--json", "--data", str(demo.data), "--seed", "1", *arguments)
    with running(*command, cwd=ROOT) as program:
        code, text = program.ended(300)
    assert code == 0, text
    found: dict[str, Any] = json.loads(text[text.index("{") :])
    return found


def test_the_command_and_the_endpoint_give_the_same_run(demo: Demo) -> None:
    by_api = Client(demo.address, verbose=False, httpx_kwargs={"timeout": 300}).predict(QUESTION, None, 1, api_name="/tools")
    by_command = printed(demo)
    assert by_command == by_api
    assert by_command["rounds"][0]["calls"][0]["name"] == "count_letter_in_string"


@pytest.mark.parametrize("choice", ["required", "count_letter_in_string"])
def test_a_call_can_be_demanded(demo: Demo, choice: str) -> None:
    (call, *_) = printed(demo, "--tool-choice", choice, "--no-parallel")["rounds"][0]["calls"]
    assert call["name"] in ("add", "mul", "compare", "count_letter_in_string")
    assert choice == "required" or call["name"] == choice


def test_an_mcp_servers_tool_is_offered_to_the_real_model(demo: Demo) -> None:
    mcp = f"local={sys.executable} {ROOT / 'tests' / 'tools' / 'mcp_program.py'}"
    (call, *_) = printed(demo, "--mcp", mcp, "--tools", "local__add", "--tool-choice", "local__add")["rounds"][0]["calls"]
    assert call["name"] == "local__add"
