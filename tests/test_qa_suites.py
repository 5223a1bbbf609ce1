"""The suites that the page offers: a broken file is named with its line, and read again once it was mended."""

import os
from pathlib import Path

import pytest

from kimi_demo.dialect.failure import Failure
from kimi_demo.qa.reading import SHIPPED
from kimi_demo.qa_suites import Catalogue

GOOD = "name: mine\ntitle: Mine\ncases:\n  - {id: one, ask: hi, each: [{n: 1}, {n: 2}]}\n"
BAD = "name: mine\ntitle: Mine\ncases:\n  - id: one\n    asq: hi\n"


def test_shipped_ones_come_first_and_a_broken_file_is_named_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "good.yaml").write_text(GOOD)
    (tmp_path / "bad.yml").write_text(BAD)
    (tmp_path / "notes.txt").write_text("not one")
    (tmp_path / "folder.yaml").mkdir()
    os.mkfifo(tmp_path / "pipe.yaml")  # opening it would wait for ever
    found = Catalogue(tmp_path).look()
    assert [one.key for one in found] == [*SHIPPED, "bad", "good"]
    assert all(one.suite is not None and one.cases > 0 and not one.own for one in found[: len(SHIPPED)])
    bad, good = found[-2:]
    assert bad.suite is None and bad.failure is not None
    assert bad.failure.code == "qa.suite_wrong" and bad.failure.params["path"] == "bad.yml" and bad.failure.params["line"] == "5"
    assert good.own and good.suite is not None and good.cases == 2


def test_a_file_is_read_again_when_it_has_changed_and_only_then(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(BAD)
    catalogue = Catalogue(tmp_path)
    with pytest.raises(Failure) as caught:
        catalogue.suite("mine")
    assert caught.value.code == "qa.suite_wrong"
    path.write_text(GOOD)
    first = catalogue.suite("mine")
    assert catalogue.suite("mine") is first
    path.unlink()
    with pytest.raises(Failure) as caught:
        catalogue.suite("mine")
    assert caught.value.code == "qa.no_suite"


@pytest.mark.parametrize("key", ["../secret", "/etc/passwd", "smoke.yaml", "", "Smoke"])
def test_only_what_is_listed_can_be_named(key: str, tmp_path: Path) -> None:
    (tmp_path / "suites").mkdir()
    (tmp_path / "secret.yaml").write_text(GOOD)
    with pytest.raises(Failure) as caught:
        Catalogue(tmp_path / "suites").suite(key)
    assert caught.value.code == "qa.no_suite"


def test_no_folder_is_no_trouble(tmp_path: Path) -> None:
    assert len(Catalogue(tmp_path / "none").look()) == len(SHIPPED)
