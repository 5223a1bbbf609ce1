"""Tools of a visitor's own: a name, a description, a schema and how it answers. Data, never code."""

import json
import re
from collections.abc import Collection
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from kimi_demo.dialect.failure import Failure
from kimi_demo.runs.rows import whole
from kimi_demo.tools.error import ToolError
from kimi_demo.tools.schema_checker import SchemaChecker
from kimi_demo.tools.tool import SchemaTool

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
"""What OpenAI's API and Kimi's parser take as a function's name."""
MOST_DESCRIPTION_CHARS = 4_000
MOST_ANSWER_CHARS = 20_000
MOST_FILLED_CHARS = 1_000_000

Answering = Literal["fixed", "template", "ask"]
Field = Literal["name", "description", "parameters", "answer"]

_PLACEHOLDER = re.compile(r"\{\{([^{}]*)\}\}")


class OwnTool(BaseModel):
    """parameters: the JSON Schema as its owner wrote it. text: the result, or the template, by `answering`; "" where a person is asked."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    description: str = ""
    parameters: str
    answering: Answering = "ask"
    text: str = ""


async def checked(draft: OwnTool, taken: Collection[str], checker: SchemaChecker) -> OwnTool:
    """The tool as it is kept. taken: names of other tools.

    Raises Failure: own_tools.name (name), .name_taken (name), .description_too_long, .text_too_long (both: characters, limit),
    .text_missing, .placeholder (line, name, known), and those of SchemaChecker.read. `field_of` says which field is meant.
    """
    # Half a surrogate pair, which JSON can bring in, could neither be kept nor sent.
    draft = draft.model_copy(update={name: whole(getattr(draft, name)) for name in ("name", "description", "parameters", "text")})
    name = draft.name.strip()
    if not NAME.fullmatch(name):
        raise Failure("own_tools.name", name=name[:80])
    if name in taken:
        raise Failure("own_tools.name_taken", name=name)
    if len(draft.description) > MOST_DESCRIPTION_CHARS:
        raise Failure("own_tools.description_too_long", characters=len(draft.description), limit=MOST_DESCRIPTION_CHARS)
    schema = await checker.read(draft.parameters)
    text = "" if draft.answering == "ask" else draft.text
    if len(text) > MOST_ANSWER_CHARS:
        raise Failure("own_tools.text_too_long", characters=len(text), limit=MOST_ANSWER_CHARS)
    if draft.answering != "ask" and not text.strip():
        raise Failure("own_tools.text_missing")
    if draft.answering == "template":
        properties = schema.get("properties")
        _check_placeholders(text, list(properties) if isinstance(properties, dict) else [])
    return draft.model_copy(update={"name": name, "description": draft.description.strip(), "text": text})


def field_of(failure: Failure) -> Field:
    """The field of the editor that a failure of `checked` is about."""
    if failure.code.startswith("own_tools.name"):
        return "name"
    if failure.code.startswith("own_tools.description"):
        return "description"
    return "answer" if failure.code.startswith(("own_tools.text", "own_tools.placeholder")) else "parameters"


def tool_of(own: OwnTool, checker: SchemaChecker) -> SchemaTool:
    """The tool as a conversation calls it."""

    async def answer(arguments: str) -> str:
        return filled(own.text, arguments) if own.answering == "template" else own.text

    return SchemaTool(
        own.name,
        own.description,
        schema_of(own),
        check=lambda arguments: checker.check(own.parameters, arguments),
        answer=answer,
        asks=own.answering == "ask",
    )


def schema_of(own: OwnTool) -> dict[str, Any]:
    """The schema, free of half surrogate pairs, which can be written in JSON as escapes and cannot be sent."""
    found: dict[str, Any] = json.loads(whole(json.dumps(json.loads(own.parameters), ensure_ascii=False)))
    return found


def filled(template: str, arguments: str) -> str:
    """`template` with each {{name}} replaced by that argument's JSON as the model wrote it (null where it gave none). What is put in is
    not looked at again. Raises ToolError when the text grows too long."""
    values = _members(arguments)
    parts: list[str] = []
    at = room = 0
    for found in _PLACEHOLDER.finditer(template):
        parts += [template[at : found.start()], values.get(found[1], "null")]
        room += len(parts[-1])
        if room > MOST_FILLED_CHARS:
            raise ToolError(f"The tool's template makes a text of more than {MOST_FILLED_CHARS:,} characters of these arguments.")
        at = found.end()
    return "".join([*parts, template[at:]])


def _check_placeholders(template: str, known: list[str]) -> None:
    for found in _PLACEHOLDER.finditer(template):
        if found[1] not in known:
            line = template.count("\n", 0, found.start()) + 1
            raise Failure("own_tools.placeholder", line=line, name=found[1][:60], known=", ".join(known)[:200] or "–")


# Numbers as they are written, however many digits they have.
_DECODER = json.JSONDecoder(parse_int=str, parse_float=str)


def _members(text: str) -> dict[str, str]:
    """Each member of the JSON object `text` with its value's own text."""
    found: dict[str, str] = {}
    at = _blank(text, _blank(text, 0) + 1)
    while text[at] != "}":
        name, at = _DECODER.raw_decode(text, at)
        begin = _blank(text, _blank(text, at) + 1)
        _, end = _DECODER.raw_decode(text, begin)
        found[name] = text[begin:end]
        at = _blank(text, end)
        if text[at] == ",":
            at = _blank(text, at + 1)
    return found


def _blank(text: str, at: int) -> int:
    while at < len(text) and text[at] in " \t\r\n":
        at += 1
    return at
