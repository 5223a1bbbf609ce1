"""What a check found, as events of a run and for programs."""

from dataclasses import dataclass, field
from typing import Literal

State = Literal["passed", "failed", "skipped"]


@dataclass(frozen=True, slots=True)
class CheckResult:
    """One check. Words: `check.<name>` in ui/texts. code, params: the failure's, empty when it passed.

    seconds: how long it took. facts: what it saw ("model": …, "tokens": …), for people.
    """

    name: str
    state: State
    seconds: float = 0.0
    code: str = ""
    params: dict[str, str] = field(default_factory=dict)
    facts: dict[str, str] = field(default_factory=dict)
