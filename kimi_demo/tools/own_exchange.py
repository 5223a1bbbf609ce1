"""Own tools as OpenAI tool JSON, out and in. Pure; what comes in is checked like what is typed."""

import json
from collections.abc import Sequence
from typing import Any

from pydantic import ValidationError

from kimi_demo.dialect.failure import Failure
from kimi_demo.tools.own import OwnTool, schema_of

MOST_OWN = 50
"""Tools that are kept for one owner; a file with more could not be taken."""
MOST_BYTES = 5 * 1024 * 1024
OURS = "x-kimi-demo"
"""The member that holds how a tool answers; OpenAI's shape has no place for it, and other programs pass over it."""


def exported(tools: Sequence[OwnTool]) -> bytes:
    """[{"type": "function", "function": {name, description, parameters}, "x-kimi-demo": {answering, text}}, …], as UTF-8."""
    listed = [
        {
            "type": "function",
            "function": {"name": tool.name, "description": tool.description, "parameters": schema_of(tool)},
            OURS: {"answering": tool.answering, "text": tool.text},
        }
        for tool in tools
    ]
    return (json.dumps(listed, ensure_ascii=False, indent=2) + "\n").encode("utf-8", "replace")


def imported(data: bytes) -> list[OwnTool]:
    """The tools in a file: a list of tools, {"tools": [...]}, one tool, or bare functions. A tool that does not say how it answers asks.

    Raises Failure: own_tools.import_too_large (limit_mb), .import_not_json (line, problem), .import_empty, .import_too_many (count, limit),
    .import_entry (number, problem).
    """
    if len(data) > MOST_BYTES:
        raise Failure("own_tools.import_too_large", limit_mb=MOST_BYTES // 1024 // 1024)
    try:
        found = json.loads(data.decode("utf-8-sig"))
    except json.JSONDecodeError as error:
        raise Failure("own_tools.import_not_json", line=error.lineno, problem=error.msg) from None
    except UnicodeDecodeError as error:
        raise Failure("own_tools.import_not_json", line=data[: error.start].count(b"\n") + 1, problem="not UTF-8") from None
    except (RecursionError, ValueError):  # a number of thousands of digits is a ValueError
        raise Failure("own_tools.import_not_json", line=1, problem="nested too deeply, or a number that is too long") from None
    if isinstance(found, dict):
        found = found["tools"] if isinstance(found.get("tools"), list) else [found]
    if not isinstance(found, list) or not found:
        raise Failure("own_tools.import_empty")
    if len(found) > MOST_OWN:
        raise Failure("own_tools.import_too_many", count=len(found), limit=MOST_OWN)
    return [_tool(number, entry) for number, entry in enumerate(found, start=1)]


def _tool(number: int, entry: Any) -> OwnTool:
    def wrong(problem: str) -> Failure:
        return Failure("own_tools.import_entry", number=number, problem=problem)

    if not isinstance(entry, dict):
        raise wrong("not an object")
    function = entry.get("function", entry if "name" in entry else None)
    if not isinstance(function, dict):
        raise wrong('no "function"')
    parameters = function.get("parameters", {"type": "object", "properties": {}})
    if not isinstance(parameters, dict):
        raise wrong('"parameters" is not an object')
    ours = entry.get(OURS)
    answer = {name: ours[name] for name in ("answering", "text") if name in ours} if isinstance(ours, dict) else {}
    try:
        schema = json.dumps(parameters, ensure_ascii=False, indent=2)
    except RecursionError:  # writing takes a little more room than reading
        raise wrong("nested too deeply") from None
    try:
        return OwnTool(
            name=function.get("name", ""),
            description=function.get("description") or "",
            parameters=schema,
            **answer,
        )
    except ValidationError as error:
        raise wrong(f'"{error.errors()[0]["loc"][0]}" cannot be used') from None
