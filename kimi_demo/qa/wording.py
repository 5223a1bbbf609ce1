"""How reports say things: with the words of ui/texts, handed in by who has them."""

from typing import Protocol

from kimi_demo.qa.case import told
from kimi_demo.qa.report import CaseReport
from kimi_demo.qa.verdict import CheckResult


class Speaks(Protocol):
    """`ui.texts.Texts`."""

    @property
    def language(self) -> str: ...

    def say(self, key: str, /, **params: object) -> str: ...

    def failure(self, code: str, params: dict[str, str]) -> tuple[str, str]: ...


def name_of(check: CheckResult, words: Speaks) -> str:
    """The check in words, with its share where it was judged several times."""
    name = words.say(f"qa.check.{check.check}")
    return name if check.counted <= 1 else f"{name} ({check.passed}/{check.counted})"


def got_of(case: CaseReport, check: CheckResult, words: Speaks) -> str:
    """What was got instead; a failure in a person's words."""
    index = check.attempt
    failure = case.attempts[index].failure if index is not None and index < len(case.attempts) else None
    if failure is not None and check.check in ("answered", "fails_with"):
        return " ".join(words.failure(failure.code, dict(failure.params)))
    return check.got


def title_of(case: CaseReport, words: Speaks) -> str:
    return told(case.title, words.language) or case.question[:120] or case.id
