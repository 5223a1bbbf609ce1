"""A run: live, in parallel within a limit, stopped, again, with what a person says; and the whole of Smoke, Guide and Load."""

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest

from kimi_demo.engines.endpoint import Endpoint
from kimi_demo.qa.case import Overrides, Suite, planned
from kimi_demo.qa.reading import SHIPPED, shipped
from kimi_demo.qa.report import CaseReport
from kimi_demo.qa.running import QaRun
from tests.qa.playing import correct, kimi_template, one_case, playing, run_suite, with_template
from tests.scripted_scenarios import rejected
from tests.scripted_script import Ask, Refusal, Script, thought_of, told
from tests.scripted_server import Scripted


def blue(ask: Ask) -> Script:
    return Script((*thought_of(ask, "Hm."), *told("content", "Blue.")))


def many(count: int, **case: Any) -> Suite:
    cases = [{"id": f"c{i}", "ask": f"Number {i}", **case} for i in range(count)]
    return Suite.model_validate({"name": "t", "title": "t", "at_once": 3, "cases": cases})


@pytest.fixture
async def endpoint(server: Scripted) -> AsyncIterator[Endpoint]:
    connected = await Endpoint.connect(server.base_url)
    yield connected
    await connected.aclose()


@pytest.mark.parametrize("name", ["smoke", "guide", "load"])
async def test_a_right_deployment_passes(name: str, server: Scripted, monkeypatch: pytest.MonkeyPatch) -> None:
    with_template(monkeypatch, kimi_template)
    with playing(server, correct):
        report = await run_suite(server, shipped(name))
    assert {case.state for case in report.cases} == {"pass"}, [(case.id, case.wrong) for case in report.cases if case.state != "pass"]
    assert report.server.model == server.model_ids[0] and report.server.version == "0.32.0" and report.started_at


async def test_cases_are_told_as_they_finish_and_no_more_run_at_once_than_allowed(server: Scripted, endpoint: Endpoint) -> None:
    told_of: list[CaseReport] = []
    most = 0

    def slowly(ask: Ask) -> Script:
        nonlocal most
        most = max(most, server.running + 1)  # this one is not counted yet
        return Script(told("content", "Blue."), silence_s=0.15)

    with playing(server, slowly):
        report = await QaRun(endpoint, many(9), on_case=told_of.append).run()
    assert report.counts == {"pass": 9} and most == 3
    by_case = [[case.state for case in told_of if case.id == f"c{i}"] for i in range(9)]
    assert all(states == ["waiting", "running", "pass"] for states in by_case)


async def test_stopping_closes_what_is_open_and_keeps_what_is_done(server: Scripted, endpoint: Endpoint) -> None:
    def play(ask: Ask) -> Script:
        late = "Number 0" not in str(ask.body["messages"])
        return Script(told("content", "Blue."), silence_s=600 if late else 0)

    with playing(server, play):
        run = QaRun(endpoint, many(6))
        task = asyncio.create_task(run.run())
        await server.arrived(4)
        run.stop()
        report = await task
        await server.aborted(3)
    assert report.stopped and report.could_not_run and report.counts == {"pass": 1, "waiting": 5}
    assert not run.running and not endpoint.as_sent
    with playing(server, blue):
        again = await run.again()
    assert again.counts == {"pass": 6} and not again.stopped and len(server.chats) == 5


async def test_cancelling_the_task_stops_the_run(server: Scripted, endpoint: Endpoint) -> None:
    with playing(server, lambda ask: Script((), silence_s=600)):
        run = QaRun(endpoint, many(2))
        task = asyncio.create_task(run.run())
        await server.arrived(2)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await server.aborted(2)
    assert run.report().stopped


async def test_only_the_failed_run_again(server: Scripted, endpoint: Endpoint) -> None:
    suite = many(4, checks={"answer": {"contains": "blue"}})
    with playing(server, lambda ask: blue(ask) if "Number 1" in str(ask.body["messages"]) else Script(told("content", "Red."))):
        run = QaRun(endpoint, suite)
        assert (await run.run()).counts == {"fail": 3, "pass": 1}
    with playing(server, blue):
        report = await run.again()
        assert report.counts == {"pass": 4} and len(server.chats) == 3
        with pytest.raises(RuntimeError):
            await asyncio.gather(run.run(), run.run())


async def test_a_share_of_repeats_may_be_enough(server: Scripted) -> None:
    count = iter(range(100))

    def mostly(ask: Ask) -> Script:
        return blue(ask) if next(count) % 4 else Script(told("content", "Red."))

    for needed, state in ((0.75, "pass"), (0.8, "fail")):
        count = iter(range(100))
        with playing(server, mostly):
            report = await run_suite(
                server, one_case(ask="?", repeats=4, needed=needed, checks={"answer": {"contains": "blue"}}), at_once=1
            )
        check = next(check for check in report.cases[0].checks if check.check == "contains")
        assert (check.passed, check.counted, check.outcome) == (3, 4, state)
        assert check.attempt == 0 and "Red" in check.got


async def test_a_known_weakness_is_a_warning(server: Scripted) -> None:
    with playing(server, blue):
        report = await run_suite(server, one_case(ask="?", warns=True, checks={"answer": {"contains": "red"}}))
    assert report.cases[0].state == "warn" and not report.failed


async def test_a_case_for_another_kind_of_server_is_left_out(server: Scripted) -> None:
    with playing(server, blue):
        report = await run_suite(server, one_case(ask="?", only_on=["moonshot"]))
    assert report.cases[0].state == "skip" and not server.chats


async def test_what_a_person_says_of_a_manual_case(server: Scripted, endpoint: Endpoint) -> None:
    with playing(server, blue):
        run = QaRun(endpoint, one_case(ask="?", manual="Is it friendly?"))
        assert (await run.run()).cases[0].state == "open"
    assert run.judged("c", good=False, note="too short").state == "fail"
    assert run.report().cases[0].note == "too short" and run.report().failed
    assert run.judged("c", good=True).state == "pass"
    with pytest.raises(KeyError):
        run.judged("d", good=True)


async def test_of_a_request_that_failed_nothing_else_is_judged(server: Scripted) -> None:
    def refuses(ask: Ask) -> Refusal:
        return rejected(ask)

    with playing(server, refuses):
        report = await run_suite(server, one_case(ask="?", stream="both", checks={"closed": True, "same_structure": True}))
    checks = {check.check: check.outcome for check in report.cases[0].checks}
    assert checks == {"answered": "fail", "same_structure": "skip"} and not report.could_not_run


async def test_a_server_that_is_gone_is_no_verdict(server: Scripted) -> None:
    from tests.scripted_server import running

    with running() as other:
        endpoint = await Endpoint.connect(other.base_url)
    report = await QaRun(endpoint, many(2)).run()
    await endpoint.aclose()
    assert report.could_not_run and report.counts == {"fail": 2}


async def test_a_reply_that_takes_too_long_fails_and_the_request_is_closed(server: Scripted, endpoint: Endpoint) -> None:
    with playing(server, lambda ask: Script((), silence_s=600)):
        report = await QaRun(endpoint, many(1), limit_s=0.5).run()
        await server.aborted(1)
    failure = report.cases[0].attempts[0].failure
    assert failure is not None and failure.code == "qa.too_slow" and report.cases[0].state == "fail"


async def test_the_bodies_are_those_of_the_case(server: Scripted) -> None:
    case = {"ask": "?", "system": "Be brief.", "stream": "both", "body": {"chat_template_kwargs": None, "thinking": {"type": "disabled"}}}
    with playing(server, blue):
        await run_suite(server, one_case(**case), Overrides(preset="guide_thinking"))
    bodies = sorted((chat.body for chat in server.chats), key=lambda body: bool(body.get("stream")))
    assert [bool(body.get("stream")) for body in bodies] == [False, True]
    for body in bodies:
        assert body["thinking"] == {"type": "disabled"} and "chat_template_kwargs" not in body
        assert body["messages"][0] == {"role": "system", "content": "Be brief."} and body["top_k"] == 20 and body["temperature"] == 0.6


async def test_replies_that_are_to_read_alike_are_asked_for_one_after_the_other(server: Scripted) -> None:
    most, silence_s = 0, 0.2

    def slowly(ask: Ask) -> Script:
        nonlocal most
        # One that was asked so long ago has its answer, though the server may not have put it away yet.
        now = time.monotonic()
        most = max(most, sum(each.ended_at is None and now - each.at < silence_s for each in server.chats))
        return Script(told("content", "Blue."), silence_s=silence_s)

    with playing(server, slowly):
        report = await run_suite(server, one_case(ask="?", stream="both", repeats=2, checks={"same_text": True}), at_once=4)
    assert most == 1 and report.counts == {"pass": 1} and len(server.chats) == 4


@pytest.mark.parametrize("name", SHIPPED)
async def test_every_shipped_suite_runs_to_its_end(name: str, server: Scripted, monkeypatch: pytest.MonkeyPatch) -> None:
    """Against a server that answers everything alike: every case gets its verdicts, and none is a failure of ours."""
    with_template(monkeypatch, kimi_template)
    with playing(server, correct):
        report = await run_suite(server, shipped(name))
    assert not report.stopped and len(report.cases) == len(planned(shipped(name)))
    for case in report.cases:
        assert case.state in ("pass", "fail", "warn") and {check.check for check in case.checks} != {"answered"}, case.id
        for seen in case.attempts:
            assert seen.failure is None or seen.failure.code.startswith("tools."), (case.id, seen.failure)


async def test_a_run_goes_on_from_the_report_of_an_earlier_one(server: Scripted, endpoint: Endpoint) -> None:
    suite = many(3, checks={"answer": {"contains": "blue"}})
    with playing(server, lambda ask: blue(ask) if "Number 1" in str(ask.body["messages"]) else Script(told("content", "Red."))):
        before = await QaRun(endpoint, suite).run()
    later = QaRun(endpoint, suite, before=before)
    assert later.report().cases == before.cases and later.report().started_at == before.started_at
    with playing(server, blue):
        report = await later.again()
        assert report.counts == {"pass": 3} and len(server.chats) == 2
    assert report.cases[1] == before.cases[1] and report.seconds > before.seconds
