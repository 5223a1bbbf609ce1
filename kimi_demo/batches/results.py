"""`Result`: what became of one row, as a line of the results' JSON Lines file. Pure."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from kimi_demo.batches.encoding import unreadable
from kimi_demo.dialect.conversation import Message


@dataclass(frozen=True, slots=True)
class Result:
    """index, line, prompt, columns, custom_id: of its `Row`. messages: of a conversation, None where the prompt is all of it.

    rendered_prompt: as the chat template wrote it; reasoning: None when the row did not think; seconds: in the engine.
    error: the code of a Failure (error_params: its parameters), None when the row ran. parameters: fields of `Sampling` in force.
    versions: of the programs that ran it; run: the fingerprint of its run; finished_at: ISO 8601, UTC.
    """

    index: int
    line: int
    prompt: str
    custom_id: str | None = None
    messages: list[Message] | None = None
    rendered_prompt: str | None = None
    reasoning: str | None = None
    answer: str = ""
    finish_reason: str | None = None
    prompt_tokens: int = 0
    completion_tokens: int = 0
    reasoning_tokens: int | None = None
    seconds: float = 0.0
    error: str | None = None
    error_params: dict[str, str] = field(default_factory=dict)
    thinking: bool = True
    parameters: Mapping[str, Any] = field(default_factory=dict)
    model: str = ""
    engine: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)
    run: str = ""
    finished_at: str = ""
    columns: Mapping[str, Any] = field(default_factory=dict)

    @property
    def cut_off(self) -> bool:
        """The token limit ended it."""
        return self.finish_reason == "length"

    @property
    def cut_off_in_thought(self) -> bool:
        return self.cut_off and not self.answer.strip()

    def to_line(self) -> bytes:
        """UTF-8, with its line end."""
        told = {name: getattr(self, name) for name in _NAMES}
        try:
            return (json.dumps(told, ensure_ascii=False) + "\n").encode()
        except UnicodeEncodeError:  # half a character: as an escape it survives
            return (json.dumps(told) + "\n").encode()


_NAMES = tuple(one.name for one in fields(Result))


def from_line(line: bytes) -> Result:
    """Fields that a later version added are left out. Raises ValueError for anything that is no result."""
    found = json.loads(line)
    if not isinstance(found, dict) or type(found.get("index")) is not int or found["index"] < 0:
        raise ValueError("no result")
    try:
        return Result(**{name: found[name] for name in _NAMES if name in found})
    except TypeError as error:
        raise ValueError(str(error)) from None


def read_results(path: Path) -> Iterator[Result]:
    """The results in the order in which they finished; may be called while the file grows (a half-written last line is left out).

    Raises Failure("batches.unreadable"), ValueError for a line that is no result.
    """
    try:
        with path.open("rb") as file:
            for line in file:
                if not line.endswith(b"\n"):
                    return
                yield from_line(line)
    except OSError as error:
        raise unreadable(path, error) from error
