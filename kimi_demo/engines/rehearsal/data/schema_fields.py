"""Fields of made-up tools: names, JSON Schemas, and values with the way a request says them."""

import json
from collections.abc import Mapping, Set
from dataclasses import dataclass
from random import Random
from typing import Any

from kimi_demo.engines.rehearsal.data.tool_talk import Maker
from kimi_demo.engines.rehearsal.data.words import made_up


@dataclass(frozen=True)
class Field:
    """kind: key of the library; schema: of this property."""

    name: str
    schema: Mapping[str, Any]
    kind: str
    required: bool = True


@dataclass(frozen=True)
class Value:
    """json: JSON text; shown: as a sentence has it; said: with the words around it, as in "in Paris"."""

    json: str
    shown: str
    said: str


def library_field(rng: Random, data: Mapping[str, Any], kind: str, taken: Set[str]) -> Field:
    """A field of the library under one of its names."""
    entry = _entry(data, kind)
    free = [name for name in entry["names"] if name not in taken] or [f"{kind}_{len(taken)}"]
    name = rng.choice(free)
    if rng.random() < 0.08:
        name = rng.choice((made_up(rng), f"arg{len(taken) + 1}", f"p_{made_up(rng)}"))
    return Field(name, _property(rng, entry), kind)


def composed_field(rng: Random, data: Mapping[str, Any], kind: str, taken: Set[str]) -> Field:
    """As library_field, with the name more often changed, since nobody wrote requests for it."""
    field = library_field(rng, data, kind, taken)
    chance = rng.random()
    if chance < 0.12:
        return Field(f"{field.name}_{rng.choice(('value', 'name', 'field', 'arg', 'in', 'param'))}", field.schema, kind)
    if chance < 0.18 and "_" in field.name:
        first, *rest = field.name.split("_")
        return Field(first + "".join(part.capitalize() for part in rest), field.schema, kind)
    return field


_UNITS = ("", "", "", "_cm", "_kg", "_mm", "_hz", "_percent", "_minutes", "_grams", "_count", "_ml")
_SPOKEN_UNITS = {
    "_cm": "cm",
    "_kg": "kilograms",
    "_mm": "millimetres",
    "_hz": "Hz",
    "_percent": "percent",
    "_minutes": "minutes",
    "_grams": "grams",
    "_ml": "ml",
}


def generic(rng: Random, maker: Maker, taken: Set[str]) -> tuple[Field, Value]:
    """A field about anything: its name is a word of the vocabulary, its value whatever a request says beside that word."""
    noun = rng.choice(maker.source.plain).lower()
    if rng.random() < 0.3:
        noun = f"{rng.choice(maker.source.plain).lower()} {noun}"
    name = noun.replace(" ", "_")
    if name in taken:
        name = f"{name}_{len(taken)}"
    kind = rng.choices(("string", "integer", "number", "boolean", "enum"), (50, 22, 14, 5, 9))[0]
    about = rng.choice(
        (
            "{N} such as {example}",
            "The {n}, for example {example}",
            "The {n}",
            "{N} to use",
            "Which {n}",
            "The {n} wanted",
            "{N} of the entry",
            "Name of the {n}",
            "Value of the {n}",
            "{N}",
            "{N} for this",
        )
    ).format(n=noun, N=noun.capitalize(), example=_anything(rng, maker) if kind == "string" else rng.randrange(1, 100))
    schema: dict[str, Any] = {"type": "string" if kind == "enum" else kind, "description": about}
    if kind == "boolean":
        flag = rng.random() < 0.6
        said = rng.choice(
            ("with {n}", "with a {n}", "and with {n}", "including the {n}")
            if flag
            else ("without {n}", "without a {n}", "but without {n}", "and no {n}")
        ).format(n=noun)
        return Field(name, schema, ""), Value(json.dumps(flag), said, said)
    if kind == "enum":
        values = [rng.choice(maker.source.plain).lower() for _ in range(rng.choice((2, 3, 4)))]
        schema["enum"] = values
        text = rng.choice(values)
        return Field(name, schema, ""), Value(json.dumps(text), text, _beside(rng, noun, text))
    if kind == "string":
        text = _anything(rng, maker)
        return Field(name, schema, ""), Value(json.dumps(text, ensure_ascii=False), text, _beside(rng, noun, text))
    unit = rng.choice(_UNITS)
    number = (
        str(rng.randrange(1, rng.choice((10, 100, 1000, 20_000))))
        if kind == "integer" or rng.random() < 0.4
        else f"{rng.randrange(0, 900)}.{rng.randrange(1, 100)}"
    )
    if rng.random() < 0.06:
        number = f"-{number}"
    spoken = f"{number} {_SPOKEN_UNITS[unit]}" if unit in _SPOKEN_UNITS else number
    said = rng.choice(
        (
            "with {v} {n}",
            "{v} {n}",
            "with a {n} of {v}",
            "{n} {v}",
            "at {n} {v}",
            "for {v} {n}",
            "the {n} is {v}",
            "and {v} {n}",
            "with {n} {v}",
            "first {v} {n}",
            "up to {n} {v}",
            "after {v} {n}",
            "and number {v}",
            "number {v}",
            "to {v}",
            "at {v}",
            "{n} number {v}",
            "({n}: {v})",
        )
    ).format(v=spoken, n=noun)
    return Field(name + unit, schema, ""), Value(number, spoken, said)


def _beside(rng: Random, noun: str, text: str) -> str:
    return rng.choice(
        (
            "with {n} {v}",
            "{n} {v}",
            "with the {n} {v}",
            "in {v} {n}",
            "on {v}",
            "from {v}",
            "to {v}",
            "for {v}",
            "as {v}",
            "using {v}",
            "({n}: {v})",
            "the {n} is {v}",
            "with {v} as {n}",
            "by {v}",
            "at {v}",
            "with {v}",
            "of {v}",
            'and the {n} "{v}"',
            "in {v}",
            "for the {v} {n}",
            "the {v} {n}",
            "of the {v} {n}",
            "{v} {n}",
            "{v}'s {n}",
            "at the {v} {n}",
            "into {v}",
            "up to {n} {v}",
            "on the {v}",
            "under {v}",
            "about {v}",
            "with {v} {n}",
        )
    ).format(n=noun, v=text)


def _anything(rng: Random, maker: Maker) -> str:
    """A text that may be a word, a name, a code, a number in digits, or a few words."""
    chance = rng.random()
    word = maker.source.word(rng)
    if chance < 0.4:
        return word.strip()
    if chance < 0.6:
        return " ".join(rng.choice(maker.source.plain).capitalize() for _ in range(rng.choice((1, 2, 2, 3))))
    if chance < 0.68:
        return rng.choice("ABCDEFGHKLMNOPRST") + rng.choice(("", "B", "X")) + rng.choice(("+", "-", "#", "1", "7", "12", "/3", "-9"))
    if chance < 0.76:
        return "".join(rng.choices("0123456789", k=rng.randrange(4, 15)))
    if chance < 0.84:
        return f"{rng.choice(maker.source.plain).capitalize()}'s {rng.choice(maker.source.plain).lower()}"
    if chance < 0.9:
        return f"{rng.choice(maker.source.plain).lower()} {rng.choice(maker.source.plain).lower()}"
    return f"{rng.randrange(2024, 2031)}-{rng.randrange(1, 13):02}-{rng.randrange(1, 29):02}"


def fill(rng: Random, maker: Maker, kind: str, zh: bool) -> Value:
    """A value for a field of this kind. zh: as a Chinese request has it."""
    data = maker.content.schemas
    entry = _entry(data, kind)
    if "enum" in entry:
        chosen = rng.choice(entry["enum"])
        return _value(rng, entry, json.dumps(chosen), chosen)
    kind_of = entry.get("type", "string")
    if kind_of == "boolean":
        flag = rng.random() < 0.6
        said = rng.choice(entry["say_true" if flag else "say_false"])
        return Value(json.dumps(flag), said, said)
    if kind_of == "list":
        items = [_text(rng, maker, entry["fill"], zh) for _ in range(rng.choice((1, 2, 2, 3)))]
        shown = items[0] if len(items) == 1 else f"{', '.join(items[:-1])} and {items[-1]}"
        return _value(rng, entry, json.dumps(items, ensure_ascii=False), shown)
    if kind_of == "string":
        text = _text(rng, maker, entry["fill"], zh)
        return _value(rng, entry, json.dumps(text, ensure_ascii=False), text)
    if entry.get("decimal") and rng.random() < 0.5:
        number = f"{rng.randrange(1, 2000)}.{rng.randrange(1, 100):02}".rstrip("0")
    else:
        low, high = entry.get("range", (1, rng.choice((50, 500, 9000))))
        number = str(rng.randint(low, high))
    return _value(rng, entry, number, number)


def _value(rng: Random, entry: Mapping[str, Any], text: str, shown: str) -> Value:
    return Value(text, shown, str(rng.choice(entry["say"] if "say" in entry else ["{v}"])).replace("{v}", shown))


def _text(rng: Random, maker: Maker, kind: str, zh: bool) -> str:
    fillers = maker.content.schemas["fillers"]
    if kind == "word":
        return maker.source.word(rng)
    if kind == "code":
        letters = "".join(rng.choices("ABCDEFGHJKLMNPQRSTUVWXYZ", k=rng.randrange(1, 4)))
        return f"{letters}{rng.choice(('', '-'))}{rng.randrange(10, 10 ** rng.randrange(2, 7) + 11)}"
    if zh and f"{kind}_zh" in fillers:
        return str(rng.choice(fillers[f"{kind}_zh"]))
    if kind in ("city", "person", "company", "title", "topic", "product") and rng.random() < 0.15:
        return maker.source.word(rng) if rng.random() < 0.5 else made_up(rng).capitalize()
    if kind == "email" and rng.random() < 0.5:
        return f"{made_up(rng)}@{made_up(rng)}.{rng.choice(('com', 'org', 'net', 'example'))}"
    if kind == "file" and rng.random() < 0.5:
        stem, end = rng.choice(maker.source.plain).lower(), rng.choice(("", "_2", "-final", "7"))
        return f"{stem}{end}.{rng.choice(('txt', 'pdf', 'csv', 'md', 'zip', 'png'))}"
    if kind == "time" and rng.random() < 0.6:
        return f"{rng.randrange(24):02}:{rng.randrange(60):02}"
    if kind == "date" and rng.random() < 0.7:
        return f"{rng.randrange(2024, 2031)}-{rng.randrange(1, 13):02}-{rng.randrange(1, 29):02}"
    return str(rng.choice(fillers[kind]))


def _property(rng: Random, entry: Mapping[str, Any]) -> dict[str, Any]:
    if "enum" in entry:
        schema: dict[str, Any] = {"type": "string", "enum": list(entry["enum"])}
    elif entry.get("type") == "list":
        schema = {"type": "array", "items": {"type": "string"}}
    else:
        schema = {"type": entry.get("type", "string")}
    if rng.random() < 0.8:
        about = rng.choice(entry["about"])
        schema = {"description": about, **schema} if rng.random() < 0.4 else {**schema, "description": about}
    return schema


def _entry(data: Mapping[str, Any], kind: str) -> Mapping[str, Any]:
    entry: Mapping[str, Any] = data["fields"].get(kind) or data["number_fields"][kind]
    return entry
