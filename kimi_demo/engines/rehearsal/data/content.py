"""The hand-written texts of the training data, read from `content/*.yaml`."""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Any

import yaml

LANGUAGES = ("en", "zh")


@dataclass(frozen=True)
class Content:
    """questions, problems, names: by language; the other fields are the parsed files of the same name (see their first lines)."""

    questions: Mapping[str, Mapping[str, list[str]]]
    problems: Mapping[str, list[dict[str, str]]]
    names: Mapping[str, list[str]]
    topics: Mapping[str, list["Topic"]]
    talk: Mapping[str, list[dict[str, Any]]]
    declined: Mapping[str, Any]
    identity: Mapping[str, Any]
    thoughts: Mapping[str, Any]
    phrases: Mapping[str, Any]
    asks: Mapping[str, Any]
    schemas: Mapping[str, Any]
    unknown: Mapping[str, Any]
    pairs: Mapping[str, Mapping[str, str]]
    more: Mapping[str, Mapping[str, list[str]]]
    identity_more: Mapping[str, Any]
    asks_more: Mapping[str, Any]


@dataclass(frozen=True)
class Topic:
    """name: with its article; answer: a short one; more: one further sentence; plural: asked about with "are"."""

    name: str
    answer: str
    more: str
    plural: bool = False


def load() -> Content:
    return Content(
        questions={language: _read(f"questions.{language}") for language in LANGUAGES},
        problems={language: _read(f"problems.{language}") for language in LANGUAGES},
        names=_read("names"),
        topics={language: [_topic(name, entry) for name, entry in _read(f"topics.{language}").items()] for language in LANGUAGES},
        talk={"en": _read("chat.en"), "zh": _read("covered.zh")},
        declined=_read("declined.zh"),
        identity=_read("identity"),
        thoughts=_read("thoughts"),
        phrases=_read("phrases"),
        asks=_read("asks"),
        schemas=_read("schemas"),
        unknown=_read("unknown.zh"),
        pairs={language: _read(f"pairs.{language}") for language in LANGUAGES},
        more=_read("more_questions"),
        identity_more=_read("identity_more"),
        asks_more=_read("asks_more"),
    )


def _topic(name: str, entry: Any) -> Topic:
    answer, more = entry["text"] if isinstance(entry, dict) else entry
    return Topic(name, answer, more, isinstance(entry, dict) and bool(entry.get("are")))


def _read(name: str) -> Any:
    return parse_yaml(resources.files(__package__).joinpath("content", f"{name}.yaml").read_text(encoding="utf-8"))


def parse_yaml(text: str) -> Any:
    """By libyaml where PyYAML was built with it: ten times faster, and each process that makes data reads all of it."""
    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return yaml.load(text, Loader=loader)
