"""What people put into the fields of the page or of an API call, as sampling parameters; a bad value is named by its field."""

from typing import Any

from pydantic import ValidationError

from kimi_demo.dialect.failure import Failure
from kimi_demo.dialect.sampling import PRESETS, Sampling


def sampling(preset: str, **changes: Any) -> Sampling:
    """The preset's parameters with `changes` that are not None.

    Raises Failure("parameters.preset", …) or Failure("parameters.field", field=…, value=…, problem=…).
    """
    if preset not in PRESETS:
        raise Failure("parameters.preset", name=preset, known=", ".join(PRESETS))
    values = PRESETS[preset].sampling.model_dump() | {name: _number(value) for name, value in changes.items() if value is not None}
    try:
        return Sampling(**values)
    except ValidationError as error:
        first = error.errors()[0]
        field = str(first["loc"][0])
        raise Failure("parameters.field", field=field, value=_short(values[field]), problem=first["msg"]) from error


def max_tokens_given(value: Any) -> Any:
    """An empty number field arrives as None and means nothing sensible for a limit: that is said, not guessed."""
    if value is None or value == "":
        raise Failure("parameters.field", field="max_tokens", value="", problem="a number is needed")
    return value


def _number(value: Any) -> Any:
    """4096.0, as number fields give it, is the integer 4096."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 40 else text[:40] + "…"
