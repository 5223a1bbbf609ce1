"""A suite and its cases as they stand in a file, and the cases that are to be run."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from kimi_demo.dialect.sampling import PRESETS, Sampling
from kimi_demo.engines.endpoint_kind import Kind
from kimi_demo.qa.checks_spec import Checks, Strict
from kimi_demo.tools.guide import GUIDE_TOOLS
from kimi_demo.tools.own import NAME

Mode = Literal["thinking", "instant", "raw", "render", "models"]
"""thinking, instant: a chat request. raw: a text completion of `prompt`. render: only the prompt is made, nothing is generated.
models: the list of models."""

Words = str | dict[Literal["en", "zh"], str]
"""A text, or one in each language."""

GUIDE = {tool.name: tool for tool in GUIDE_TOOLS}
MOST_CASES = 2_000


def told(words: Words, language: str) -> str:
    return words if isinstance(words, str) else words.get("zh" if language == "zh" else "en") or next(iter(words.values()), "")


class ToolSpec(Strict):
    """A tool of the suite's own: what the model is told of it, and the text that every valid call returns."""

    name: Annotated[str, Field(pattern=f"^{NAME.pattern}$")]
    description: str = ""
    parameters: dict[str, Any]
    returns: str = "ok"


class Parameters(Strict):
    """As in `Sampling`; what is left out is the suite's, else Sampling's default. preset: one of PRESETS, under the others."""

    preset: str | None = None
    temperature: float | None = Field(None, ge=0, le=2)
    top_p: float | None = Field(None, gt=0, le=1)
    top_k: int | None = Field(None, ge=0)
    min_p: float | None = Field(None, ge=0, le=1)
    max_tokens: int | None = Field(None, ge=1)
    seed: int | None = Field(None, ge=0)
    presence_penalty: float | None = Field(None, ge=-2, le=2)
    frequency_penalty: float | None = Field(None, ge=-2, le=2)
    repetition_penalty: float | None = Field(None, gt=0, le=2)
    thinking_token_budget: int | None = Field(None, ge=0)
    json_schema: dict[str, Any] | None = None

    @model_validator(mode="after")
    def _known(self) -> Self:
        if self.preset is not None and self.preset not in PRESETS:
            raise ValueError(f"there is no preset {self.preset!r}: {', '.join(PRESETS)}")
        return self

    def given(self) -> dict[str, Any]:
        return self.model_dump(exclude_none=True)


class Case(Strict):
    """One question. Exactly one of ask, messages and prompt is given, as the mode needs it; none in mode models.

    tools: names of the guide's tools, "guide" for all four, or tools of the suite's own. max_rounds: 1 asks for the calls only.
    body: fields of the request in place of what would be sent; null leaves one out. stream: "both" asks twice. repeats: how often the
    whole is asked. each: rows of values; the case is run once for each, with {{name}} replaced in every text. needed: share of
    attempts in which a check must pass. warns: what fails is a warning, for things that a right deployment may show.
    only_on: kinds of server; on others the case is left out. manual: what a person has to look for in the reply.
    """

    id: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_.-]{0,79}$")]
    title: Words = ""
    about: Words = ""
    mode: Mode = "thinking"
    ask: str | None = None
    system: str | None = None
    messages: tuple[dict[str, Any], ...] | None = None
    prompt: str | None = None
    tools: tuple[str | ToolSpec, ...] = ()
    tool_choice: str | dict[str, Any] | None = None
    max_rounds: int = Field(8, ge=1, le=32)
    parameters: Parameters = Parameters()
    body: dict[str, Any] = {}
    stream: Literal["streamed", "whole", "both"] = "streamed"
    repeats: int = Field(1, ge=1, le=1000)
    each: tuple[dict[str, str | int | float], ...] = ()
    needed: float = Field(1.0, gt=0, le=1)
    warns: bool = False
    only_on: tuple[Kind, ...] = ()
    manual: Words = ""
    checks: Checks = Checks()

    @model_validator(mode="after")
    def _fits(self) -> Self:
        given = [name for name in ("ask", "messages", "prompt") if getattr(self, name) is not None]
        wanted = {"raw": ("prompt",), "models": ()}.get(self.mode, ("ask", "messages"))
        if self.mode == "models" and given:
            raise ValueError(f"mode models asks nothing: leave out {given[0]}")
        if self.mode != "models" and (len(given) != 1 or given[0] not in wanted):
            raise ValueError(f"mode {self.mode} needs exactly one of: {', '.join(wanted)}")
        for tool in self.tools:
            if isinstance(tool, str) and tool != "guide" and tool not in GUIDE:
                raise ValueError(f"tools: there is no tool {tool!r}: guide, {', '.join(GUIDE)}, or one written out")
        if self.tools and self.mode not in ("thinking", "instant", "render"):
            raise ValueError(f"mode {self.mode} takes no tools")
        if self.stream != "streamed" and self.mode not in ("thinking", "instant"):
            raise ValueError(f"mode {self.mode} knows only stream: streamed")
        self._checks_fit()
        return self

    def _checks_fit(self) -> None:
        checks = self.checks
        if (checks.same_structure or checks.same_text) and self.stream != "both":
            raise ValueError("checks: same_structure and same_text need stream: both")
        if checks.same_tool and self.repeats < 2:
            raise ValueError("checks: same_tool needs repeats of at least 2")
        if checks.not_mixed_up and any("mark" not in row for row in self.each):
            raise ValueError("checks: not_mixed_up needs a `mark` in every row of `each`")
        if (checks.calls or checks.agrees or checks.same_tool or checks.history_kept or checks.calls_arrive) and not self.tools:
            raise ValueError("checks: calls can only be checked where there are tools")
        if checks.model is not None and self.mode != "models":
            raise ValueError("checks: model needs mode: models")
        if checks.prompt is not None and self.mode != "render":
            raise ValueError("checks: prompt needs mode: render")

    @property
    def question(self) -> str:
        """What is asked, for a person's eyes."""
        last = next((m.get("content") for m in reversed(self.messages or ()) if m.get("role") == "user"), "")
        return self.ask or self.prompt or (last if isinstance(last, str) else "")


class Suite(Strict):
    """at_once: requests at the same time. parameters: of all cases that do not say otherwise."""

    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]{0,39}$")]
    title: Words
    about: Words = ""
    at_once: int = Field(4, ge=1, le=512)
    parameters: Parameters = Parameters()
    cases: tuple[Case, ...] = Field(min_length=1, max_length=MOST_CASES)

    @model_validator(mode="after")
    def _distinct(self) -> Self:
        seen: set[str] = set()
        for case in self.cases:
            if case.id in seen:
                raise ValueError(f"the id {case.id!r} is there twice")
            seen.add(case.id)
            if case.checks.not_mixed_up and not case.each:
                raise ValueError(f"{case.id}: not_mixed_up needs `each`")
        return self


@dataclass(frozen=True)
class Planned:
    """A case as it is run. family: the id in the file, which cases made by `each` share. mark, others: what belongs to this case, and
    what to the others of its family."""

    case: Case
    sampling: Sampling
    family: str
    mark: str = ""
    others: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        return self.case.id


@dataclass(frozen=True)
class Overrides:
    """What a whole run does otherwise than its suite says, so that two ways can be compared.

    mode: of all chat cases; where a thought was expected, none is in instant mode, and the other way round. preset: of PRESETS.
    """

    mode: Literal["thinking", "instant"] | None = None
    preset: str | None = None
    repeats: int | None = None

    def told(self) -> dict[str, str]:
        return {name: str(value) for name, value in vars(self).items() if value is not None}


def planned(suite: Suite, overrides: Overrides = Overrides()) -> list[Planned]:
    """The cases to run, in the order of the file."""
    found: list[Planned] = []
    for case in suite.cases:
        rows = [dict(row) for row in case.each] or [{}]
        marks = [str(row.get("mark", "")) for row in rows]
        for index, row in enumerate(rows):
            one = _filled(case, row, index) if case.each else case
            others = tuple({mark for mark in marks if mark and mark != marks[index]})
            one = _overridden(one, overrides)
            found.append(Planned(one, _sampling(suite, one, overrides), case.id, marks[index], others))
    return found


def _filled(case: Case, row: Mapping[str, str | int | float], index: int) -> Case:
    """`case` with {{name}} replaced; a text that is nothing but one placeholder becomes the value itself, a number for example."""
    written = case.model_dump(exclude={"each"}, exclude_unset=True)
    filled = {name: _put(value, row) for name, value in written.items()}
    return Case.model_validate({**filled, "id": f"{case.id}.{index + 1}"})


def _put(value: Any, row: Mapping[str, str | int | float]) -> Any:
    if isinstance(value, dict):
        return {key: _put(each, row) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_put(each, row) for each in value]
    if not isinstance(value, str):
        return value
    for name, given in row.items():
        if value == f"{{{{{name}}}}}":
            return given
        value = value.replace(f"{{{{{name}}}}}", str(given))
    return value


def _overridden(case: Case, overrides: Overrides) -> Case:
    if overrides.repeats is not None and case.mode not in ("render", "models"):
        case = case.model_copy(update={"repeats": max(overrides.repeats, 2) if case.checks.same_tool else overrides.repeats})
    if overrides.mode is None or case.mode not in ("thinking", "instant") or case.mode == overrides.mode:
        return case
    thought = {"present": "absent", "absent": "present"}.get(case.checks.thought or "")
    return case.model_copy(update={"mode": overrides.mode, "checks": case.checks.model_copy(update={"thought": thought})})


def _sampling(suite: Suite, case: Case, overrides: Overrides) -> Sampling:
    """The case's parameters over the suite's, over the preset that either names. A preset of the run's own replaces temperature and the
    like, but not the limits that belong to the question."""
    given = suite.parameters.given() | case.parameters.given()
    preset = given.pop("preset", None)
    if overrides.preset is not None:
        preset = overrides.preset
        given = {name: value for name, value in given.items() if name in ("max_tokens", "seed", "json_schema", "thinking_token_budget")}
    base = PRESETS[preset].sampling if preset else Sampling(temperature=0.0, top_p=0.95)
    return Sampling.model_validate(base.model_dump() | given)
