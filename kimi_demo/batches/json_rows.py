"""One line of a .jsonl file: a string, an object with `prompt` or `messages`, or an OpenAI batch request. Pure."""

import json
from dataclasses import dataclass, field
from typing import Any

from kimi_demo.batches.requests import read_request
from kimi_demo.dialect.conversation import Message
from kimi_demo.dialect.failure import Failure

_ROLES = ("system", "developer", "user", "assistant", "tool")


@dataclass(frozen=True, slots=True)
class Parsed:
    """What a line asks; the fields of `Row`."""

    ask: str | list[Message]
    columns: dict[str, Any] = field(default_factory=dict)
    custom_id: str | None = None
    changes: dict[str, Any] = field(default_factory=dict)
    thinking: bool | None = None


def load(text: str) -> Any:
    """The JSON value of a line. Raises Failure("batches.not_json", column=…, problem=…)."""
    try:
        return json.loads(text, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        raise Failure("batches.not_json", column=error.colno, problem=error.msg) from None
    except RecursionError:
        raise Failure("batches.not_json", column=1, problem="nested too deeply") from None
    except ValueError as error:
        raise Failure("batches.not_json", column=1, problem=str(error)) from None


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


def parse(text: str, column: str | None = None) -> Parsed:
    """column: the field that holds the prompt or the messages; None: `prompt` or `messages`.

    Raises Failure: batches.not_json, batches.json_kind, batches.json_no_prompt, batches.json_prompt_kind, and the families
    `batches.message` and `batches.request_`.
    """
    value = load(text)
    if isinstance(value, str):
        return Parsed(value)
    if not isinstance(value, dict):
        raise Failure("batches.json_kind", kind=_kind(value))
    if column is None and isinstance(value.get("body"), dict) and ("custom_id" in value or "url" in value):
        return _request(value)
    for name in (column,) if column is not None else ("messages", "prompt"):
        if name in value and (value[name] is not None or name != "messages"):
            rest = {key: item for key, item in value.items() if key != name}
            custom_id = value.get("custom_id")
            return Parsed(_ask(value[name], name), rest, custom_id if isinstance(custom_id, str) else None)
    raise Failure("batches.json_no_prompt", wanted=column or "prompt / messages", found=", ".join(map(str, value)) or "–")


def _ask(value: Any, name: str) -> str | list[Message]:
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return checked_messages(value)
    raise Failure("batches.json_prompt_kind", name=name, kind=_kind(value))


def _request(value: dict[str, Any]) -> Parsed:
    custom_id = value.get("custom_id")
    if custom_id is not None and not isinstance(custom_id, str):
        raise Failure("batches.request_custom_id")
    request = read_request(value)
    rest = {key: item for key, item in value.items() if key not in ("custom_id", "method", "url", "body")}
    return Parsed(checked_messages(request.messages), rest, custom_id, request.changes, request.thinking)


def checked_messages(value: Any) -> list[Message]:
    """Messages in the OpenAI shape. Raises Failure: batches.messages_missing, batches.message_role, batches.message_content (number)."""
    if not isinstance(value, list) or not value:
        raise Failure("batches.messages_missing")
    for number, message in enumerate(value, start=1):
        role = message.get("role") if isinstance(message, dict) else None
        if role not in _ROLES:
            raise Failure("batches.message_role", number=number, known=", ".join(_ROLES))
        content = message.get("content")
        parts_fit = not isinstance(content, list) or all(isinstance(part, dict) and "type" in part for part in content)
        if not parts_fit or (not isinstance(content, str | list) and not (content is None and message.get("tool_calls"))):
            raise Failure("batches.message_content", number=number)
    return value


def _kind(value: Any) -> str:
    """In JSON's own words."""
    names = {bool: "boolean", int: "number", float: "number", list: "array", dict: "object", str: "string"}
    return names.get(type(value), "null")
