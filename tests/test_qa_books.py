"""QA runs on disk: what was going on is interrupted after a crash, a broken folder hides no other, ids never lead out of the folder."""

import json
from pathlib import Path

import pytest

from kimi_demo.dialect.failure import Failure
from kimi_demo.qa.reading import SHIPPED, shipped
from kimi_demo.qa.report import CaseReport, Report, ServerSeen, read_report
from kimi_demo.qa_books import Books, Card


def card(**more: object) -> Card:
    return Card.model_validate({"key": "smoke", "title": {"en": "Smoke", "zh": "冒烟"}, "at_once": 4, **more})


def report(*states: str) -> Report:
    cases = tuple(CaseReport.model_validate({"id": f"c{at}", "state": state}) for at, state in enumerate(states))
    return Report(suite="smoke", server=ServerSeen(model="kimi"), cases=cases)


def kept(tmp_path: Path, one: Card, made: Report | None = None) -> Books:
    books = Books(tmp_path)
    books.add(one, shipped("smoke"))
    if made is not None:
        books.save_report(one.id, made)
    return books


def test_what_was_going_on_is_interrupted_after_a_crash(tmp_path: Path) -> None:
    one = card()
    kept(tmp_path, one, report("pass", "running", "waiting"))
    after = Books(tmp_path)
    after.recover()
    assert after.get(one.id).state == "interrupted" and after.get(one.id).counts == {"pass": 1, "waiting": 2}
    found = after.report(one.id)
    assert found is not None and [case.state for case in found.cases] == ["pass", "waiting", "waiting"]
    once_more = Books(tmp_path)
    once_more.recover()
    assert once_more.get(one.id) == after.get(one.id)


@pytest.mark.parametrize("name", SHIPPED)
def test_a_suite_comes_back_as_it_was(name: str, tmp_path: Path) -> None:
    books, one = Books(tmp_path), card(key=name)
    books.add(one, shipped(name))
    assert books.suite(one.id) == shipped(name)


def test_a_broken_folder_hides_no_other(tmp_path: Path) -> None:
    one, two = card(state="done"), card(state="done")
    books = kept(tmp_path, one, report("pass"))
    books.add(two, shipped("smoke"))
    (tmp_path / "runs" / two.id / "card.json").write_text("{")
    stranger = tmp_path / "runs" / "elsewhere"
    stranger.mkdir()
    (stranger / "card.json").write_text(card().model_dump_json())
    after = Books(tmp_path)
    after.recover()
    assert set(after.cards) == {one.id}


def test_a_report_that_is_none_is_said_and_the_run_can_be_deleted(tmp_path: Path) -> None:
    one = card(state="done")
    kept(tmp_path, one, report("pass"))
    (tmp_path / "runs" / one.id / "report.json").write_text('{"format": "other"}')
    books = Books(tmp_path)
    books.recover()
    with pytest.raises(Failure) as caught:
        books.report(one.id)
    assert caught.value.code == "qa.no_report"
    books.delete(one.id)
    assert not (tmp_path / "runs" / one.id).exists() and not books.cards
    with pytest.raises(Failure) as caught:
        books.get(one.id)
    assert caught.value.code == "qa_page.unknown"


def test_the_baseline_outlives_its_run_and_is_a_report_that_the_command_reads(tmp_path: Path) -> None:
    one = card(state="done")
    books = kept(tmp_path, one, report("pass", "fail"))
    books.set_baseline(one.id)
    books.delete(one.id)
    after = Books(tmp_path)
    after.recover()
    found = after.baseline("smoke")
    assert found is not None and found.run == one.id and len(found.cases) == 2
    assert read_report(tmp_path / "baselines" / "smoke.json").cases == found.cases
    after.drop_baseline("smoke")
    assert after.baseline("smoke") is None and not list((tmp_path / "baselines").glob("*.json"))


def test_a_baseline_file_that_is_none_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "baselines").mkdir()
    (tmp_path / "baselines" / "smoke.json").write_text(json.dumps({"suite": "smoke"}))
    assert Books(tmp_path).baseline("smoke") is None


@pytest.mark.parametrize("key", ["../smoke", "a/b", "..", ""])
def test_a_name_never_leads_out_of_the_folder(key: str, tmp_path: Path) -> None:
    with pytest.raises(Failure):
        Books(tmp_path).baseline(key)


def test_a_folder_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "qa").write_text("a file in its place")
    books = Books(tmp_path / "qa")
    with pytest.raises(Failure) as caught:
        books.add(card(), shipped("smoke"))
    assert caught.value.code == "qa.unwritable" and not books.cards


def test_what_cannot_be_written_is_in_memory_all_the_same(tmp_path: Path) -> None:
    one = card()
    books = kept(tmp_path, one)
    (tmp_path / "runs" / one.id / "report.json").mkdir()  # a folder in its place
    with pytest.raises(Failure) as caught:
        books.save_report(one.id, report("pass"))
    assert caught.value.code == "qa.unwritable"
    found = books.report(one.id)
    assert found is not None and found.counts == {"pass": 1}
