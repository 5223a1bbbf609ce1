"""The form of a launch, as a browser sends it: to `LaunchOptions`, or to the field that is wrong and why."""

from pydantic import ValidationError

from kimi_demo.dialect.failure import Failure
from kimi_demo.engines.launch_options import LaunchOptions
from kimi_demo.ui.texts import Texts

_PROBLEMS = {
    "int_parsing": "whole",
    "int_parsing_size": "whole",
    "int_from_float": "whole",
    "float_parsing": "number",
    "finite_number": "number",
    "greater_than_equal": "at_least",
    "greater_than": "more_than",
    "less_than_equal": "at_most",
    "string_too_long": "too_long",
    "string_pattern_mismatch": "letters",
}


def options_in(fields: dict[str, str | bool], texts: Texts) -> LaunchOptions:
    """The form's fields. Raises Failure("launch.field", name=…, label=…, problem=…) for the first that is wrong."""
    try:
        return LaunchOptions.model_validate(fields)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        name = str(first["loc"][0]) if first["loc"] else "extra"
        known = _PROBLEMS.get(first["type"])
        limits = {key: value for key, value in first.get("ctx", {}).items() if isinstance(value, int | float)}
        limit = next(iter(limits.values()), "")
        problem = (
            texts.say(f"launch_problem.{known}", limit=limit) if known else _told(str(first["msg"]).removeprefix("Value error, "), texts)
        )
        label = label_of(name, texts)
        raise Failure("launch.field", name=name, label=label, problem=problem) from None


def label_of(name: str, texts: Texts) -> str:
    """What the form calls the field `name` of `LaunchOptions`."""
    return texts.strings.get(f"launch_option.{name}.label", name)


def _told(words: str, texts: Texts) -> str:
    """What a check of `LaunchOptions` said: "is not JSON: Expecting value", both parts in the page's language where they are known."""
    what, _, why = words.partition(": ")
    return f"{texts.problem(what)} ({texts.problem(why)})" if why else texts.problem(what)
