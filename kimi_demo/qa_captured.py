"""Replies that somebody has judged in the page, as cases of a suite of their own: `suites/captured.yaml` in the data folder."""

import threading
from pathlib import Path

from pydantic import ValidationError

from kimi_demo.dialect.failure import Failure
from kimi_demo.dialect.images import image_ids
from kimi_demo.dialect.reply import Reply
from kimi_demo.qa.capturing import as_yaml, case_of
from kimi_demo.qa.case import Case, Words
from kimi_demo.qa.files import write_whole
from kimi_demo.qa.reading import find_suite, read_suite

NAME = "captured"
TITLE: Words = {"en": "Captured replies", "zh": "收集的回复"}


class Captured:
    """Blocking. One process at a time (the data folder is locked by the application)."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / f"{NAME}.yaml"
        self._lock = threading.Lock()

    def keep(self, case: Case) -> None:
        """Adds the case at the end, in the place of the one that was added with its id before. What somebody has written stays.

        Raises Failure: qa_page.not_captured, qa.suite_wrong, qa.unreadable, qa.unwritable.
        """
        with self._lock:
            before = self._text()
            known = {one.id for one in find_suite(NAME, self.path.parent).cases} if before else set()
            if known == {case.id}:
                before = ""
            elif case.id in known:
                before = _without(before, case.id)
            whole = as_yaml(NAME, TITLE, [case])
            if before:
                whole = before.rstrip("\n") + "\n" + whole.partition("\ncases:\n")[2]
            if {one.id for one in read_suite(whole, self.path.name).cases} != known | {case.id}:
                raise Failure("qa_page.not_captured", problem=f"{self.path.name} does not end with its cases")
            write_whole(self.path, whole)

    def _text(self) -> str:
        try:
            return self.path.read_text(encoding="utf-8-sig") if self.path.exists() else ""
        except (OSError, UnicodeDecodeError) as error:
            raise Failure("qa.unreadable", path=self.path.name, error=getattr(error, "strerror", None) or "is not UTF-8 text") from error


def judged_case(first: Reply, case_id: str, title: str, *, good: bool, about: Words, look_for: Words) -> Case:
    """The case that asks again what `first`, the first round of a run, was asked.

    good: as many calls as it made are expected again. look_for: what a person has to look for when it is asked again.
    Raises Failure: qa_page.captured_images, qa_page.captured_continued, qa_page.not_captured.
    """
    messages = first.request.get("messages") or []
    if image_ids(messages):
        raise Failure("qa_page.captured_images")
    if messages and messages[-1].get("role") == "assistant":
        raise Failure("qa_page.captured_continued")
    if not first.request:
        raise Failure("qa_page.not_captured", problem="nothing was sent")
    try:
        case = case_of(first, case_id=case_id, title=title)
    except ValidationError as error:
        raise Failure("qa_page.not_captured", problem=str(error.errors(include_url=False)[0]["msg"])[:200]) from error
    checks = case.checks if good else case.checks.model_copy(update={"calls": None})
    return case.model_copy(update={"about": about, "manual": look_for, "checks": checks})


def _without(text: str, case_id: str) -> str:
    """The file without the case, as `as_yaml` writes one; unchanged where it stands there in another way."""
    found: list[str] = []
    inside = False
    for line in text.splitlines(keepends=True):
        if line.strip() and not line[0].isspace():
            inside = line.rstrip() == f"- id: {case_id}"
        if not inside:
            found.append(line)
    return "".join(found)
