"""A tool: a function with pydantic-typed arguments, published to the model as JSON Schema and called by name."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict


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
        return {
            "type": "function",
            "function": {"name": self.name, "description": self.description, "parameters": _plain(self.arguments.model_json_schema())},
        }


def _plain(schema: Any) -> Any:
    """`schema` without pydantic's `title`s, which say nothing that the names do not (and cost prompt tokens)."""
    if isinstance(schema, list):
        return [_plain(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    return {key: _plain(value) for key, value in schema.items() if not (key == "title" and isinstance(value, str))}
