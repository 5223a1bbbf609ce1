"""What the QA tab draws: hostile texts are text, failures say what was expected and got, and the regressions come first."""

import pytest

from kimi_demo.dialect.events import Phase
from kimi_demo.dialect.failure import Failure
from kimi_demo.qa.attempt import Attempt, CallSeen, FailureSeen, RoundSeen
from kimi_demo.qa.comparing import compare
from kimi_demo.qa.reading import shipped
from kimi_demo.qa.report import CaseReport, Report, ServerSeen, state_of
from kimi_demo.qa.verdict import CheckResult
from kimi_demo.qa_books import Card
from kimi_demo.qa_suites import Offered
from kimi_demo.ui.texts import LANGUAGES, texts
from kimi_demo.ui.view.qa_case import whole_html
from kimi_demo.ui.view.qa_compare import BASELINE, NOTHING, compare_html
from kimi_demo.ui.view.qa_page import frame_html, runs_html, stranger_html, suites_html
from kimi_demo.ui.view.qa_run import FORMS, Shown, case_html, head_html, places_html

EN = texts("en")
EVIL = "<img src=x onerror=alert(1)>\"'</pre></textarea>"


def check(outcome: str = "fail", name: str = "contains", **more: object) -> CheckResult:
    fields = {"check": name, "outcome": outcome, "passed": int(outcome == "pass"), "counted": 1, **more}
    return CheckResult.model_validate(fields)


def case(case_id: str, *checks: CheckResult, **more: object) -> CaseReport:
    return CaseReport.model_validate({"id": case_id, "title": case_id, "checks": checks, "state": state_of(checks), **more})


def report(*cases: CaseReport, model: str = "kimi") -> Report:
    return Report(suite="smoke", title="Smoke", server=ServerSeen(model=model, address="http://127.0.0.1:1/v1"), cases=cases)


def card(state: str = "done", **more: object) -> Card:
    return Card.model_validate({"key": "smoke", "title": "Smoke", "at_once": 4, "state": state, **more})


def evil() -> CaseReport:
    seen = RoundSeen(
        request={"messages": [{"role": "user", "content": EVIL}]},
        thought=EVIL,
        answer=EVIL,
        calls=(CallSeen(id=EVIL, name=EVIL, arguments=EVIL, error=EVIL),),
        finish_reason=EVIL,
    )
    attempts = (Attempt(rounds=(seen,), prompt=EVIL), Attempt(number=2, rounds=(seen,), failure=FailureSeen(code=EVIL)))
    checks = (check(expected=EVIL, got=EVIL, attempt=0), check("open", "manual"))
    return case(EVIL, *checks, title=EVIL, about=EVIL, question=EVIL, manual=EVIL, note=EVIL, attempts=attempts)


def test_hostile_texts_are_text() -> None:
    made, one = report(evil(), model=EVIL), card(title=EVIL, preset=EVIL, model=EVIL, failure=EVIL)
    shown = [
        suites_html([Offered(EVIL, True, None, Failure("qa.suite_wrong", path=EVIL, line=1, problem=EVIL))], EN),
        runs_html([one], "", frozenset(), EN),
        head_html(Shown(one, made, trouble=Failure("qa.unwritable", path=EVIL, error=EVIL)), EN),
        case_html(0, one.id, made.cases[0], EN),
        whole_html(made, made.cases[0], one.id, EN),
        compare_html(compare(report(case(EVIL, check("pass")), model=EVIL), made), [one], NOTHING, True, one.id, EN),
    ]
    for html in shown:
        assert "&lt;img" in html and "<img" not in html and "&lt;/pre&gt;&lt;/textarea&gt;" in html


def test_an_own_suites_title_is_text() -> None:
    suite = shipped("smoke").model_copy(update={"title": EVIL, "about": EVIL})
    html = suites_html([Offered(EVIL, True, suite, cases=6)], EN)
    assert "&lt;img" in html and "<img" not in html and 'value="&lt;img' in html


def test_a_failure_says_what_was_expected_and_got_and_how_to_repeat_it() -> None:
    seen = Attempt(rounds=(RoundSeen(request={"model": "kimi", "messages": []}, answer="Red."),))
    wrong = case("colour", check(expected="blue", got="Red.", attempt=0), question="Which colour?", attempts=(seen,))
    line, whole = case_html(3, "ab", wrong, EN), whole_html(report(wrong), wrong, "ab", EN)
    assert "<code>blue</code>" in line and "<code>Red.</code>" in line and 'data-lazy="kimi/qa/runs/ab/case/colour"' in line
    for words in ("Which colour?", ">blue<", ">Red.<", "curl -sS", "http://127.0.0.1:1/v1/chat/completions", "$KIMI_DEMO_API_KEY"):
        assert words in whole


def test_a_case_that_was_not_asked_shows_its_question() -> None:
    html = case_html(0, "ab", CaseReport(id="c", question="Which colour?"), EN)
    assert "Which colour?" in html and "data-lazy" not in html and 'data-state="waiting"' in html


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_can_be_done_with_a_run(language: str) -> None:
    words = texts(language)
    bad = report(case("a", check("pass")), case("b", check()), CaseReport(id="c"))
    going = head_html(Shown(card("running"), bad, 3.0, Phase("connecting")), words)
    assert 'data-act="qa_stop"' in going and "qa_again" not in going and "qa_delete" not in going and words.say("phase.connecting") in going
    assert words.say("qa_page.far", done=2, total=3) in going
    for state in ("done", "stopped", "interrupted", "failed"):
        html = head_html(Shown(card(state), bad), words)
        assert words.say("qa_page.again_open", count=2) in html and "qa_stop" not in html and 'data-act="qa_delete"' in html
        assert all(f'data-qa-download="{form}"' in html for form in FORMS)
    good = head_html(Shown(card(), report(case("a", check("pass"))), baseline="another"), words)
    assert "qa_again" not in good and 'data-act="qa_baseline"' in good
    one = card()
    assert 'data-act="qa_baseline"' not in head_html(Shown(one, report(case("a", check("pass"))), baseline=one.id), words)
    never = head_html(Shown(card("failed", failure="server.off"), None), words)
    assert words.say("qa_page.go_on") in never and "data-qa-download" not in never


def test_regressions_come_first() -> None:
    before = report(case("better", check()), case("worse", check("pass")), case("same", check("pass")))
    after = report(case("better", check("pass")), case("worse", check()), case("same", check("pass")))
    html = compare_html(compare(before, after), [card(preset="tools")], BASELINE, True, "ab", EN)
    assert html.index('data-change="worse"') < html.index('data-change="better"') and 'data-change="same"' not in html
    assert 'data-verdict="worse"' in html and EN.say("preset.tools.label") in html and 'data-act="qa_baseline_drop"' in html
    assert "<table" not in compare_html(None, [card()], NOTHING, False, "ab", EN)
    assert "<select" not in compare_html(None, [], NOTHING, False, "ab", EN)


def test_the_frame_and_the_places() -> None:
    assert "<form" in frame_html("b", EN) and "<form" not in stranger_html(EN)
    assert places_html(3).count("<li ") == 3


def test_a_long_text_is_cut_on_the_page() -> None:
    long = case("a", check("pass"), question="x" * 50_000, attempts=[Attempt(number=at) for at in range(1, 40)])
    html = whole_html(report(long), long, "ab", EN)
    assert "(+30,000)" in html and html.count('class="qa-attempt"') == 20 and EN.say("qa_page.more_attempts", count=19) in html
