"""A tool: published to the model with a JSON Schema for its arguments, and called by name.

`Tool` is a function of ours with pydantic-typed arguments; of a `SchemaTool` nothing but the schema is known.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict

from kimi_demo.dialect.events import Problem


class Arguments(BaseModel):
    """Base of every tool's arguments: exact types only (no "3" for 3), and nothing that the schema does not name."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


@dataclass(frozen=True)
class Tool:
    """One callable tool.

    name: as the model writes it; `description` and the fields' descriptions are all it knows of the tool.
    arguments: the pydantic model that the parsed JSON arguments are validated against.
    function: takes the validated arguments, returns the text that the model gets back.
    asks: a person gives the result, and `function` is not called.
    """

    name: str
    description: str
    arguments: type[Arguments]
    function: Callable[[Any], str]
    asks: bool = False

    def schema(self) -> dict[str, Any]:
        """The tool in the OpenAI shape: {"type": "function", "function": {name, description, parameters}}."""
        return _openai(self.name, self.description, _plain(self.arguments.model_json_schema()))


@dataclass(frozen=True)
class SchemaTool:
    """A tool of a visitor's own, or of an MCP server.

    parameters: the JSON Schema of its arguments.
    check: the arguments' JSON text, an object → what is wrong with it by the schema.
    answer: the arguments' JSON text, which passed the check → the text that the model gets back. Raises ToolError.
    asks: a person gives the result, and `answer` is not called. limit_s: the longest that `answer` may take; None: as the toolbox says.
    """

    name: str
    description: str
    parameters: dict[str, Any]
    check: Callable[[str], Awaitable[tuple[Problem, ...]]]
    answer: Callable[[str], Awaitable[str]]
    asks: bool = False
    limit_s: float | None = None

    def schema(self) -> dict[str, Any]:
        """As `Tool.schema`."""
        return _openai(self.name, self.description, self.parameters)


AnyTool = Tool | SchemaTool


def _openai(name: str, description: str, parameters: dict[str, Any]) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "description": description, "parameters": parameters}}


def _plain(schema: Any) -> Any:
    """`schema` without pydantic's `title`s, which say nothing that the names do not (and cost prompt tokens)."""
    if isinstance(schema, list):
        return [_plain(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    return {key: _plain(value) for key, value in schema.items() if not (key == "title" and isinstance(value, str))}
