"""Every string a person reads on the page, by key, one TOML file per language."""

import re
import tomllib
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from kimi_demo.dialect.failure import Failure
from kimi_demo.runs.rows import whole

LANGUAGES = {"en": "English", "zh": "中文"}
"""Each with its own name, in the order in which they are offered."""
TAGS = {"en": "en", "zh": "zh-CN"}
"""Their names in HTML and for a browser's dates and numbers."""


@dataclass(frozen=True)
class Texts:
    """The strings of one language. `say` raises KeyError for a key that is not there: a missing text is a programming mistake."""

    language: str
    strings: dict[str, str]
    discreet: bool = False
    """Whether they are for viewers of a public page (discreet.py): views leave out what only the operator is to see."""

    def say(self, key: str, /, **params: object) -> str:
        """The text of `key` ("chat.send") with `{name}` replaced by params["name"]."""
        return self.strings[key].format_map(params)

    def failure(self, code: str, params: dict[str, str]) -> tuple[str, str]:
        """(what happened, what to do) of a `Failure` or `Failed`. A code from another version of the program is shown as it is."""
        if f"failure.{code}.what" not in self.strings:
            code, params = "unexpected", {"error": f"{code} {params}"}
        # JSON that a visitor wrote can bring half a surrogate pair in, which no answer of ours could carry.
        params = {name: whole(value) for name, value in params.items()}
        if "problem" in params:
            params = params | {"problem": self.problem(params["problem"])}
        if "holder" in params:
            params = params | {"holder": self.strings.get(f"accelerators.holder.{params['holder']}", params["holder"])}
        return self.say(f"failure.{code}.what", **params), self.say(f"failure.{code}.hint", **params)

    def problem(self, words: str) -> str:
        """What is wrong, where a parser said it in English or we did in short: from the table `problem`, by its words; else as it is."""
        return self.strings.get("problem." + re.sub(r"\W+", "_", words.lower()).strip("_"), words)

    def sentence(self, failure: Failure) -> str:
        """Both as one line, for a terminal."""
        return " ".join(self.failure(failure.code, failure.params))


@cache
def texts(language: str = "en") -> Texts:
    """The texts of `language` ("en" or "zh"); of English for "auto", where there is nobody whose language could be asked."""
    language = "en" if language == "auto" else language
    with resources.files(__package__).joinpath(f"{language}.toml").open("rb") as file:
        return Texts(language, dict(_flat("", tomllib.load(file))))


def _flat(prefix: str, table: dict[str, Any]) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for key, value in table.items():
        path = f"{prefix}.{key}" if prefix else key
        found += _flat(path, value) if isinstance(value, dict) else [(path, value)]
    return found
