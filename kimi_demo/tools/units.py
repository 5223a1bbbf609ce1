"""The tool `convert_unit`. Pint knows the factors; what a model writes is only looked up in the table below, never parsed by it."""

from decimal import Context, Decimal, DecimalException, localcontext
from functools import cache
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from kimi_demo.tools.error import ToolError
from kimi_demo.tools.guide import Number
from kimi_demo.tools.tool import Arguments, Tool

if TYPE_CHECKING:
    from pint import UnitRegistry

DIGITS = 12
"""Significant digits of a result."""

UNITS: dict[str, str] = {
    **{name: name for name in ("millimeter", "centimeter", "meter", "kilometer", "inch", "foot", "yard", "mile", "nautical_mile")},
    **{name: name for name in ("light_year", "milligram", "gram", "kilogram", "tonne", "ounce", "pound", "stone")},
    **{name: name for name in ("second", "minute", "hour", "day", "week", "degree", "radian")},
    **{"celsius": "degC", "fahrenheit": "degF", "kelvin": "kelvin"},
    **{"meter_per_second": "meter / second", "kilometer_per_hour": "kilometer / hour", "mile_per_hour": "mile / hour", "knot": "knot"},
    **{"square_meter": "meter ** 2", "square_kilometer": "kilometer ** 2", "square_foot": "foot ** 2", "square_mile": "mile ** 2"},
    **{"hectare": "hectare", "acre": "acre", "milliliter": "milliliter", "liter": "liter", "cubic_meter": "meter ** 3"},
    **{"us_gallon": "gallon", "imperial_gallon": "imperial_gallon", "us_pint": "pint", "us_cup": "cup"},
    **{"joule": "joule", "kilojoule": "kilojoule", "kilocalorie": "kilocalorie", "kilowatt_hour": "kilowatt_hour"},
    **{"watt": "watt", "kilowatt": "kilowatt", "horsepower": "horsepower"},
    **{"pascal": "pascal", "bar": "bar", "atmosphere": "atmosphere", "psi": "psi"},
    **{name: name for name in ("bit", "byte", "kilobyte", "megabyte", "gigabyte", "terabyte", "kibibyte", "mebibyte", "gibibyte")},
}
"""The unit's name in the schema → how pint writes it."""

_NAMES = {"enum": list(UNITS)}


class Conversion(Arguments):
    value: Annotated[Number, Field(description="How much of the first unit")]
    from_unit: Annotated[str, Field(description="The unit that the value is in", json_schema_extra=_NAMES)]
    to_unit: Annotated[str, Field(description="The unit that is wanted", json_schema_extra=_NAMES)]


def convert_unit(arguments: Conversion) -> str:
    for name in (arguments.from_unit, arguments.to_unit):
        if name not in UNITS:
            raise ToolError(f"There is no unit named {name[:40]!r} here. Units: {', '.join(UNITS)}.")
    from pint import DimensionalityError

    registry = _registry()
    quantity = registry.Quantity(arguments.value, registry.parse_units(UNITS[arguments.from_unit]))
    try:
        with localcontext(Context(prec=40)):
            result = quantity.to(registry.parse_units(UNITS[arguments.to_unit])).magnitude
        return f"{arguments.value} {arguments.from_unit} = {rounded(Decimal(result))} {arguments.to_unit}"
    except DimensionalityError:
        raise ToolError(f"{arguments.from_unit} and {arguments.to_unit} do not measure the same thing.") from None
    except DecimalException:
        raise ToolError("The value is too large or too small to be converted.") from None


def rounded(value: Decimal, digits: int = DIGITS) -> str:
    """`value` to that many significant digits, without trailing zeros; with an exponent where it would be very long."""
    short = Context(prec=digits).normalize(value)
    plain = abs(short.adjusted()) < 2 * digits
    return f"{short:f}" if plain or not short else f"{short:e}"


@cache
def _registry() -> "UnitRegistry[Decimal]":
    """Takes half a second to make, and is the same for everyone."""
    from pint import UnitRegistry

    return UnitRegistry(non_int_type=Decimal, cache_folder=None)


UNIT_CONVERSION = Tool("convert_unit", "Convert a value from one unit of measurement to another.", Conversion, convert_unit)
