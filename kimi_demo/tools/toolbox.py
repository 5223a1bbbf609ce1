"""`Toolbox`: a table of tools, and calling one of them by name with arguments that a model wrote. Nothing is evaluated."""

import asyncio
import json
import logging
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, TypeVar

from pydantic import ValidationError

from kimi_demo.dialect.events import Problem
from kimi_demo.tools.arguments import ArgumentsError, kind_of, parse, shortened
from kimi_demo.tools.error import ToolError
from kimi_demo.tools.tool import AnyTool, SchemaTool, Tool

log = logging.getLogger(__name__)

T = TypeVar("T")

LIMIT_S = 5.0
MOST_RESULT_CHARS = 20_000


@dataclass(frozen=True)
class Outcome:
    """What became of a call: either `result` or `error`, each as the model gets it. arguments: as parsed; None if that failed."""

    result: str | None = None
    error: str | None = None
    seconds: float = 0.0
    arguments: dict[str, Any] | None = None

    @property
    def text(self) -> str:
        """What the model gets."""
        return self.result if self.result is not None else self.error or ""


@dataclass(frozen=True)
class Checked:
    """A call held against its tool's schema: it may be carried out when there are no problems.

    arguments: as parsed, None if that failed. valid: what the tool's function takes. error: the problems as the model gets them.
    """

    name: str
    problems: tuple[Problem, ...] = ()
    error: str = ""
    arguments: dict[str, Any] | None = None
    valid: Any = None


class Toolbox:
    """The tools that one conversation offers. limit_s: the longest that a call (and, before it, its check) may take, in seconds."""

    def __init__(self, tools: Sequence[AnyTool], *, limit_s: float = LIMIT_S) -> None:
        self._tools = {tool.name: tool for tool in tools}
        self._limit_s = limit_s

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._tools)

    def schemas(self) -> list[dict[str, Any]]:
        """The tools in the OpenAI shape, in the order given."""
        return [tool.schema() for tool in self._tools.values()]

    def asks(self, name: str) -> bool:
        """Whether a person gives this tool's result."""
        tool = self._tools.get(name)
        return tool is not None and tool.asks

    async def check(self, name: str, raw_arguments: str) -> Checked:
        """Holds a call against its tool's schema. Whatever is wrong with it is a problem in what is returned; raises nothing."""
        tool = self._tools.get(name)
        if tool is None:
            return _refused(name, "", "tool", f"There is no tool named {json.dumps(name)}. Tools: {', '.join(self.names) or 'none'}.")
        try:
            if isinstance(tool, SchemaTool):  # its check has limits of its own
                return await _check_by_schema(tool, raw_arguments)
            async with asyncio.timeout(self._limit_s):
                return await _in_thread(lambda: check(tool, raw_arguments), f"check {name}")
        except TimeoutError:
            return _refused(name, "", "time", f"The arguments of {name} could not be checked within {self._limit_s:g} seconds.")

    async def run(self, checked: Checked) -> Outcome:
        """Carries out a call that passed its check. What goes wrong in it is an Outcome whose error tells the model; raises nothing.

        A tool that takes too long is left behind: its thread cannot be stopped, but nobody waits for it, at exit neither.
        """
        if checked.problems:
            return Outcome(error=checked.error, arguments=checked.arguments)
        tool, started = self._tools[checked.name], time.monotonic()
        limit_s = (tool.limit_s if isinstance(tool, SchemaTool) else None) or self._limit_s
        try:
            async with asyncio.timeout(limit_s):
                if isinstance(tool, SchemaTool):
                    outcome = await _answer(tool, checked)
                else:
                    outcome = await _in_thread(lambda: apply(tool, checked), f"tool {tool.name}")
        except TimeoutError:
            outcome = Outcome(error=f"The tool {tool.name} did not finish within {limit_s:g} seconds.")
        return replace(outcome, seconds=time.monotonic() - started, arguments=checked.arguments)

    async def call(self, name: str, raw_arguments: str) -> Outcome:
        """`check` and `run`."""
        return await self.run(await self.check(name, raw_arguments))


def check(tool: Tool, raw_arguments: str) -> Checked:
    """`Toolbox.check` without its time limit, in the caller's thread."""
    try:
        arguments = parse(raw_arguments)
    except ArgumentsError as error:
        return _refused(tool.name, "", "json", str(error))
    try:
        return Checked(tool.name, arguments=arguments, valid=tool.arguments.model_validate(arguments))
    except ValidationError as error:
        return _invalid(tool.name, _problems(error), arguments)
    except BaseException as error:  # its thread must not end without an answer
        log.warning("Checking the arguments of %s failed", tool.name, exc_info=error)
        return _refused(tool.name, "", "check", f"The arguments of {tool.name} could not be checked: {type(error).__name__}.")


def carry_out(tool: Tool, raw_arguments: str) -> Outcome:
    """`Toolbox.call` without its time limit, in the caller's thread."""
    return apply(tool, check(tool, raw_arguments))


def apply(tool: Tool, checked: Checked) -> Outcome:
    """`Toolbox.run` without its time limit, in the caller's thread."""
    if checked.problems:
        return Outcome(error=checked.error, arguments=checked.arguments)
    try:
        result = tool.function(checked.valid)
        if not isinstance(result, str):
            raise TypeError(f"returned {type(result).__name__} where text was expected")
        return Outcome(result=cut(result), arguments=checked.arguments)
    except BaseException as error:  # SystemExit as well: whatever a tool does must not end its thread without an answer
        return replace(_failed(tool.name, error), arguments=checked.arguments)


async def _check_by_schema(tool: SchemaTool, raw_arguments: str) -> Checked:
    """The same checks of the JSON itself as everywhere, then the tool's own schema."""
    try:
        arguments = await _in_thread(lambda: _parsed(raw_arguments), f"check {tool.name}")
        if isinstance(arguments, ArgumentsError):
            return _refused(tool.name, "", "json", str(arguments))
        text = raw_arguments if raw_arguments.strip() else "{}"
        problems = await tool.check(text)
    except Exception as error:
        log.warning("Checking the arguments of %s failed", tool.name, exc_info=error)
        why = str(error) if isinstance(error, ToolError) else type(error).__name__
        return _refused(tool.name, "", "check", f"The arguments of {tool.name} could not be checked: {why}")
    if problems:
        return _invalid(tool.name, problems, arguments)
    return Checked(tool.name, arguments=arguments, valid=text)


def _parsed(raw_arguments: str) -> dict[str, Any] | ArgumentsError:
    try:
        return parse(raw_arguments)
    except ArgumentsError as error:
        return error


async def _answer(tool: SchemaTool, checked: Checked) -> Outcome:
    try:
        return Outcome(result=cut(await tool.answer(checked.valid)))
    except TimeoutError:
        raise
    except Exception as error:
        return replace(_failed(tool.name, error), arguments=checked.arguments)


def _failed(name: str, error: BaseException) -> Outcome:
    if isinstance(error, ToolError):
        return Outcome(error=cut(str(error)))
    log.warning("Tool %s failed", name, exc_info=error)
    return Outcome(error=cut(f"The tool {name} failed: {type(error).__name__}: {error}"))


def _invalid(name: str, problems: tuple[Problem, ...], arguments: dict[str, Any]) -> Checked:
    lines = [f"Invalid arguments for {name}:", *(f"{each.where or 'the arguments'}: {each.told}" for each in problems)]
    return Checked(name, problems, cut("\n".join(lines)), arguments)


def _refused(name: str, where: str, rule: str, told: str) -> Checked:
    told = cut(told)
    return Checked(name, (Problem(where, rule, told),), told)


def cut(text: str) -> str:
    """`text` as far as it is sent to the model, free of half surrogate pairs, which cannot be sent."""
    text = text.encode("utf-8", "replace").decode("utf-8")
    if len(text) <= MOST_RESULT_CHARS:
        return text
    return f"{text[:MOST_RESULT_CHARS]}\n[Cut here: these are the first {MOST_RESULT_CHARS:,} of {len(text):,} characters.]"


_PROBLEMS = {
    "missing": ("required", "is missing"),
    "extra_forbidden": ("additionalProperties", "is not a parameter of this tool"),
    "int_type": ("type", "must be an integer"),
    "decimal_type": ("type", "must be a number"),
    "float_type": ("type", "must be a number"),
    "finite_number": ("type", "must be a finite number"),
    "string_type": ("type", "must be a string"),
    "bool_type": ("type", "must be true or false"),
    "list_type": ("type", "must be an array"),
    "dict_type": ("type", "must be an object"),
}
"""What pydantic calls a problem → the rule of JSON Schema, and JSON's words for it."""
_RULES = {"string_too_short": "minLength", "string_too_long": "maxLength", "too_long": "maxItems", "too_short": "minItems"}


def _problems(error: ValidationError) -> tuple[Problem, ...]:
    """What pydantic found, one for each parameter, in JSON's words instead of Python's."""
    problems = []
    for found in error.errors(include_url=False):
        kind = "decimal_type" if found["type"] == "is_instance_of" and found.get("ctx", {}).get("class") == "Decimal" else found["type"]
        rule, words = _PROBLEMS.get(kind, (_RULES.get(kind, kind), found["msg"]))
        given = "" if kind in ("missing", "extra_forbidden") else f" (got {_shown(found['input'])})"
        problems.append(Problem(cut(shortened(".".join(str(part) for part in found["loc"]))), rule, cut(words + given)))
    return tuple(problems)


def _shown(value: object) -> str:
    match value:
        case None | bool() | str():
            return shortened(json.dumps(value, ensure_ascii=False))
        case int():
            return shortened(format(Decimal(value), "f"))
        case Decimal() | float():
            return shortened(str(value))
        case _:
            return kind_of(value)


async def _in_thread(work: Callable[[], T], name: str) -> T:
    """`work`'s value, from a thread of its own. Not from the executor's: one that hangs there is waited for at exit."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def tell(value: T) -> None:
        if not future.done():
            future.set_result(value)

    def body() -> None:
        value = work()
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(tell, value)

    threading.Thread(target=body, name=name, daemon=True).start()
    return await future
