"""Conversations as files: JSON of OpenAI messages (out and in) and Markdown (out). Pure."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from kimi_demo.dialect.failure import Failure

FORMAT = "kimi-demo-conversation"
MOST_TURNS = 1000


@dataclass(frozen=True)
class Turn:
    """A question and what became of it. details: what is known of the reply beyond its text (model, usage, finish_reason, …).

    images: of the question, as data URLs, so that a file needs nothing beside it.
    """

    question: str
    thought: str = ""
    answer: str = ""
    details: dict[str, Any] = field(default_factory=dict)
    images: tuple[str, ...] = ()

    @property
    def replied(self) -> bool:
        return bool(self.thought or self.answer)


@dataclass(frozen=True)
class Transcript:
    title: str
    turns: Sequence[Turn]
    system: str = ""
    created_at: datetime | None = None
    about: dict[str, str] = field(default_factory=dict)
    """Who made it: program and server, with their versions and flags."""


def as_json(transcript: Transcript) -> bytes:
    """{"format", "title", "created_at", "about", "messages": OpenAI's, "replies": [{"message": index, …details}]} in UTF-8.

    Nothing of ours is in a message, so that the list can be sent to any server as it is. Half a surrogate pair, which a model
    can write and UTF-8 cannot hold, stays as its JSON escape.
    """
    messages: list[dict[str, Any]] = [{"role": "system", "content": transcript.system}] if transcript.system.strip() else []
    replies: list[dict[str, Any]] = []
    for turn in transcript.turns:
        messages.append({"role": "user", "content": _content(turn)})
        if turn.replied:
            replies.append({"message": len(messages), **turn.details})
            messages.append({"role": "assistant", "content": turn.answer, **({"reasoning": turn.thought} if turn.thought else {})})
    whole = {
        "format": FORMAT,
        "title": transcript.title,
        "created_at": transcript.created_at.isoformat() if transcript.created_at else None,
        "about": transcript.about,
        "messages": messages,
        "replies": replies,
    }
    return (json.dumps(whole, ensure_ascii=False, indent=1, default=str) + "\n").encode("utf-8", "backslashreplace")


def _content(turn: Turn) -> str | list[dict[str, Any]]:
    """A question as OpenAI's content: text, or the images and then the text."""
    if not turn.images:
        return turn.question
    parts: list[dict[str, Any]] = [{"type": "image_url", "image_url": {"url": url}} for url in turn.images]
    return [*parts, {"type": "text", "text": turn.question}] if turn.question.strip() else parts


def as_markdown(transcript: Transcript, *, you: str, model: str, thought: str, system: str) -> bytes:
    """you, …: the headings. A thought is quoted, so that no text in it can end it early."""
    parts = [f"# {transcript.title}"]
    if transcript.system.strip():
        parts += [f"## {system}", transcript.system.strip("\n")]
    for turn in transcript.turns:
        parts += [f"## {you}", *(f"![]({url})" for url in turn.images)]
        parts += [turn.question.strip("\n")] if turn.question.strip() else []
        parts.append(f"## {model}")
        if turn.thought.strip():
            parts.append("\n".join(f"> {line}".rstrip() for line in [f"**{thought}**", "", *turn.thought.strip("\n").split("\n")]))
        if turn.answer.strip():
            parts.append(turn.answer.strip("\n"))
    parts += ["---", "\n".join(f"{name}: {value}  " for name, value in transcript.about.items())]
    return ("\n\n".join(parts) + "\n").encode("utf-8", "replace")


class _Text(BaseModel):
    model_config = ConfigDict(extra="ignore")

    type: Literal["text"]
    text: str


class _Url(BaseModel):
    model_config = ConfigDict(extra="ignore")

    url: Annotated[str, Field(pattern=r"^data:image/")]  # of an address elsewhere nothing would be fetched


class _Image(BaseModel):
    model_config = ConfigDict(extra="ignore")

    type: Literal["image_url"]
    image_url: _Url


_Part = Annotated[_Text | _Image, Field(discriminator="type")]


class _Message(BaseModel):
    """A message as people export it from here or elsewhere; what does not show in a conversation is ignored."""

    model_config = ConfigDict(extra="ignore")

    role: Literal["system", "user", "assistant"]
    content: str | list[_Part] | None = None
    reasoning: str | None = None
    reasoning_content: str | None = None

    @property
    def text(self) -> str:
        parts = (self.content,) if isinstance(self.content, str) else [part.text for part in self.content or () if isinstance(part, _Text)]
        return _whole("".join(parts))

    @property
    def images(self) -> tuple[str, ...]:
        parts = () if isinstance(self.content, str) else self.content or ()
        return tuple(part.image_url.url for part in parts if isinstance(part, _Image))

    @property
    def thought(self) -> str:
        return _whole(self.reasoning or self.reasoning_content or "")


def read(text: str | bytes) -> Transcript:
    """Reads `as_json`, or a bare list of messages.

    Raises Failure: chat_import.not_json (problem, line, column), chat_import.shape (problem), chat_import.empty, chat_import.too_many
    (turns, limit); for a message chat_import.message (index, problem), chat_import.field (index, place, problem),
    chat_import.late_system (index), chat_import.no_question (index).
    """
    value = _parsed(text)
    title = value.get("title") if isinstance(value, dict) else ""
    messages = value.get("messages") if isinstance(value, dict) else value
    if not isinstance(messages, list):
        raise Failure("chat_import.shape", problem='"messages" is missing' if messages is None else "no list")
    system, turns = "", list[Turn]()
    for index, message in enumerate(_message(index, each) for index, each in enumerate(messages)):
        match message.role:
            case "system" if index:
                raise Failure("chat_import.late_system", index=index)
            case "system":
                system = message.text
            case "user":
                if not message.text.strip() and not message.images:
                    raise Failure("chat_import.field", index=index, place="content", problem="no text")
                turns.append(Turn(message.text, images=message.images))
            case "assistant":
                if not turns or turns[-1].replied:
                    raise Failure("chat_import.no_question", index=index)
                turns[-1] = replace(turns[-1], thought=message.thought, answer=message.text)
    if not turns:
        raise Failure("chat_import.empty")
    if len(turns) > MOST_TURNS:
        raise Failure("chat_import.too_many", turns=len(turns), limit=MOST_TURNS)
    return Transcript(_whole(title) if isinstance(title, str) else "", turns, system)


def _parsed(text: str | bytes) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise Failure("chat_import.not_json", problem=error.msg, line=error.lineno, column=error.colno) from error
    except UnicodeDecodeError as error:
        raise Failure("chat_import.not_json", problem="no UTF-8 text", line=1, column=error.start + 1) from error
    except (RecursionError, ValueError) as error:  # nested a thousand times; a number of thousands of digits
        raise Failure("chat_import.shape", problem="nested too deeply, or a number that is too long") from error


def _message(index: int, value: Any) -> _Message:
    if not isinstance(value, dict):
        raise Failure("chat_import.message", index=index, problem="an object is needed")
    try:
        return _Message.model_validate(value)
    except ValidationError as error:
        raise _named(index, error.errors()) from error


_PROBLEMS = {
    "missing": "it is missing",
    "string_type": "text is needed",
    "list_type": "a list is needed",
    "string_pattern_mismatch": "only images that are part of the file are taken",
    "union_tag_invalid": "only text and images are taken",
    "union_tag_not_found": "its type is missing",
    "literal_error": "must be system, user or assistant",
}
"""What is wrong, by pydantic's name for it. (Its own sentences are about its models.)"""


def _named(index: int, errors: Iterable[Any]) -> Failure:
    """The first mistake, at the deepest place of it: content.0.text."""
    first = max(errors, key=lambda error: len(error["loc"]))
    path = list(first["loc"])
    named = [part for at, part in enumerate(path) if not (at and isinstance(path[at - 1], int))]  # after a number comes the union's tag
    place = ".".join(str(part) for part in named if isinstance(part, int) or part in _FIELDS)
    return Failure("chat_import.field", index=index, place=place, problem=_PROBLEMS.get(first["type"], "it cannot be used"))


_FIELDS = frozenset(name for model in (_Message, _Text, _Image, _Url) for name in model.model_fields) - {"type"}
"""Names in the file; others in the place of a mistake are pydantic's, for the members of a union."""


def _whole(text: str) -> str:
    """U+FFFD for halves of surrogate pairs: JSON can bring them in, a page cannot show them."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
