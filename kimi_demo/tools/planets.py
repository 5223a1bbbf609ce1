"""The tool `look_up_planet`: a table look-up. Figures from NASA's Planetary Fact Sheet (nssdc.gsfc.nasa.gov/planetary/factsheet/)."""

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from kimi_demo.tools.tool import Arguments, Tool

Name = Literal["Mercury", "Venus", "Earth", "Mars", "Jupiter", "Saturn", "Uranus", "Neptune"]


@dataclass(frozen=True)
class Planet:
    """mass: 10^24 kg; diameter: km, at the equator; day: hours from noon to noon; distance: 10^6 km from the sun, on average;
    year: days; temperature: °C, on average (at 1 bar for the gas planets)."""

    mass: str
    diameter: str
    gravity: str
    day: str
    distance: str
    year: str
    temperature: str


PLANETS: dict[str, Planet] = {
    "Mercury": Planet("0.330", "4,879", "3.7", "4,222.6", "57.9", "88.0", "167"),
    "Venus": Planet("4.87", "12,104", "8.9", "2,802.0", "108.2", "224.7", "464"),
    "Earth": Planet("5.97", "12,756", "9.8", "24.0", "149.6", "365.2", "15"),
    "Mars": Planet("0.642", "6,792", "3.7", "24.7", "228.0", "687.0", "-65"),
    "Jupiter": Planet("1,898", "142,984", "23.1", "9.9", "778.5", "4,331", "-110"),
    "Saturn": Planet("568", "120,536", "9.0", "10.7", "1,432.0", "10,747", "-140"),
    "Uranus": Planet("86.8", "51,118", "8.7", "17.2", "2,867.0", "30,589", "-195"),
    "Neptune": Planet("102", "49,528", "11.0", "16.1", "4,515.0", "59,800", "-200"),
}


class Question(Arguments):
    planet: Annotated[Name, Field(description="The planet")]


def look_up_planet(arguments: Question) -> str:
    row = PLANETS[arguments.planet]
    return (
        f"{arguments.planet}: mass {row.mass} × 10^24 kg; diameter {row.diameter} km; gravity {row.gravity} m/s²; "
        f"length of day {row.day} hours; distance from the sun {row.distance} million km; "
        f"length of year {row.year} days; mean temperature {row.temperature} °C."
    )


PLANET_TABLE = Tool("look_up_planet", "Look up figures about a planet of the solar system in a table.", Question, look_up_planet)
