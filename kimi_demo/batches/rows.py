"""A row of a batch, and one that could not be made out."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kimi_demo.dialect.conversation import Message
from kimi_demo.dialect.failure import Failure
from kimi_demo.engines.offline_rows import BatchRow, messages_of, prompt_of


@dataclass(frozen=True, slots=True)
class Row:
    """One prompt or conversation.

    index: among the rows that are kept, from 0; the journal counts by it. line: where it begins in the file, from 1.
    columns: what travels along. custom_id, changes, thinking: an OpenAI batch request's own; changes: fields of `Sampling`.
    """

    index: int
    line: int
    ask: BatchRow
    columns: Mapping[str, Any] = field(default_factory=dict)
    custom_id: str | None = None
    changes: Mapping[str, Any] = field(default_factory=dict)
    thinking: bool | None = None

    @property
    def messages(self) -> list[Message]:
        return messages_of(self.ask)

    @property
    def prompt(self) -> str:
        """What it asks, for people."""
        return prompt_of(self.ask)

    @property
    def is_blank(self) -> bool:
        return isinstance(self.ask, str) and not self.ask.strip()

    def digest(self) -> bytes:
        """Equal for rows that ask the same in the same way; 16 bytes."""
        asked: Any = self.ask if isinstance(self.ask, str) and not self.changes and self.thinking is None else None
        if asked is None:
            asked = json.dumps([list(self.messages), dict(self.changes), self.thinking], sort_keys=True)
        return hashlib.blake2b(asked.encode("utf-8", "surrogatepass"), digest_size=16).digest()


@dataclass(frozen=True, slots=True)
class BadRow:
    """A row that cannot be run: `failure` says why, in a sentence of ui/texts."""

    line: int
    failure: Failure
