"""The tool `current_time`: date and time of day in a time zone of the IANA database."""

from datetime import datetime
from difflib import get_close_matches
from typing import Annotated
from zoneinfo import ZoneInfo, available_timezones

from pydantic import Field

from kimi_demo.tools.arguments import shortened
from kimi_demo.tools.error import ToolError
from kimi_demo.tools.tool import Arguments, Tool


class Zone(Arguments):
    zone: Annotated[str, Field(description='A time zone by its IANA name, for example "Asia/Shanghai" or "UTC"', max_length=64)]


def current_time(arguments: Zone) -> str:
    return told(arguments.zone, datetime.now(zone_of(arguments.zone)))


def zone_of(name: str) -> ZoneInfo:
    """Raises ToolError for a name that the database does not know."""
    try:
        return ZoneInfo(name)
    except (ValueError, KeyError, OSError):  # "../x", an unknown one, a folder of the database
        raise ToolError(f'There is no time zone named "{shortened(name)}".{_meant(name)}') from None


def told(zone: str, moment: datetime) -> str:
    """`moment`, which knows its zone, in words: "2026-11-30 19:30:05, Monday, UTC+08:00 (Asia/Shanghai)"."""
    days = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")  # strftime's follow the machine's language
    return f"{moment:%Y-%m-%d %H:%M:%S}, {days[moment.weekday()]}, UTC{moment.isoformat()[-6:]} ({zone})"


def _meant(name: str) -> str:
    """The city alone, a space for an underscore, another case: what people write is found again."""
    known = {zone.casefold(): zone for zone in available_timezones()}
    cities = {key.rpartition("/")[2]: zone for key, zone in sorted(known.items())}
    written = name.casefold().replace(" ", "_").rpartition("/")[2]
    near = get_close_matches(written, cities, n=3, cutoff=0.75)
    return f" Did you mean {' or '.join(cities[city] for city in near)}?" if near else ' Names look like "Europe/Berlin".'


CLOCK = Tool("current_time", "Tell the current date and time in a time zone.", Zone, current_time)
