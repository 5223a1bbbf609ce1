"""What happens in a run, one small frozen record each. Whatever is shown, stored, exported or checked is derived from these."""

from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter


@dataclass(frozen=True, slots=True)
class Asked:
    """The run's question, first in its list. `parameters`: the fields of the request that a person chose."""

    text: str
    parameters: dict[str, Any] = field(default_factory=dict)
    type: Literal["asked"] = "asked"


@dataclass(frozen=True, slots=True)
class Phase:
    """What long work is doing now. `name` is a key of ui/texts (`phase.<name>`); done/total count the phase's own units."""

    name: str
    done: int | None = None
    total: int | None = None
    params: dict[str, str] = field(default_factory=dict)
    type: Literal["phase"] = "phase"


@dataclass(frozen=True, slots=True)
class RoundStarted:
    """A request goes to the model; a chat reply has one round (index 0), a tool conversation several.

    request: the JSON body as sent, without key or address. can_continue: whether this server can be asked to go on with a reply that
    was cut off. context: tokens that prompt and reply may have together, None where the server does not say.
    """

    index: int
    request: dict[str, Any] = field(default_factory=dict)
    can_continue: bool = False
    context: int | None = None
    type: Literal["round_started"] = "round_started"


@dataclass(frozen=True, slots=True)
class CarriedOver:
    """This round goes on with what an earlier run (`run_id`) had written; what follows is appended to it.

    thinking_seconds, reasoning_tokens: that run's, None where unknown.
    """

    run_id: str
    thought: str
    answer: str
    thinking_seconds: float | None = None
    reasoning_tokens: int | None = None
    type: Literal["carried_over"] = "carried_over"


@dataclass(frozen=True, slots=True)
class PromptTokens:
    """What the server makes of a raw prompt: `count` tokens, of which `pieces` are the first as text.

    A character that several tokens share is one piece; `sizes` says how many tokens each piece is.
    """

    count: int
    pieces: tuple[str, ...] = ()
    sizes: tuple[int, ...] = ()
    type: Literal["prompt_tokens"] = "prompt_tokens"


@dataclass(frozen=True, slots=True)
class Remark:
    """Something about the server that a person should know. `name` is a key of ui/texts (`remark.<name>`)."""

    name: str
    params: dict[str, str] = field(default_factory=dict)
    type: Literal["remark"] = "remark"


@dataclass(frozen=True, slots=True)
class ThoughtDelta:
    """More of the reasoning."""

    text: str
    type: Literal["thought_delta"] = "thought_delta"


@dataclass(frozen=True, slots=True)
class AnswerDelta:
    """More of the answer."""

    text: str
    type: Literal["answer_delta"] = "answer_delta"


@dataclass(frozen=True, slots=True)
class ToolCallDelta:
    """More of the round's tool call number `index`: its id and name once, its arguments in fragments of JSON."""

    index: int
    id: str = ""
    name: str = ""
    arguments: str = ""
    type: Literal["tool_call_delta"] = "tool_call_delta"


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong with a call's arguments. where: "a", "many.1", "" for the whole; rule: of the schema ("type", "required", …), or
    "json" when there is nothing that a schema could be held against; told: in words, as the model gets it."""

    where: str
    rule: str
    told: str


@dataclass(frozen=True, slots=True)
class ToolChecked:
    """Call number `index` of the current round was held against its tool's schema: it passed when there are no problems."""

    index: int
    problems: tuple[Problem, ...] = ()
    type: Literal["tool_checked"] = "tool_checked"


@dataclass(frozen=True, slots=True)
class ToolWaiting:
    """Call number `index` waits for a person: for leave to be carried out, or for its result. limit_s: seconds that it waits."""

    index: int
    wants: Literal["approval", "result"]
    limit_s: float
    type: Literal["tool_waiting"] = "tool_waiting"


@dataclass(frozen=True, slots=True)
class ToolDecided:
    """What came of the waiting. answered: a person gave the result; too_late: nobody said anything in time."""

    index: int
    decision: Literal["approved", "refused", "answered", "too_late"]
    type: Literal["tool_decided"] = "tool_decided"


@dataclass(frozen=True, slots=True)
class ToolStarted:
    """Call number `index` is being carried out."""

    index: int
    type: Literal["tool_started"] = "tool_started"


@dataclass(frozen=True, slots=True)
class ToolEdited:
    """A person has put other arguments, or another result, in place of those of call number `index` of the current round."""

    index: int
    what: Literal["arguments", "result"]
    type: Literal["tool_edited"] = "tool_edited"


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What call number `index` of the current round returned: `result` as the model gets it, or the `error` it gets instead."""

    index: int
    id: str
    name: str
    result: str | None = None
    error: str | None = None
    seconds: float = 0.0
    type: Literal["tool_result"] = "tool_result"


@dataclass(frozen=True, slots=True)
class Usage:
    """Token counts of the round so far (`final` false: the server's running count). None: the server did not say."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    reasoning_tokens: int | None = None
    cached_tokens: int | None = None
    final: bool = True
    type: Literal["usage"] = "usage"


@dataclass(frozen=True, slots=True)
class Finished:
    """The round's finish reason, as the server gave it: stop, length, tool_calls, …"""

    reason: str
    type: Literal["finished"] = "finished"


@dataclass(frozen=True, slots=True)
class Failed:
    """What went wrong: a `Failure` as an event."""

    code: str
    params: dict[str, str] = field(default_factory=dict)
    type: Literal["failed"] = "failed"


@dataclass(frozen=True, slots=True)
class BatchStarted:
    """A batch of `rows` prompts goes to the engine."""

    rows: int
    type: Literal["batch_started"] = "batch_started"


@dataclass(frozen=True, slots=True)
class BatchProgress:
    """Where a batch is between finished rows: counts of rows, and tokens generated so far by all of them."""

    done: int
    running: int
    waiting: int
    generated_tokens: int
    type: Literal["batch_progress"] = "batch_progress"


@dataclass(frozen=True, slots=True)
class RowFinished:
    """One prompt of a batch with what became of it. `reasoning` is None when the row was not asked to think;
    `error` is the failure code of a row that could not run. `seconds`: from its entering the engine to its last token."""

    index: int
    prompt: str
    reasoning: str | None = None
    answer: str = ""
    finish_reason: str | None = None
    prompt_tokens: int = 0
    completion_tokens: int = 0
    seconds: float = 0.0
    error: str | None = None
    error_params: dict[str, str] = field(default_factory=dict)
    type: Literal["row_finished"] = "row_finished"


@dataclass(frozen=True, slots=True)
class Attempt:
    """One of many conversations about the same question: its calls in order (name, arguments as written, the round), its answer.

    error: the code of the failure that it ended with; tokens: of all its rounds, None where the server did not say.
    """

    number: int
    calls: tuple[tuple[str, str, int], ...] = ()
    answer: str = ""
    rounds: int = 0
    seconds: float = 0.0
    tokens: int | None = None
    error: str | None = None
    error_params: dict[str, str] = field(default_factory=dict)
    type: Literal["attempt"] = "attempt"


@dataclass(frozen=True, slots=True)
class Ended:
    """The last event of every run. interrupted: the app died meanwhile (written when it is next started)."""

    state: Literal["done", "stopped", "failed", "interrupted"]
    type: Literal["ended"] = "ended"


Event = (
    Asked
    | Phase
    | RoundStarted
    | CarriedOver
    | PromptTokens
    | Remark
    | ThoughtDelta
    | AnswerDelta
    | ToolCallDelta
    | ToolChecked
    | ToolWaiting
    | ToolDecided
    | ToolStarted
    | ToolEdited
    | ToolResult
    | Usage
    | Finished
    | Failed
    | BatchStarted
    | BatchProgress
    | RowFinished
    | Attempt
    | Ended
)

EVENT: TypeAdapter[Event] = TypeAdapter(Annotated[Event, Field(discriminator="type")])
"""Reads and writes events as JSON: `EVENT.dump_json(event)`, `EVENT.validate_json(text)`."""


@dataclass(frozen=True, slots=True)
class Timed:
    """An event and when it happened: `at` seconds after its run started (monotonic clock)."""

    at: float
    event: Event
