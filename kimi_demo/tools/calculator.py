"""The tool `calculate`: arithmetic by a grammar of its own. Lark parses it; no text ever becomes Python.

Numbers are decimal, with DIGITS significant digits; lengths, exponents and nesting are bounded, so that no expression takes long.
"""

from collections.abc import Callable
from decimal import Context, Decimal, DivisionByZero, InvalidOperation, Overflow, localcontext
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from kimi_demo.tools.arguments import shortened
from kimi_demo.tools.error import ToolError
from kimi_demo.tools.tool import Arguments, Tool
from kimi_demo.tools.units import rounded

if TYPE_CHECKING:
    from lark import Lark
    from lark.exceptions import UnexpectedInput

LONGEST = 500
DIGITS = 50
SHOWN_DIGITS = 20
"""Of what is no integer: the last of the DIGITS need not be right."""
LARGEST = 1_000
"""Exponent of ten of the largest number, and the largest exponent of a power."""
MOST_FACTORIAL = 400

GRAMMAR = r"""
?start: sum
?sum: product | sum "+" product -> add | sum "-" product -> sub
?product: sign | product ("*" | "×" | "·") sign -> mul | product ("/" | "÷") sign -> div | product "%" sign -> mod
?sign: power | ("-" | "−") sign -> neg | "+" sign
?power: postfix | postfix ("**" | "^") sign -> pow
?postfix: atom | postfix "!" -> factorial
?atom: NUMBER -> number | "(" sum ")" | NAME "(" sum ("," sum)* ")" -> call | NAME -> constant
NUMBER: /(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,4})?/
NAME: /[a-z][a-z0-9]*/
%ignore /\s+/
"""

# To 50 digits; any table of constants has them.
CONSTANTS = {
    "pi": Decimal("3.1415926535897932384626433832795028841971693993751"),
    "e": Decimal("2.7182818284590452353602874713526624977572470936999"),
}


class Expression(Arguments):
    expression: Annotated[
        str,
        Field(
            description='Arithmetic such as "(2.5 + 3) * 4 ^ 2". + - * / % ^ ! and brackets; abs, ceil, exp, floor, ln, log10, max, min, '
            "round, sqrt; pi, e",
            max_length=LONGEST,
        ),
    ]


def calculate(arguments: Expression) -> str:
    value = value_of(arguments.expression)
    whole = value.adjusted() < DIGITS and value == value.to_integral_value()
    return f"{arguments.expression.strip()} = {rounded(value, DIGITS if whole else SHOWN_DIGITS)}"


def value_of(expression: str) -> Decimal:
    """Raises ToolError for what is no arithmetic, or has no value here."""
    from lark.exceptions import UnexpectedInput, VisitError

    try:
        # The bounds of the exponent make a number that grows too large an Overflow, at the operation that does it.
        with localcontext(Context(prec=DIGITS, Emax=LARGEST, Emin=-LARGEST)):
            result = _parser().parse(expression)
    except UnexpectedInput as error:
        raise ToolError(_misread(expression, error)) from None
    except VisitError as error:
        raise _in_words(error.orig_exc) from None
    except (ArithmeticError, ToolError) as error:
        raise _in_words(error) from None
    assert isinstance(result, Decimal)
    return result


def _misread(expression: str, error: "UnexpectedInput") -> str:
    token = getattr(error, "token", None)
    if token is not None and token.type == "$END":
        return "The expression ends too early."
    at = error.pos_in_stream or 0
    return f"The expression cannot be read at character {at + 1}, near {shortened(expression[at:])!r}."


def _in_words(error: BaseException) -> ToolError:
    if isinstance(error, ToolError):
        return error
    if isinstance(error, DivisionByZero):
        return ToolError("That is a division by zero.")
    if isinstance(error, Overflow):
        return ToolError(f"A number on the way is too large: at most 10^{LARGEST} is taken.")
    if isinstance(error, InvalidOperation):
        return ToolError("That has no value (such as the root of a negative number, or 0/0).")
    raise error


def _power(base: Decimal, exponent: Decimal) -> Decimal:
    if abs(exponent) > LARGEST:
        raise ToolError(f"Exponents are taken up to {LARGEST:,}.")
    return base**exponent


def _factorial(value: Decimal) -> Decimal:
    if value != value.to_integral_value() or not 0 <= value <= MOST_FACTORIAL:
        raise ToolError(f"A factorial is taken of whole numbers from 0 to {MOST_FACTORIAL}.")
    product = Decimal(1)
    for factor in range(2, int(value) + 1):
        product *= factor
    return product


def _rounded(value: Decimal, places: Decimal = Decimal(0)) -> Decimal:
    """Halves away from zero, as people round."""
    if places != places.to_integral_value() or not 0 <= places <= 20:
        raise ToolError("round takes 0 to 20 places.")
    if value.adjusted() > DIGITS // 2:  # there are no digits behind its point
        return value
    return value.quantize(Decimal(1).scaleb(-int(places)), rounding="ROUND_HALF_UP")


FUNCTIONS: dict[str, tuple[int, int, Callable[..., Decimal]]] = {
    "abs": (1, 1, abs),
    "ceil": (1, 1, lambda value: value.to_integral_value("ROUND_CEILING")),
    "exp": (1, 1, lambda value: value.exp()),
    "floor": (1, 1, lambda value: value.to_integral_value("ROUND_FLOOR")),
    "ln": (1, 1, lambda value: value.ln()),
    "log10": (1, 1, lambda value: value.log10()),
    "max": (1, 50, max),
    "min": (1, 50, min),
    "round": (1, 2, _rounded),
    "sqrt": (1, 1, lambda value: value.sqrt()),
}
"""Name → fewest and most arguments, and what it does."""


def _call(name: str, *values: Decimal) -> Decimal:
    if name not in FUNCTIONS:
        raise ToolError(f"There is no function {shortened(name)}. Functions: {', '.join(FUNCTIONS)}.")
    fewest, most, function = FUNCTIONS[name]
    if not fewest <= len(values) <= most:
        raise ToolError(f"{name} takes {fewest if fewest == most else f'{fewest} to {most}'} arguments, not {len(values)}.")
    return function(*values)


def _constant(name: str) -> Decimal:
    if name not in CONSTANTS:
        raise ToolError(f"There is no {shortened(name)} here. Constants: {', '.join(CONSTANTS)}; variables are not known.")
    return +CONSTANTS[name]


@cache
def _parser() -> "Lark":
    """LALR, with the values computed while it parses: no tree is built, and so none is ever too deep."""
    from lark import Lark, Transformer, v_args

    @v_args(inline=True)
    class Values(Transformer[Any, Decimal]):
        def number(self, text: str) -> Decimal:
            return +Decimal(text)

        def add(self, a: Decimal, b: Decimal) -> Decimal:
            return a + b

        def sub(self, a: Decimal, b: Decimal) -> Decimal:
            return a - b

        def mul(self, a: Decimal, b: Decimal) -> Decimal:
            return a * b

        def div(self, a: Decimal, b: Decimal) -> Decimal:
            return a / b

        def mod(self, a: Decimal, b: Decimal) -> Decimal:
            return a % b

        def neg(self, a: Decimal) -> Decimal:
            return -a

        def pow(self, a: Decimal, b: Decimal) -> Decimal:
            return _power(a, b)

        def factorial(self, a: Decimal) -> Decimal:
            return _factorial(a)

        def call(self, name: str, *values: Decimal) -> Decimal:
            return _call(str(name), *values)

        def constant(self, name: str) -> Decimal:
            return _constant(str(name))

    return Lark(GRAMMAR, parser="lalr", transformer=Values())


CALCULATOR = Tool("calculate", "Compute the value of an arithmetic expression.", Expression, calculate)
