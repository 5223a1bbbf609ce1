"""Reports in every form: nothing of a model's text gets loose in them, and the JSON reads back as it was."""

import json
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as xml

import pytest
from markdown_it import MarkdownIt

from kimi_demo.dialect.failure import Failure
from kimi_demo.qa.attempt import Attempt, CallSeen, FailureSeen, RoundSeen
from kimi_demo.qa.comparing import compare
from kimi_demo.qa.judging import CHECKS
from kimi_demo.qa.report import CaseReport, Report, ServerSeen, read_report, state_of
from kimi_demo.qa.report_html import as_html
from kimi_demo.qa.report_junit import as_junit
from kimi_demo.qa.report_markdown import as_markdown
from kimi_demo.qa.verdict import CheckResult
from kimi_demo.ui.texts import LANGUAGES, texts

NASTY = (
    "<script>alert(1)</script>\x1b[2J\x00 ```\n# <img src=x onerror=alert(2)> | ]]> & \"'\n[link](javascript:alert(3)) {{ 7*7 }} 你好 👩‍🚀"
)


def check(name: str, outcome: Any = "pass", passed: int = 1, counted: int = 1, **more: Any) -> CheckResult:
    return CheckResult(check=name, outcome=outcome, passed=passed, counted=counted, **more)


def case(case_id: str, *checks: CheckResult, **more: Any) -> CaseReport:
    fields = {"title": f"Title of {case_id}", "question": "Why?", "state": state_of(checks)}
    return CaseReport(id=case_id, checks=checks, **(fields | more))


def report(*cases: CaseReport, **more: Any) -> Report:
    server = ServerSeen(model="/models/kimi", address="http://127.0.0.1:8000/v1", kind="vllm", version="0.32.0", max_model_len=8192)
    fields = {"suite": "t", "title": {"en": "Mine", "zh": "我的"}, "server": server, "started_at": "2026-11-30T20:00:00+00:00"}
    return Report(cases=cases, **(fields | more))


def nasty() -> Report:
    seen = Attempt(
        rounds=(
            RoundSeen(
                request={"model": NASTY, "messages": [{"role": "user", "content": NASTY + "\nJSON\n"}]},
                thought=NASTY,
                answer=NASTY,
                calls=(CallSeen(id=NASTY, name=NASTY, arguments=NASTY, error=NASTY),),
                finish_reason=NASTY,
            ),
        ),
        failure=FailureSeen(code="endpoint.rejected", params={"address": NASTY, "status": "400", "message": NASTY}),
    )
    wrong = [check("contains", "fail", 0, expected=NASTY, got=NASTY, attempt=0), check("answered", "fail", 0, attempt=0)]
    server = ServerSeen(model=NASTY, address="http://127.0.0.1:8000/v1", version=NASTY, flags=(NASTY,))
    return report(
        case("bad", *wrong, title=NASTY, about=NASTY, question=NASTY, note=NASTY, attempts=(seen,)),
        case("hand", check("manual", "open", 0, attempt=0), manual=NASTY, attempts=(seen,)),
        case("slow", check("total_time", "warn", 0, got="9 s", attempt=0), attempts=(seen,)),
        case("good", check("closed")),
        server=server,
        about=NASTY,
        overrides={"mode": NASTY},
    )


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


@pytest.mark.parametrize("language", LANGUAGES)
def test_html_needs_nothing_and_lets_nothing_loose(language: str) -> None:
    html = as_html(nasty(), texts(language), compare(nasty(), nasty()))
    tags = Tags()
    tags.feed(html)
    assert not {"script", "img", "iframe", "link", "a", "form"} & {tag for tag, _ in tags.found}
    assert not any(name.startswith("on") or name in ("href", "src") for _, attributes in tags.found for name in attributes)
    assert "7*7" in html and "49" not in html and "http://" not in html.replace("http://127.0.0.1:8000/v1", "")
    assert "curl -sS" in html and ("Question" in html or "问题" in html)


@pytest.mark.parametrize("language", LANGUAGES)
def test_markdown_quotes_what_was_said(language: str) -> None:
    text = as_markdown(nasty(), texts(language), compare(nasty(), nasty()))
    rendered = MarkdownIt("commonmark", {"html": True}).enable("table").render(text)
    tags = Tags()
    tags.feed(rendered)
    assert {tag for tag, _ in tags.found} <= {"h1", "h2", "p", "strong", "table", "thead", "tbody", "tr", "th", "td", "pre", "code"}
    assert rendered.count("<h2>") == 5


def test_junit_is_xml_whatever_was_said() -> None:
    root = xml.fromstring(as_junit(nasty(), texts("en")))
    suite = root.find("testsuite")
    assert suite is not None and suite.attrib["tests"] == "4" and suite.attrib["failures"] == "1" and suite.attrib["skipped"] == "1"
    by_name = {each.attrib["name"].split(":")[0]: each for each in suite.iter("testcase")}
    failure = by_name["bad"].find("failure")
    assert failure is not None and failure.attrib["type"] == "contains" and "<script>" in (failure.text or "")
    assert by_name["hand"].find("skipped") is not None and by_name["slow"].find("system-out") is not None and len(by_name["good"]) == 0


def test_json_reads_back(tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    path.write_text(nasty().to_json(), encoding="utf-8")
    assert read_report(path) == nasty()
    assert json.loads(path.read_text(encoding="utf-8"))["format"] == "kimi-demo-qa"


@pytest.mark.parametrize("written", ["", "[]", '{"format": "other", "suite": "x"}', '{"suite": 7}'])
def test_another_file_is_no_baseline(written: str, tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    path.write_text(written)
    with pytest.raises(Failure) as caught:
        read_report(path)
    assert caught.value.code == "qa.no_report"
    with pytest.raises(Failure) as caught:
        read_report(tmp_path / "none.json")
    assert caught.value.code == "qa.unreadable"


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_check_and_state_has_its_words(language: str) -> None:
    words = texts(language)
    for name in CHECKS:
        assert words.say(f"qa.check.{name}")
    empty = as_html(report(), words)
    assert "<h1>" in empty and "kimi" in as_markdown(report(case("c", state="waiting")), words)


def test_a_failure_is_told_in_words() -> None:
    seen = Attempt(failure=FailureSeen(code="endpoint.refused", params={"address": "http://h:1/v1"}))
    text = as_markdown(report(case("c", check("answered", "fail", 0, attempt=0), attempts=(seen,))), texts("en"))
    assert "Nothing is listening at http://h:1/v1" in text


def test_comparing_puts_what_is_worse_first() -> None:
    before = report(
        case("a", check("closed"), check("no_leaks", "fail", 0)),
        case("b", check("contains", "pass", 5, 5)),
        case("old", check("closed")),
        case("same", check("closed")),
        case("skipped", check("prompt", "skip", 0, 0)),
    )
    after = report(
        case("new", check("closed", "fail", 0)),
        case("a", check("closed", "fail", 0), check("no_leaks")),
        case("b", check("contains", "pass", 4, 5)),
        case("old", state="waiting"),
        case("same", check("closed")),
        case("skipped", check("prompt", "skip", 0, 0)),
    )
    found = compare(before, after)
    assert [(change.kind, change.case, change.check) for change in found.changes] == [
        ("worse", "a", "closed"),
        ("worse", "b", "contains"),
        ("gone", "old", None),
        ("better", "a", "no_leaks"),
        ("new", "new", None),
    ]
    assert found.worse == 2 and found.same == 2
    assert compare(before, before).changes == ()


def test_could_not_run() -> None:
    gone = Attempt(failure=FailureSeen(code="endpoint.refused"))
    assert report(case("a", check("answered", "fail", 0), attempts=(gone,))).could_not_run
    assert not report(case("a", attempts=(gone,)), case("b", attempts=(Attempt(),))).could_not_run
    assert report(stopped=True).could_not_run and not report().could_not_run
