"""What a case may check, as it stands in a suite's file. Which function judges what: `qa/judging.py`."""

import re
from decimal import Decimal
from typing import Annotated, Any, Literal

from jsonschema.exceptions import SchemaError
from jsonschema.validators import Draft202012Validator, validator_for
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, field_validator


class Strict(BaseModel):
    """A misspelt name is a mistake, not an extra."""

    model_config = ConfigDict(frozen=True, extra="forbid")


def _text(value: Any) -> Any:
    """YAML reads 9.9 as a number; where a text is meant, it is one."""
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


def _several(value: Any) -> Any:
    return value if isinstance(value, list | tuple) else [value]


Text = Annotated[str, BeforeValidator(_text)]
Texts = Annotated[tuple[Text, ...], BeforeValidator(_several)]
"""One text, or a list of them."""


class AnswerIs(Strict):
    """Of the last round's answer. Upper and lower case count alike in contains, any_of and excludes.

    contains: all of these; any_of: at least one; excludes: none. matches: a regular expression that is found in it. equals: but for
    white space around it. larger: two numbers, the larger one first: the answer is that one alone, or compares them, and rightly
    throughout. json_schema: the answer is JSON of this schema. empty: whether nothing but white space is there.
    """

    contains: Texts = ()
    any_of: Texts = ()
    excludes: Texts = ()
    matches: str | None = None
    equals: Text | None = None
    larger: tuple[Text, Text] | None = None
    json_schema: dict[str, Any] | None = None
    empty: bool | None = None

    @field_validator("matches")
    @classmethod
    def _compiles(cls, value: str | None) -> str | None:
        if value is not None:
            try:
                re.compile(value)
            except re.error as error:
                raise ValueError(f"is no regular expression: {error}") from None
        return value

    @field_validator("larger")
    @classmethod
    def _first_is_larger(cls, value: tuple[str, str] | None) -> tuple[str, str] | None:
        """Placeholders are looked at once they are filled: a case is checked again then."""
        if value is None or any("{{" in each for each in value):
            return value
        if not all(re.fullmatch(r"-?\d+(\.\d+)?", each) for each in value):
            raise ValueError("needs two numbers")
        if Decimal(value[0]) <= Decimal(value[1]):
            raise ValueError("the larger of the two numbers stands first")
        return value

    @field_validator("json_schema")
    @classmethod
    def _is_schema(cls, value: dict[str, Any] | None) -> dict[str, Any] | None:
        if value is not None:
            try:
                validator_for(value, default=Draft202012Validator).check_schema(value)
            except SchemaError as error:
                raise ValueError(f"is no JSON Schema: {error.message[:200]}") from None
        return value


class CallsAre(Strict):
    """Of the calls of all rounds.

    count: how many. first_round: so many in the first reply. tools: their names, in any order. arguments: one object, or a list of them
    in any order: each is the arguments of another call (numbers by value: 8.0 is 8). one_of: some call has one of these.
    valid: all arguments pass their tools' schemas. kimi_ids: ids in Kimi's form, functions.NAME:NUMBER, no two alike.
    chars_at_least: the longest arguments have that many characters.
    """

    count: int | None = Field(None, ge=0)
    tools: Texts | None = None
    arguments: Annotated[tuple[dict[str, Any], ...], BeforeValidator(_several)] = ()
    one_of: tuple[dict[str, Any], ...] = ()
    valid: bool = False
    kimi_ids: bool = False
    first_round: int | None = Field(None, ge=0)
    chars_at_least: int | None = Field(None, ge=1)


class TokensAre(Strict):
    """prompt: exactly that many in the (first) prompt; completion_at_most: of the last round; reasoning_counted: the server says how many
    were thought."""

    prompt: int | None = Field(None, ge=1)
    completion_at_most: int | None = Field(None, ge=1)
    reasoning_counted: bool = False


class TimeIs(Strict):
    """Seconds. What takes longer is reported as a warning; with `strict` it fails."""

    first_token_s: float | None = Field(None, gt=0)
    total_s: float | None = Field(None, gt=0)
    strict: bool = False


class PromptIs(Strict):
    """Of the prompt that the server's template makes of the request."""

    contains: Texts = ()
    excludes: Texts = ()
    ends_with: str | None = None


class ModelIs(Strict):
    """Of the model in /v1/models. path: its id is a path, as without --served-model-name; context: it says how long its context is."""

    path: bool = False
    context: bool = False


class Checks(Strict):
    """answered: the request did not fail; fails_with: it fails, with a failure whose code begins so.

    thought: whether reasoning comes in its own field. closed: the thought ends, and an answer or a call follows. no_leaks: no mark of
    Kimi's dialect stands in thought, answer or arguments. agrees: the answer tells the numbers that the tools returned.
    finish: the last round's finish reason. same_structure: streamed and unstreamed replies are built alike; same_text: and read alike
    (a warning). same_tool: every repeat calls the same tools with the same arguments. history_kept: the prompt of a tool loop's last
    round holds the thoughts and the ids of the rounds before. calls_arrive: no reply announces calls and brings none.
    not_mixed_up: nothing in the reply belongs to another of the cases made by `each` (their `mark`).
    """

    answered: bool = True
    fails_with: str | None = None
    thought: Literal["present", "absent"] | None = None
    closed: bool = False
    no_leaks: bool = False
    answer: AnswerIs | None = None
    calls: CallsAre | None = None
    agrees: bool = False
    finish: Texts = ()
    tokens: TokensAre | None = None
    time: TimeIs | None = None
    same_structure: bool = False
    same_text: bool = False
    same_tool: bool = False
    prompt: PromptIs | None = None
    history_kept: bool = False
    model: ModelIs | None = None
    calls_arrive: bool = False
    not_mixed_up: bool = False
