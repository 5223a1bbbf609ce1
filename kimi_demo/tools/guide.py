"""The four tools of the deployment guide: add, mul, compare, count_letter_in_string.

Names, schemas, descriptions and result texts are FROZEN: the rehearsal model is trained on exactly these
(tests/tools/test_guide.py holds them to the letter). Change one and the adapter must be trained anew.
"""

from decimal import Decimal
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, WithJsonSchema

from kimi_demo.tools.tool import Arguments, Tool


def _whole(value: Any) -> Any:
    """JSON Schema's `integer` admits 3.0; give it to pydantic as 3. (Floats arrive as Decimal, so no digit is lost.)"""
    if isinstance(value, Decimal) and value.is_finite() and value.adjusted() < 10_000 and value == value.to_integral_value():
        return int(value)
    return value


def _decimal(value: Any) -> Any:
    """An integer as written is a number as well; `True` is not."""
    return Decimal(value) if isinstance(value, int) and not isinstance(value, bool) else value


Integer = Annotated[int, BeforeValidator(_whole), WithJsonSchema({"type": "integer"})]
# allow_inf_nan stands before the validator: after it, pydantic would judge by the nearest float, and 1e400 would be infinite.
Number = Annotated[Decimal, Field(allow_inf_nan=False), BeforeValidator(_decimal), WithJsonSchema({"type": "number"})]


class Summands(Arguments):
    a: Annotated[Integer, Field(description="The first number")]
    b: Annotated[Integer, Field(description="The second number")]


class Factors(Arguments):
    a: Annotated[Integer, Field(description="The first factor")]
    b: Annotated[Integer, Field(description="The second factor")]


class Pair(Arguments):
    a: Annotated[Number, Field(description="The first number")]
    b: Annotated[Number, Field(description="The second number")]


class LetterInString(Arguments):
    a: Annotated[str, Field(description="The string to look in")]
    b: Annotated[str, Field(description="The letter to count", min_length=1, max_length=1)]


def add(arguments: Summands) -> str:
    return _digits(arguments.a + arguments.b)


def mul(arguments: Factors) -> str:
    return _digits(arguments.a * arguments.b)


def compare(arguments: Pair) -> str:
    a, b = arguments.a, arguments.b
    relation = "equal to" if a == b else "greater than" if a > b else "less than"
    return f"{a} is {relation} {b}."


def count_letter_in_string(arguments: LetterInString) -> str:
    letter = arguments.b.casefold()
    count = sum(character.casefold() == letter for character in arguments.a)
    times = "time" if count == 1 else "times"
    return f'The letter "{arguments.b}" occurs {count} {times} in "{arguments.a}" (upper and lower case counted alike).'


def _digits(number: int) -> str:
    """`str(number)` without Python's limit of 4,300 digits: Decimal has none."""
    return format(Decimal(number), "f")


GUIDE_TOOLS: tuple[Tool, ...] = (
    Tool("add", "Add two integers and return the exact sum.", Summands, add),
    Tool("mul", "Multiply two integers and return the exact product.", Factors, mul),
    Tool("compare", "Compare two numbers and say whether the first is greater than, less than or equal to the second.", Pair, compare),
    Tool(
        "count_letter_in_string",
        "Count how often a letter occurs in a string. Upper and lower case are counted alike.",
        LetterInString,
        count_letter_in_string,
    ),
)
