"""Replies that become cases."""

from kimi_demo.dialect.events import Problem
from kimi_demo.dialect.reply import Call, Reply
from kimi_demo.engines.endpoint import Endpoint
from kimi_demo.qa.capturing import as_yaml, case_of
from kimi_demo.qa.case import planned
from kimi_demo.qa.reading import read_suite
from kimi_demo.qa.running import QaRun
from kimi_demo.tools.guide import GUIDE_TOOLS
from tests.qa.playing import correct, playing
from tests.scripted_server import Scripted

ASKED = {"messages": [{"role": "user", "content": "How many r are in strawberry?"}], "temperature": 0.01, "max_tokens": 99, "stream": True}
OWN = {"type": "function", "function": {"name": "look_up", "description": "d", "parameters": {"type": "object"}}}


def test_a_chat_reply() -> None:
    reply = Reply(answer="3", finish_reason="stop", request=ASKED | {"model": "kimi", "chat_template_kwargs": {"thinking": False}})
    case = case_of(reply, case_id="Run 17/ä", note="Is it friendly?", title="Letters")
    assert (case.id, case.mode, case.manual, case.title) == ("run-17", "instant", "Is it friendly?", "Letters")
    assert case.parameters.given() == {"temperature": 0.01, "max_tokens": 99} and case.checks.closed
    assert case_of(Reply(request=ASKED | {"prompt": "x"}), case_id="").mode == "raw"


def test_calls_that_were_right_are_expected_again() -> None:
    request = ASKED | {"tools": [GUIDE_TOOLS[0].schema(), OWN]}
    right = Reply(calls=[Call(name="add", problems=())], finish_reason="tool_calls", request=request)
    case = case_of(right, case_id="a")
    assert case.tools[0] == "add" and getattr(case.tools[1], "name", "") == "look_up"
    assert case.checks.calls is not None and case.checks.calls.first_round == 1
    wrong = Reply(calls=[Call(name="add", problems=(Problem("a", "type", "is a string"),))], finish_reason="tool_calls", request=request)
    assert case_of(wrong, case_id="a").checks.calls is None


async def test_the_file_is_a_suite_that_can_be_run(server: Scripted) -> None:
    request = ASKED | {"tools": [tool.schema() for tool in GUIDE_TOOLS]}
    reply = Reply(calls=[Call(name="count_letter_in_string", problems=())], finish_reason="tool_calls", request=request)
    text = as_yaml("mine", "我的", [case_of(reply, case_id="one"), case_of(reply, case_id="two", note="看看")])
    suite = read_suite(text, "mine.yaml")
    assert len(planned(suite)) == 2 and "我的" in text
    with playing(server, correct):
        endpoint = await Endpoint.connect(server.base_url)
        report = await QaRun(endpoint, suite).run()
        await endpoint.aclose()
    assert [case.state for case in report.cases] == ["pass", "open"]
