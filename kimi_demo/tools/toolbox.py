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

from kimi_demo.tools.arguments import ArgumentsError, kind_of, parse, shortened
from kimi_demo.tools.tool import Tool

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


class Toolbox:
    """The tools that one conversation offers. limit_s: the longest that a call may take, in seconds."""

    def __init__(self, tools: Sequence[Tool], *, limit_s: float = LIMIT_S) -> None:
        self._tools = {tool.name: tool for tool in tools}
        self._limit_s = limit_s

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._tools)

    def schemas(self) -> list[dict[str, Any]]:
        """The tools in the OpenAI shape, in the order given."""
        return [tool.schema() for tool in self._tools.values()]

    async def call(self, name: str, raw_arguments: str) -> Outcome:
        """Calls a tool. Whatever is wrong with the call, or goes wrong in it, is an Outcome whose error tells the model; raises nothing.

        A tool that takes too long is left behind: its thread cannot be stopped, but nobody waits for it, at exit neither.
        """
        tool = self._tools.get(name)
        if tool is None:
            return Outcome(error=f"There is no tool named {json.dumps(name)}. Tools: {', '.join(self.names) or 'none'}.")
        started = time.monotonic()
        try:
            async with asyncio.timeout(self._limit_s):
                outcome = await _in_thread(lambda: carry_out(tool, raw_arguments), f"tool {name}")
        except TimeoutError:
            outcome = Outcome(error=f"The tool {name} did not finish within {self._limit_s:g} seconds.")
        return replace(outcome, seconds=time.monotonic() - started)


def carry_out(tool: Tool, raw_arguments: str) -> Outcome:
    """`Toolbox.call` without its time limit, in the caller's thread."""
    arguments: dict[str, Any] | None = None
    try:
        arguments = parse(raw_arguments)
        result = tool.function(tool.arguments.model_validate(arguments))
        if not isinstance(result, str):
            raise TypeError(f"returned {type(result).__name__} where text was expected")
        return Outcome(result=_cut(result), arguments=arguments)
    except ArgumentsError as error:
        return Outcome(error=_cut(str(error)))
    except ValidationError as error:
        return Outcome(error=_cut(_told(tool.name, error)), arguments=arguments)
    except BaseException as error:  # SystemExit as well: whatever a tool does must not end its thread without an answer
        log.warning("Tool %s failed", tool.name, exc_info=error)
        return Outcome(error=_cut(f"The tool {tool.name} failed: {type(error).__name__}: {error}"), arguments=arguments)


def _cut(text: str) -> str:
    """`text` as far as it is sent to the model, free of half surrogate pairs, which cannot be sent."""
    text = text.encode("utf-8", "replace").decode("utf-8")
    if len(text) <= MOST_RESULT_CHARS:
        return text
    return f"{text[:MOST_RESULT_CHARS]}\n[Cut here: these are the first {MOST_RESULT_CHARS:,} of {len(text):,} characters.]"


_PROBLEMS = {
    "missing": "is missing",
    "extra_forbidden": "is not a parameter of this tool",
    "int_type": "must be an integer",
    "decimal_type": "must be a number",
    "float_type": "must be a number",
    "finite_number": "must be a finite number",
    "string_type": "must be a string",
    "bool_type": "must be true or false",
    "list_type": "must be an array",
    "dict_type": "must be an object",
}


def _told(name: str, error: ValidationError) -> str:
    """What pydantic found, one line per parameter, in JSON's words instead of Python's."""
    lines = [f"Invalid arguments for {name}:"]
    for found in error.errors(include_url=False):
        where = ".".join(str(part) for part in found["loc"]) or "the arguments"
        kind = "decimal_type" if found["type"] == "is_instance_of" and found.get("ctx", {}).get("class") == "Decimal" else found["type"]
        given = "" if kind in ("missing", "extra_forbidden") else f" (got {_shown(found['input'])})"
        lines.append(f"{shortened(where)}: {_PROBLEMS.get(kind, found['msg'])}{given}")
    return "\n".join(lines)


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
