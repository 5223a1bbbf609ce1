"""The QA tab over HTTP: a run from the form to its files, what is wrong in the form, and nothing of it that is a page of ours."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as xml

import httpx
import pytest

from kimi_demo.settings import Settings
from kimi_demo.ui.access import Access
from kimi_demo.ui.application import Application, build
from kimi_demo.ui.guard import Guard
from kimi_demo.ui.qa_stream import QaStream
from tests import scripted_server
from tests.qa.playing import playing
from tests.scripted_script import Ask, Script, told
from tests.scripted_server import Scripted

EVIL = "<script>alert(1)</script>"
SUITE = f"""
name: mine
title: Mine
cases:
  - {{id: good, ask: "Say blue", checks: {{answer: {{contains: blue}}}}}}
  - {{id: bad, ask: "{EVIL}", checks: {{answer: {{contains: green}}}}}}
"""


@pytest.fixture
async def application(tmp_path: Path) -> AsyncIterator[tuple[Application, httpx.AsyncClient, Scripted]]:
    (tmp_path / "suites").mkdir()
    (tmp_path / "suites" / "mine.yaml").write_text(SUITE)
    with scripted_server.running() as server:
        access = Access.of(Settings(_env_file=None), 7860)
        app = await build(Settings(_env_file=None, data=tmp_path, base_url=server.base_url), access)
        cookies = {access.operator_cookie: access.operator_proof}
        transport = httpx.ASGITransport(app=Guard(app.asgi, access))
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:7860", cookies=cookies) as operator:
            yield app, operator, server
        await app.aclose()


async def act(operator: httpx.AsyncClient, name: str, /, **body: Any) -> httpx.Response:
    return await operator.post(f"/kimi/act/{name}", json=body)


async def finished(app: Application) -> None:
    going = app.services.qa.going
    assert going is not None and going.task is not None
    await asyncio.wait_for(asyncio.shield(going.task), 30)


def blue(ask: Ask) -> Script:
    return Script(told("content", f"Blue. {EVIL}"))


async def test_from_the_form_to_the_files(application: tuple[Application, httpx.AsyncClient, Scripted]) -> None:
    app, operator, server = application
    with playing(server, blue):
        started = await act(operator, "qa_start", suite="mine", repeats=" 2 ", at_once="1", mode="instant", preset="tools")
        assert started.status_code == 200, started.text
        run = started.json()["run"]
        assert (await act(operator, "qa_start", suite="mine")).status_code == 422  # one at a time
        await finished(app)
        assert len(server.chats) == 4 and all(chat.body["temperature"] == 0.01 for chat in server.chats)
    whole = await operator.get(f"/kimi/qa/runs/{run}/case/bad")
    assert whole.status_code == 200 and "&lt;script&gt;" in whole.text and "<script" not in whole.text and ">green<" in whole.text
    files = {form: await operator.get(f"/kimi/qa/runs/{run}/report.{form}") for form in ("html", "md", "xml", "json")}
    for form, answer in files.items():
        assert answer.status_code == 200
        assert answer.headers["content-disposition"].startswith("attachment") and answer.headers["content-disposition"].endswith(
            f'.{form}"'
        )
    assert "<script" not in files["html"].text and "qa.report" not in files["md"].text
    assert xml.fromstring(files["xml"].content).get("failures") == "1"
    report = json.loads(files["json"].content)
    assert report["overrides"] == {"mode": "instant", "preset": "tools", "repeats": "2"} and report["at_once"] == 1

    assert (await act(operator, "qa_baseline", run=run)).status_code == 200
    compared = await operator.get(f"/kimi/qa/runs/{run}/report.html?against=baseline")
    words = app.services.texts.say("qa.report.comparison")
    assert words in compared.text and words not in files["html"].text

    # As a link for strangers: the operator's to make, withdrawn when the run is deleted.
    given = {"kind": "qa", "subject": run, "title": f"Ours {EVIL}"}
    transport = httpx.ASGITransport(app=Guard(app.asgi, app.services.access))
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:7860") as stranger:
        assert (await stranger.post("/kimi/act/publish", json=given)).status_code == 422
        assert (await stranger.get("/kimi/published", params={"kind": "qa", "subject": run})).text.count("data-publish-form") == 0
        token = (await act(operator, "publish", **given)).json()["token"]
        read = await stranger.get(f"/kimi/p/{token}")
        assert read.status_code == 200 and "&lt;script&gt;" in read.text and "<script" not in read.text and "published-bar" in read.text
        assert server.base_url not in read.text and "green" in read.text
        assert (await act(operator, "qa_delete", run=run)).status_code == 200
        assert (await stranger.get(f"/kimi/p/{token}")).status_code == 404
    assert (await operator.get(f"/kimi/qa/runs/{run}/report.json")).status_code == 404
    assert (await act(operator, "qa_delete", run=run)).status_code == 422


WRONG = (
    ({"suite": ""}, "No suite is chosen"),
    ({"suite": "../mine"}, "There is no suite ../mine"),
    ({"suite": "mine", "repeats": "0"}, "Repeats: must be a whole number from 1 to 1,000"),
    ({"suite": "mine", "repeats": "٣"}, "Repeats: must be"),
    ({"suite": "mine", "repeats": "1.5"}, "Repeats: must be"),
    ({"suite": "mine", "at_once": "9" * 5000}, "Requests at once: must be a whole number from 1 to 512"),
    ({"suite": "mine", "preset": "fast"}, "There is no preset fast"),
    ({"suite": "mine", "mode": "loud"}, "thinking"),
)


async def test_what_is_wrong_is_said_and_nothing_begins(application: tuple[Application, httpx.AsyncClient, Scripted]) -> None:
    app, operator, server = application
    for given, words in WRONG:
        answer = await act(operator, "qa_start", **given)
        assert answer.status_code in (400, 422) and words in answer.json()["html"], given
    assert app.services.qa.going is None and not app.services.qa.books.cards and not server.chats
    for run in ("0" * 32, "..", "x"):
        assert (await operator.get(f"/kimi/qa/runs/{run}/case/bad")).status_code == 404
        for name in ("qa_again", "qa_delete", "qa_baseline", "qa_baseline_drop"):
            assert (await act(operator, name, run=run)).status_code == 422, name
    assert (await act(operator, "qa_stop")).status_code == 200  # nothing to stop is no mistake


async def test_the_stream_tells_only_what_has_changed(application: tuple[Application, httpx.AsyncClient, Scripted]) -> None:
    app, operator, server = application
    stream = QaStream(app.services.qa, app.services.texts).follow("", "")

    async def until(seen: Any) -> dict[str, str]:
        """The parts of all messages until `seen` is true of them."""
        parts: dict[str, str] = {}
        async with asyncio.timeout(30):
            while not seen(parts):
                name, _, data = (await anext(stream)).partition("\n")
                if name == "event: parts":
                    parts |= json.loads(data.removeprefix("data: "))
        return parts

    first = await until(lambda parts: "qa-runs" in parts)
    assert 'value="mine"' in first["qa-suites"] and app.services.texts.say("qa_page.no_runs") in first["qa-runs"]
    with playing(server, blue):
        run = (await act(operator, "qa_start", suite="mine")).json()["run"]
        later = await until(lambda parts: 'data-run-state="done"' in parts.get("qa-head", "") and "qa-c-1" in parts)
    assert "qa-suites" not in later and run in later["qa-runs"] and later["qa-cases"].count("<li ") == 2
    assert 'data-state="pass"' in later["qa-c-0"] and 'data-state="fail"' in later["qa-c-1"]
    assert (await act(operator, "qa_baseline", run=run)).status_code == 200
    marked = await until(lambda parts: "qa-runs" in parts)
    assert app.services.texts.say("qa_page.is_baseline") in marked["qa-runs"] and "qa-c-0" not in marked
    await stream.aclose()


async def test_another_server_is_asked_and_two_are_held_against_each_other(
    application: tuple[Application, httpx.AsyncClient, Scripted],
) -> None:
    app, operator, server = application
    runs, control = app.services.qa, app.services.control
    with scripted_server.running(model_ids=["other"]) as elsewhere:
        refused = await act(operator, "qa_start", suite="mine", server=elsewhere.base_url)
        assert refused.status_code == 422 and "is not among the servers" in refused.json()["html"] and not runs.books.cards
        control.saved.add_address(elsewhere.base_url)
        with playing(server, blue):
            assert (await act(operator, "qa_start", suite="mine")).status_code == 200
            await finished(app)
            here = runs.last
            elsewhere.name = "qa"
            assert (await act(operator, "qa_start", suite="mine", server=elsewhere.base_url)).status_code == 200
            await finished(app)
            there = runs.last
            assert len(server.chats) == 2 and [chat.body["model"] for chat in elsewhere.chats] == ["other", "other"]
            assert (await act(operator, "qa_again", run=there)).status_code == 200  # the failed one, there again
            await finished(app)
            assert len(server.chats) == 2 and len(elsewhere.chats) == 3
    report = await operator.get(f"/kimi/qa/runs/{there}/report.md?against={here}")
    assert report.status_code == 200 and server.model_ids[0] in report.text and "other" in report.text
    stream = QaStream(runs, app.services.texts, control.addresses).follow(there, here)
    told = ""
    async with asyncio.timeout(30):
        while "qa-changes" not in told and "qa-verdict" not in told:
            told += await anext(stream)
    await stream.aclose()
    assert elsewhere.base_url in told and 'data-verdict=\\"same\\"' in told
