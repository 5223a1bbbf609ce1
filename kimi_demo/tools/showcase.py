"""Tools beside the guide's, to show more with: offline, typed, and offered only where somebody switches them on."""

from kimi_demo.tools.calculator import CALCULATOR
from kimi_demo.tools.clock import CLOCK
from kimi_demo.tools.planets import PLANET_TABLE
from kimi_demo.tools.tool import Tool
from kimi_demo.tools.units import UNIT_CONVERSION

SHOWCASE: tuple[Tool, ...] = (CLOCK, UNIT_CONVERSION, CALCULATOR, PLANET_TABLE)
