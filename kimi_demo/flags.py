"""The command line's flags, made from `Settings`: its fields are the only list of them."""

import argparse
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Literal, NoReturn, get_args, get_origin

from pydantic import SecretStr, ValidationError
from pydantic.fields import FieldInfo
from pydantic_settings import SettingsError

from kimi_demo.settings import Settings

LOADING = ("model", "model_source", "tensor_parallel_size", "max_model_len", "gpu_memory_utilization", "cpu_kv_cache_gb", "vllm_args")
"""Settings that say which model is loaded, and how."""

ATTACHING = ("base_url", "api_key", "endpoint_kind", "connect_timeout_s")
"""Settings that say which server answers instead."""

# argparse takes a value that begins with a dash for another flag; these take theirs as it comes.
_VERBATIM = frozenset({"vllm_args"})


class BadSetting(Exception):
    """Values that Settings refuses. lines: one for each, naming the flag or variable and the reason; never a secret."""

    def __init__(self, lines: Sequence[str]) -> None:
        self.lines = tuple(lines)
        super().__init__("; ".join(lines))


class OneLineParser(argparse.ArgumentParser):
    """Says what is wrong in one line: the usage of two dozen flags would bury it."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: error: {message}\n")


def flag_of(name: str) -> str:
    return "--" + name.replace("_", "-")


def variable_of(name: str) -> str:
    return f"{Settings.model_config.get('env_prefix', '')}{name}".upper()


def add_flags(parser: argparse.ArgumentParser, only: Iterable[str] | None = None, **described: str) -> None:
    """Give `parser` a flag for each field of Settings, or for those named in `only`, in groups as the fields say.

    described: other words for a field that means something else here, its default among them.
    """
    wanted = list(Settings.model_fields) if only is None else list(only)
    groups: dict[str, Any] = {}
    for name in wanted:
        field = Settings.model_fields[name]
        extra = field.json_schema_extra
        title = str(extra["group"]) if isinstance(extra, dict) and "group" in extra else "Other"
        group = groups.setdefault(title, None) or parser.add_argument_group(title)
        groups[title] = group
        words: dict[str, Any] = {"dest": name, "default": argparse.SUPPRESS, "help": _help(name, field, described.get(name))}
        if field.annotation is bool:
            group.add_argument(flag_of(name), action=argparse.BooleanOptionalAction, **words)
        elif get_origin(field.annotation) is tuple:
            group.add_argument(flag_of(name), action="append", metavar="TEXT", **words)
        else:
            group.add_argument(flag_of(name), metavar=_metavar(field), **words)


def settings_from(given: argparse.Namespace) -> Settings:
    """The settings in force: flags over KIMI_DEMO_* variables over `.env` over defaults. Raises BadSetting."""
    flags = {name: value for name, value in vars(given).items() if name in Settings.model_fields}
    try:
        return Settings(**flags)
    except ValidationError as error:
        raise BadSetting([_line(problem, flags) for problem in error.errors(include_url=False, include_context=False)]) from None
    except UnicodeDecodeError:
        raise BadSetting([".env: is not UTF-8 text"]) from None
    except (OSError, SettingsError) as error:
        raise BadSetting([f".env: {error}"]) from None


def joined(arguments: Sequence[str]) -> list[str]:
    """`arguments` with "--vllm-args", "--x" as "--vllm-args=--x"."""
    verbatim = {flag_of(name) for name in _VERBATIM}
    found: list[str] = []
    rest = iter(arguments)
    for argument in rest:
        value = next(rest, None) if argument in verbatim else None
        found.append(argument if value is None else f"{argument}={value}")
    return found


def _types(field: FieldInfo) -> tuple[Any, ...]:
    """The types that a field accepts, None left out."""
    if get_origin(field.annotation) is Literal:
        return (field.annotation,)
    return tuple(kind for kind in get_args(field.annotation) if kind is not type(None)) or (field.annotation,)


def _metavar(field: FieldInfo) -> str:
    kind = _types(field)[0]
    if get_origin(kind) is Literal:
        return "{" + ",".join(get_args(kind)) + "}"
    return {int: "N", float: "X", Path: "FOLDER", SecretStr: "SECRET"}.get(kind, "TEXT")


def _help(name: str, field: FieldInfo, described: str | None = None) -> str:
    told = [variable_of(name)]
    if described is None and "Default:" not in str(field.description):  # the words may say more: it can depend on other flags
        told.insert(0, f"default: {shown_default(field.default)}")
    return f"{described or field.description} [{', '.join(told)}]".replace("%", "%%")


def shown_default(default: Any) -> str:
    """A default as a person writes it."""
    if isinstance(default, bool):
        return "on" if default else "off"
    return "none" if default in (None, "", ()) else str(default)


def _line(problem: Any, flags: dict[str, Any]) -> str:
    name = str(problem["loc"][0])
    reason = str(problem["msg"]).removeprefix("Value error, ")
    if SecretStr not in _types(Settings.model_fields[name]):
        reason = f"{reason}, not {problem['input']!r}"
    return f"{_source(name, flags)}: {reason}"


def _source(name: str, flags: dict[str, Any]) -> str:
    if name in flags:
        return f"argument {flag_of(name)}"
    variable = variable_of(name)
    where = "" if variable in (known.upper() for known in os.environ) else " in .env"
    return f"variable {variable}{where}"
