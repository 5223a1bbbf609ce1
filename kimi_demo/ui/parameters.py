"""What people put into the fields of the page or of an API call, as sampling parameters; a bad value is named by its field. Pure."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import ValidationError

from kimi_demo.dialect.failure import Failure
from kimi_demo.dialect.json_schema import read_schema
from kimi_demo.dialect.sampling import DEFAULT_PRESET, PRESETS, Sampling
from kimi_demo.engines.endpoint_kind import Kind, takes


@dataclass(frozen=True)
class Field:
    """A field of the page for one of `Sampling`'s. Label and meaning: ui/texts, `parameter.<name>.*`.

    kind: "optional" is a number that may be left to the server; its field holds text, "" for that. step: of a number's arrows.
    """

    name: str
    kind: Literal["number", "optional", "lines", "schema"] = "number"
    step: float = 1

    def shown(self, sampling: Sampling) -> Any:
        """The parameter as the field shows it: a number, or text."""
        value = getattr(sampling, self.name)
        if self.kind == "optional":
            return "" if value is None else f"{value:g}"
        if self.kind == "lines":
            return "\n".join(_escaped(line) for line in value)
        return "" if self.kind == "schema" else value  # no preset has a schema


FIELDS: tuple[Field, ...] = (
    Field("max_tokens", step=256),
    Field("thinking_token_budget", "optional"),
    Field("temperature", step=0.1),
    Field("top_p", step=0.05),
    Field("top_k", "optional"),
    Field("min_p", "optional"),
    Field("seed", "optional"),
    Field("stop", "lines"),
    Field("presence_penalty", "optional"),
    Field("frequency_penalty", "optional"),
    Field("repetition_penalty", "optional"),
    Field("json_schema", "schema"),
)
CHAT_PRESETS = ("guide_thinking", "moonshot_thinking", "moonshot_instant")


def sampling(preset: str, **changes: Any) -> Sampling:
    """The preset's parameters with `changes` that are not None.

    Raises Failure of the `parameters.` family: preset (name, known), or for a field (field, value): number, whole, at_least, above,
    at_most, below, too_long, too_many (limit); field (problem) for anything else.
    """
    return _checked(preset, {name: value for name, value in changes.items() if value is not None})


def from_fields(preset: str, values: Mapping[str, Any]) -> Sampling:
    """The parameters that the page's fields say, by `Field.name`; an empty field means that the server decides.

    Raises Failure of the families `parameters.` (see `sampling`) and `schema.`.
    """
    return _checked(preset, {field.name: _read(field, values[field.name]) for field in FIELDS if field.name in values})


def problem(field: Field, value: Any) -> Failure | None:
    """What is wrong with one field's value; None when nothing is."""
    try:
        from_fields(DEFAULT_PRESET, {field.name: value})
    except Failure as failure:
        return failure
    return None


def is_changed(field: Field, value: Any, preset: str) -> bool:
    """Whether the field says something else than the preset."""
    usual = field.shown(PRESETS[preset].sampling)
    if field.kind == "number":
        return bool(_number(value) != usual)
    if field.kind == "optional" and problem(field, value) is None:
        return bool(_read(field, value) != _read(field, usual))
    return bool(str(value or "").strip() != usual)


def saved_values(saved: object) -> tuple[str, bool, dict[str, Any]]:
    """(preset, thinking, values of all fields) out of what a browser kept. What is not valid (any more) is the preset's."""
    kept = saved if isinstance(saved, dict) else {}
    preset = kept.get("preset")
    preset = preset if isinstance(preset, str) and preset in CHAT_PRESETS else DEFAULT_PRESET
    thinking = kept.get("thinking")
    given = kept.get("values")
    given = given if isinstance(given, dict) else {}
    values = {}
    for field in FIELDS:
        value = given.get(field.name, field.shown(PRESETS[preset].sampling))
        fits = value is None or isinstance(value, int | float if field.kind == "number" else str)
        usable = fits and not isinstance(value, bool) and problem(field, value) is None
        values[field.name] = value if usable else field.shown(PRESETS[preset].sampling)
    return preset, thinking if isinstance(thinking, bool) else PRESETS[preset].thinking, values


def is_taken(field: Field, kind: Kind | None) -> bool:
    """Whether a server of that kind takes the parameter; of an unknown kind it is assumed to."""
    return kind is None or takes(kind, field.name)


def max_tokens_given(value: Any) -> Any:
    """An empty number field arrives as None and means nothing sensible for a limit: that is said, not guessed."""
    return needed("max_tokens", value)


def needed(field: str, value: Any) -> Any:
    if value is None or value == "":
        raise Failure("parameters.number", field=field, value="")
    return value


def optional(name: str, text: str) -> int | float | None:
    """The number in a field that may be empty: None then. Raises Failure("parameters.field")."""
    return _number_in(name, text.strip()) if text.strip() else None


def _checked(preset: str, changes: dict[str, Any]) -> Sampling:
    if preset not in PRESETS:
        raise Failure("parameters.preset", name=preset, known=", ".join(PRESETS))
    values = PRESETS[preset].sampling.model_dump() | {name: _number(value) for name, value in changes.items()}
    try:
        return Sampling(**values)
    except ValidationError as error:
        first = error.errors()[0]
        field = str(first["loc"][0])
        raise _named(field, _short(values[field]), first) from error


_BOUNDS = {
    "greater_than_equal": ("parameters.at_least", "ge"),
    "greater_than": ("parameters.above", "gt"),
    "less_than_equal": ("parameters.at_most", "le"),
    "less_than": ("parameters.below", "lt"),
    "too_long": ("parameters.too_many", "max_length"),
    "string_too_long": ("parameters.too_long", "max_length"),
}
_NO_NUMBER = ("int_parsing", "int_type", "int_parsing_size", "float_parsing", "float_type", "finite_number")


def _named(field: str, value: str, error: Any) -> Failure:
    """What pydantic found, in words of our own: its sentences are English and about its types."""
    kind = error["type"]
    if kind in _BOUNDS and value != "nan":
        code, name = _BOUNDS[kind]
        limit = error["ctx"][name]
        return Failure(code, field=field, value=value, limit=f"{limit:g}" if isinstance(limit, float) else limit)
    if kind == "int_from_float":
        return Failure("parameters.whole", field=field, value=value)
    if kind in _NO_NUMBER or value == "nan":
        return Failure("parameters.number", field=field, value=value)
    return Failure("parameters.field", field=field, value=value, problem=error["msg"])


def _read(field: Field, value: Any) -> Any:
    if field.kind == "number":
        return needed(field.name, value)
    text = value if isinstance(value, str) else ""
    if field.kind == "optional":
        return _number_in(field.name, text.strip()) if text.strip() else None
    if field.kind == "schema":
        return read_schema(text) if text.strip() else None
    return tuple(_unescaped(line) for line in text.splitlines() if line)


def _number_in(name: str, text: str) -> int | float:
    try:
        return int(text) if re.fullmatch(r"[+-]?\d{1,30}", text) else float(text)
    except ValueError:
        raise Failure("parameters.number", field=name, value=_short(text)) from None


def _unescaped(line: str) -> str:
    return line.replace("\\n", "\n").replace("\\t", "\t")


def _escaped(line: str) -> str:
    return line.replace("\n", "\\n").replace("\t", "\\t")


def _number(value: Any) -> Any:
    """4096.0, as number fields give it, is the integer 4096."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 40 else text[:40] + "…"
