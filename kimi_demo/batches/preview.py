"""What the chat template makes of rows, and which of them do not fit the context: known before an engine is loaded."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from kimi_demo.batches.rows import BadRow, Row
from kimi_demo.dialect.conversation import Message
from kimi_demo.dialect.failure import Failure

_TEMPLATE_BYTES = 64
"""More than the tokens of the marks that a chat template puts around one message, and at its ends."""


@dataclass(frozen=True)
class Rendered:
    """A row as the model reads it. prompt: None where the one who counts does not say; tokens: of all of it."""

    row: Row
    prompt: str | None
    tokens: int | None


class Renderer(Protocol):
    """Renders and counts. An `Endpoint` can do both as well, but takes two requests for each row."""

    def render(self, messages: list[Message], *, thinking: bool) -> str: ...

    def count(self, prompt: str) -> int: ...


class TokenizerRenderer:
    """With the model's own tokenizer and template, as vLLM uses them. Takes a second or two to make; needs transformers, not vLLM.

    folder: of the model (or its hub id); named: a person chose it, so its own code is trusted. Raises Failure("batches.no_tokenizer").
    """

    def __init__(self, folder: str, *, named: bool) -> None:
        from transformers import AutoTokenizer

        try:
            self._tokenizer: Any = AutoTokenizer.from_pretrained(folder, trust_remote_code=named)
        except Exception as error:  # of the hub, the files or the tokenizer's own code
            raise Failure("batches.no_tokenizer", model=folder, error=" ".join(str(error).split())[:200]) from error

    def render(self, messages: list[Message], *, thinking: bool) -> str:
        return str(self._tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True, thinking=thinking))

    def count(self, prompt: str) -> int:
        return len(self._tokenizer.encode(prompt, add_special_tokens=False))


def preview(rows: Iterable[Row], renderer: Renderer, *, thinking: bool) -> list[Rendered]:
    """Each row with its prompt and count; a row that the template refuses has neither."""
    found = []
    for row in rows:
        try:
            prompt = renderer.render(row.messages, thinking=thinking if row.thinking is None else row.thinking)
        except Exception:  # whatever the template raised: the engine will say it of this row
            found.append(Rendered(row, None, None))
        else:
            found.append(Rendered(row, prompt, renderer.count(prompt)))
    return found


def long_rows(rows: Iterable[Row | BadRow], renderer: Renderer, *, limit: int, thinking: bool) -> Iterator[tuple[Row, Failure]]:
    """The rows that leave no room for an answer in a context of `limit` tokens.

    Few have to be counted: a token is at least one byte long, so that most rows are seen to fit at a glance.
    """
    for row in rows:
        if isinstance(row, BadRow) or _most_tokens(row.messages) < limit:
            continue
        (seen,) = preview([row], renderer, thinking=thinking)
        if seen.tokens is not None and seen.tokens >= limit:
            yield row, Failure("batch.prompt_too_long", tokens=seen.tokens, limit=limit)


def too_long(rows: Iterable[Row | BadRow], renderer: Renderer, *, limit: int, thinking: bool) -> Iterator[BadRow]:
    """`long_rows` as rows that cannot be run."""
    for row, failure in long_rows(rows, renderer, limit=limit, thinking=thinking):
        yield BadRow(row.line, failure)


def _most_tokens(messages: list[Message]) -> int:
    return _TEMPLATE_BYTES + sum(len(str(message).encode("utf-8", "surrogatepass")) + _TEMPLATE_BYTES for message in messages)
