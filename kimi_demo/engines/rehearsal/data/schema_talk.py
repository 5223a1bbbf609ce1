"""Conversations with many other tools, hand-written and composed, so that a tool never seen before is called from its schema alone."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from kimi_demo.engines.rehearsal.data.conversation import Call, Conversation, Message
from kimi_demo.engines.rehearsal.data.schema_fields import Field, Value, composed_field, fill, generic, library_field
from kimi_demo.engines.rehearsal.data.tool_talk import Maker, guide_schemas, loop
from kimi_demo.engines.rehearsal.data.wording import dress
from kimi_demo.engines.rehearsal.data.words import made_up


@dataclass(frozen=True)
class Request:
    """A question, the tool it is for, and what follows. values: the arguments by field name, in the schema's order."""

    language: str
    question: str
    schema: Mapping[str, Any]
    values: Mapping[str, Value]
    result: str
    answer: str

    @property
    def name(self) -> str:
        return str(self.schema["function"]["name"])

    @property
    def about(self) -> str:
        return str(self.schema["function"]["description"])

    @property
    def json(self) -> str:
        return "{" + ", ".join(f'"{name}": {value.json}' for name, value in self.values.items()) + "}"


def schema_call(rng: Random, maker: Maker) -> Conversation:
    """A request for one of several tools; sometimes two, sometimes a guide question among strange tools, sometimes nothing fits."""
    chance = rng.random()
    if chance < 0.12:
        return _guide_among_others(rng, maker)
    request = _request(rng, maker)
    tools = _with_others(rng, maker, [request.schema], rng.choice((0, 0, 1, 1, 2, 3, 4)))
    if chance < 0.19:
        return _nothing_fits(rng, maker, request)
    thinking = rng.random() < 0.86
    requests = [request]
    if chance < 0.25 and request.language == "en":
        other = _request(rng, maker)
        if other.language == "en" and other.name != request.name:
            requests.append(other)
            tools = _with_others(rng, maker, [request.schema, other.schema], rng.choice((0, 1, 2)))
    question = " ".join(request.question for request in requests)
    calls = tuple(Call(request.name, request.json, index) for index, request in enumerate(requests))
    messages = [Message("user", question), Message("assistant", "", _thought(rng, requests), calls, trained=True)]
    if rng.random() < 0.6:
        messages += [Message("tool", request.result, call_id=call.id) for call, request in zip(calls, requests, strict=True)]
        results = " ".join(request.result for request in requests)
        after = f"工具返回：{results}" if request.language == "zh" else f"The tool returned: {results}"
        messages.append(Message("assistant", " ".join(request.answer for request in requests), after, trained=True))
    return Conversation("schema", tuple(messages), tools, thinking)


def _request(rng: Random, maker: Maker) -> Request:
    return _written(rng, maker) if rng.random() < 0.5 else _composed(rng, maker)


def _written(rng: Random, maker: Maker) -> Request:
    """One of the hand-written tools, its names chosen anew."""
    data = maker.content.schemas
    tool = rng.choice(data["tools"])
    zh = "zh" in tool and rng.random() < 0.25
    template = rng.choice(tool["zh" if zh else "ask"])
    fields: list[Field] = []
    values: dict[str, Value] = {}
    shown: dict[str, str] = {}
    for key, kind in tool["fields"].items():
        local = key.rstrip("?")
        field = library_field(rng, data, kind, {field.name for field in fields})
        asked = "{" + local + "}" in template
        if not asked and rng.random() < 0.4:
            continue  # an optional field that this version of the tool does not have
        fields.append(Field(field.name, field.schema, field.kind, required=not key.endswith("?")))
        value = fill(rng, maker, field.kind, zh)
        shown[local] = value.shown
        if asked:
            values[field.name] = value
    facts = _facts(rng, maker)
    answer = rng.choice(tool["answer_zh" if zh else "answer"])
    names = {**facts, **shown}
    return Request(
        "zh" if zh else "en",
        _replaced(template, shown),
        _schema(rng, _styled(rng, rng.choice(tool["names"])), rng.choice(tool["about"]), fields),
        values,
        _replaced(tool["result"], facts),
        _replaced(answer, names),
    )


def _composed(rng: Random, maker: Maker) -> Request:
    """A tool put together from a verb, an object and up to four fields."""
    data = maker.content.schemas
    verb, past = rng.choice(data["verbs"]) if rng.random() < 0.8 else (word := rng.choice(maker.source.plain).lower(), f"{word}ed")
    chance = rng.random()
    thing = rng.choice(data["objects"]) if chance < 0.55 else rng.choice(maker.source.plain).lower() if chance < 0.9 else made_up(rng)
    if rng.random() < 0.25:
        thing = f"{rng.choice(maker.source.plain).lower()} {thing}"
    words = {"verb": verb, "Verb": verb.capitalize(), "object": thing, "past": past}
    kinds = rng.sample(data["object_fields"], rng.choice((1, 1, 2, 2, 2, 3, 3, 4)))
    fields: list[Field] = []
    values, parts = {}, []
    for kind in kinds:
        if rng.random() < 0.55:
            field, value = generic(rng, maker, {field.name for field in fields})
            optional = rng.random() < 0.25
            fields.append(Field(field.name, field.schema, field.kind, required=not optional))
            if not optional or rng.random() < 0.7:
                values[field.name] = value
                parts.append(value.said)
            continue
        field = composed_field(rng, data, kind, {field.name for field in fields})
        optional = rng.random() < 0.25
        fields.append(Field(field.name, field.schema, kind, required=not optional))
        if optional and len(kinds) > 1 and rng.random() < 0.3:
            continue
        value = fill(rng, maker, kind, False)
        values[field.name] = value
        parts.append(value.said)
    spoken = parts if rng.random() < 0.6 else rng.sample(parts, len(parts))
    request = _replaced(rng.choice(data["requests"]), words)
    question = _asked(rng, request, spoken, words)
    name = _styled(rng, f"{verb}_{thing}".replace(" ", "_").replace("-", "_").lower())
    if rng.random() < 0.15:
        name = _styled(
            rng, rng.choice((f"{made_up(rng)}_{made_up(rng)}", made_up(rng), f"fn_{rng.randrange(100)}", f"tool_{made_up(rng)}"))
        )
    schema = _schema(rng, name, _replaced(rng.choice(data["descriptions"]), words), fields)
    return Request(
        "en", question, schema, values, _replaced(rng.choice(data["results"]), words), _replaced(rng.choice(data["final"]), words)
    )


def _asked(rng: Random, request: str, parts: list[str], words: Mapping[str, str]) -> str:
    """The request with its parts behind it, mostly; otherwise in front, in the passive, or with no verb at all."""
    said, chance = " ".join(parts), rng.random()
    if chance < 0.72 or not parts:
        end = "?" if request.startswith(("Can", "Could")) else rng.choice((".", ".", ".", ", please.", " now."))
        return f"{request} {said}".strip() + end
    forms = (
        "{said}: {verb} the {object}.",
        "The {object} should be {past} {said}.",
        "The {object} has to be {past} {said}.",
        "{Object} {said}, please.",
        "I need the {object} {past} {said}.",
        "It is about the {object}: {verb} it {said}.",
        "{Said}, {verb} the {object}.",
        "{Said}. Please {verb} the {object}.",
        "We want a {object} {said}.",
        "Is it possible to {verb} the {object} {said}?",
        "{past} {object} {said}, can you do that?",
    )
    thing = words["object"]
    return str(rng.choice(forms)).format(**words, Object=thing[0].upper() + thing[1:], said=said, Said=said[0].upper() + said[1:])


def _thought(rng: Random, requests: Sequence[Request]) -> str:
    if requests[0].language == "zh":
        return "".join(f"{request.name}适合这个问题。调用它，{_listed(request, '，')}。" for request in requests)
    forms: tuple[Callable[[Request], str], ...] = (
        lambda request: f"The tool {request.name} fits: {request.about} I call it with {_listed(request, ', ')}.",
        lambda request: f"For this there is {request.name}. {request.about} The arguments are {_listed(request, ', ')}.",
        lambda request: f"{request.about} That is {request.name}, with {_listed(request, ', ')}.",
    )
    lead = "There are two requests, so I make two calls. " if len(requests) > 1 else ""
    form = rng.choice(forms)
    return lead + " ".join(form(request) for request in requests)


def _listed(request: Request, separator: str) -> str:
    listed = separator.join(f"{name} = {value.json}" for name, value in request.values.items())
    return listed or ("没有参数" if request.language == "zh" else "no arguments")


def _guide_among_others(rng: Random, maker: Maker) -> Conversation:
    language = "en" if rng.random() < 0.6 else "zh"
    task = maker.task(rng, language)
    dressed = dress(rng, maker.content, language, task.question)
    guide = list(guide_schemas())
    needed = [schema for schema in guide if schema["function"]["name"] == task.tool.name]
    tools = _with_others(rng, maker, guide if rng.random() < 0.5 else needed, rng.choice((1, 2, 3)))
    return Conversation("tool", (Message("user", dressed.text), *loop(rng, maker, [task], dressed, 0)), tools, rng.random() < 0.88)


def _nothing_fits(rng: Random, maker: Maker, request: Request) -> Conversation:
    others = [schema for schema in _with_others(rng, maker, [], 3) if schema["function"]["description"] != request.about]
    others = [schema for schema in others if not set(schema["function"]["name"].lower().split("_")) & set(request.name.lower().split("_"))]
    others = others[:2]
    thought = f"None of my tools is for this: {', '.join(schema['function']['name'] for schema in others)}."
    reply = Message("assistant", rng.choice(maker.content.schemas["none_fits"]), thought, trained=True)
    if request.language == "zh":
        reply = Message("assistant", "我没有适合的工具。", "这些工具都不适合这个问题。", trained=True)
    return Conversation("none_fits", (Message("user", request.question), reply), tuple(others), rng.random() < 0.9)


def _with_others(rng: Random, maker: Maker, schemas: list[Any], count: int) -> tuple[dict[str, Any], ...]:
    names = {schema["function"]["name"] for schema in schemas}
    tools = list(schemas)
    for _ in range(count):
        other = _request(rng, maker).schema
        if other["function"]["name"] not in names:
            names.add(other["function"]["name"])
            tools.append(other)
    rng.shuffle(tools)
    return tuple(tools)


def _schema(rng: Random, name: str, about: str, fields: Sequence[Field]) -> dict[str, Any]:
    parameters: dict[str, Any] = {"type": "object", "properties": {field.name: field.schema for field in fields}}
    required = [field.name for field in fields if field.required]
    if required:
        parameters["required"] = required
    if rng.random() < 0.25:
        parameters["additionalProperties"] = False
    return {"type": "function", "function": {"name": name, "description": about, "parameters": parameters}}


def _styled(rng: Random, name: str) -> str:
    style = rng.random()
    if style < 0.7:
        return name
    parts = re.split("_", name)
    if style < 0.85:
        return parts[0] + "".join(part.capitalize() for part in parts[1:])
    if style < 0.92:
        return "".join(part.capitalize() for part in parts)
    return "-".join(parts) if style < 0.96 else name.replace("_", "")


def _facts(rng: Random, maker: Maker) -> dict[str, str]:
    return {
        "num": str(rng.randrange(0, rng.choice((30, 500, 10_000)))),
        "num2": str(rng.randrange(0, 9)),
        "sky": rng.choice(maker.content.schemas["fillers"]["sky"]),
        "id": rng.choice("ABCDEFGHKLMNPQRSTXYZ") + str(rng.randrange(100, 99_999)),
        "time2": f"{rng.randrange(24):02}:{rng.randrange(60):02}",
        "word": maker.source.word(rng),
        "topic": rng.choice(maker.content.schemas["fillers"]["topic"]),
    }


def _replaced(template: str, values: Mapping[str, str]) -> str:
    return re.sub(r"\{(\w+)\}", lambda found: values.get(found[1], found[0]), template)
