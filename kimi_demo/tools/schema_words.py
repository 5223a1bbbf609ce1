"""What jsonschema finds wrong with arguments, in JSON's words instead of Python's. Pure."""

import json
import re
from collections.abc import Iterator
from typing import Any

from kimi_demo.tools.arguments import kind_of, shortened

MOST_PROBLEMS = 20

_KINDS = {
    "integer": "an integer",
    "number": "a number",
    "string": "a string",
    "boolean": "true or false",
    "array": "an array",
    "object": "an object",
    "null": "null",
}

Found = tuple[str, str, str]
"""where ("a", "many.1", "" for the whole), the schema's rule, what is told."""


def problems(error: Any) -> Iterator[Found]:
    """A jsonschema ValidationError as one problem, or as one for each name that is missing or too many."""
    where = ".".join(str(part) for part in error.absolute_path)
    rule, wanted, given = str(error.validator), error.validator_value, error.instance
    match rule:
        case "required":
            # One error comes for each missing name, and says it only in its message.
            quoted = re.match(r"(.*) is a required property$", error.message, re.S)
            missing = [name for name in wanted if isinstance(name, str) and quoted and quoted[1] == repr(name)]
            for name in missing or [name for name in wanted if name not in given]:
                yield _inside(where, name), rule, "is missing"
        case "additionalProperties" if wanted is False and isinstance(given, dict):
            known, patterns = error.schema.get("properties", {}), error.schema.get("patternProperties", {})
            for name in given:
                if name not in known and not any(re.search(pattern, name) for pattern in patterns):
                    yield _inside(where, name), rule, "is not a parameter of this tool"
        case "type":
            kinds = wanted if isinstance(wanted, list) else [wanted]
            yield where, rule, f"must be {' or '.join(_KINDS.get(kind, str(kind)) for kind in kinds)} (got {_shown(given)})"
        case "enum":
            yield where, rule, f"must be one of {shortened(json.dumps(wanted, ensure_ascii=False)[1:-1])} (got {_shown(given)})"
        case "const":
            yield where, rule, f"must be {_shown(wanted)} (got {_shown(given)})"
        case "pattern":
            yield where, rule, f"must match the pattern {shortened(str(wanted))} (got {_shown(given)})"
        case "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum":
            words = {"minimum": "at least", "maximum": "at most", "exclusiveMinimum": "more than", "exclusiveMaximum": "less than"}
            yield where, rule, f"must be {words[rule]} {_shown(wanted)} (got {_shown(given)})"
        case "minLength" | "maxLength" | "minItems" | "maxItems" | "minProperties" | "maxProperties":
            least = "at least" if rule.startswith("min") else "at most"
            unit = {"Length": "characters", "Items": "items", "Properties": "members"}[rule[3:]]
            yield where, rule, f"must have {least} {_shown(wanted)} {unit} (has {len(given):,})"
        case "anyOf" | "oneOf":
            yield where, rule, f"fits none, or more than one, of the {len(wanted)} forms that are allowed (got {_shown(given)})"
        case _:
            yield where, rule, f"does not fit the schema's {shortened(rule)} (got {_shown(given)})"


def _inside(where: str, name: object) -> str:
    return f"{where}.{name}" if where else str(name)


def _shown(value: object) -> str:
    return kind_of(value) if isinstance(value, dict | list) else shortened(json.dumps(value, ensure_ascii=False))
