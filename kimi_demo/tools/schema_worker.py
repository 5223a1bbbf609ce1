"""The worker's process: reads schemas and holds arguments against them, a JSON line in, a JSON line out. See schema_checker.

Each job may take CPU_S seconds of processor time. After that the operating system ends the process: a regular expression that explodes
runs in C, where no Python handler would ever be called. The same ends a worker whose application was killed meanwhile.
"""

import json
import math
import signal
import sys
from functools import lru_cache
from typing import Any

from kimi_demo.dialect.failure import Failure
from kimi_demo.tools.parameters_schema import read_parameters, validator_of
from kimi_demo.tools.schema_words import MOST_PROBLEMS, problems

CPU_S = 1.0
MOST_MEMORY = 1 << 30
READY = b"ready\n"


def main() -> None:
    """Jobs: {"schema": text} → {"schema": object}; {"schema": text, "arguments": text} → {"problems": [[where, rule, told], …]}.

    Both texts are JSON, the arguments' an object. A schema that cannot be gives {"failure": code, "params": {…}}.
    """
    sys.set_int_max_str_digits(0)  # tools/arguments.py has looked at the lengths
    _limit_memory()
    sys.stdout.buffer.write(READY)
    sys.stdout.buffer.flush()
    for line in sys.stdin.buffer:
        _alarm(CPU_S)
        answer = json.dumps(_answer(json.loads(line)))
        _alarm(0)
        sys.stdout.buffer.write(answer.encode() + b"\n")
        sys.stdout.buffer.flush()


def _answer(job: dict[str, str]) -> dict[str, Any]:
    try:
        schema = _read(job["schema"])
        if "arguments" not in job:
            return {"schema": schema}
        arguments = json.loads(job["arguments"])
        return {"problems": _too_large(arguments) or _problems(schema, arguments)}
    except Failure as failure:
        return {"failure": failure.code, "params": {name: str(value) for name, value in failure.params.items()}}
    except RecursionError:
        return {"failure": "tool_schema.endless", "params": {}}
    except MemoryError:
        return {"failure": "tool_schema.too_slow", "params": {}}
    except Exception as error:  # of jsonschema's, about a schema that nobody thought of: the next job deserves a worker all the same
        return {"failure": "unexpected", "params": {"error": f"{type(error).__name__}: {error}"[:300]}}


@lru_cache(maxsize=16)
def _read(text: str) -> dict[str, Any]:
    """Reading a large schema takes longer than all that comes after, and the same one comes with every call of its tool."""
    return read_parameters(text)


def _problems(schema: dict[str, Any], arguments: object) -> list[tuple[str, str, str]]:
    found: list[tuple[str, str, str]] = []
    for error in validator_of(schema).iter_errors(arguments):
        found += [(where[:200], rule[:60], told) for where, rule, told in problems(error)]
        if len(found) >= MOST_PROBLEMS:
            break
    return found[:MOST_PROBLEMS]


def _too_large(arguments: object) -> list[tuple[str, str, str]]:
    """Numbers such as 1e400, which jsonschema would take for infinity."""
    level = [("", arguments)]
    while level:
        where, value = level.pop()
        inner = f"{where}." if where else ""
        if isinstance(value, float) and not math.isfinite(value):
            return [(where[:200], "type", "is a number that is too large")]
        if isinstance(value, dict):
            level += [(f"{inner}{name}", each) for name, each in value.items()]
        elif isinstance(value, list):
            level += [(f"{inner}{index}", each) for index, each in enumerate(value)]
    return []


def _alarm(seconds: float) -> None:
    if sys.platform != "win32":  # there the application ends the process, by the clock on the wall
        signal.setitimer(signal.ITIMER_PROF, seconds)


def _limit_memory() -> None:
    if sys.platform == "linux":
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))


if __name__ == "__main__":
    main()
