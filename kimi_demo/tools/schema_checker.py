"""`SchemaChecker`: holds arguments against schemas that strangers wrote, in worker processes that may be killed."""

import asyncio
import json
import logging
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from kimi_demo.dialect.events import Problem
from kimi_demo.dialect.failure import Failure
from kimi_demo.tools.error import ToolError
from kimi_demo.tools.schema_worker import READY

log = logging.getLogger(__name__)

WORKERS = 2
"""A schema that explodes holds up one of them for its second; the other serves everybody else meanwhile."""

START_S = 60.0
WALL_S = 30.0 if sys.platform != "win32" else 1.0
"""The worker limits its own processor time to one second. This is for one that hangs otherwise, and for Windows, which cannot do that."""

_ROOT = str(Path(__file__).resolve().parents[2])
_START = "import sys; sys.path.insert(0, sys.argv[1]); from kimi_demo.tools.schema_worker import main; main()"


class SchemaChecker:
    """Workers start when they are first needed, and again after one was killed. Belongs to the event loop's thread."""

    def __init__(self, workers: int = WORKERS) -> None:
        self._free = asyncio.Semaphore(workers)
        self._idle: list[asyncio.subprocess.Process] = []
        self._all: set[asyncio.subprocess.Process] = set()

    async def read(self, schema: str) -> dict[str, Any]:
        """The schema in a text. Raises Failure: those of `read_parameters`, tool_schema.too_slow, tool_schema.no_worker (error)."""
        found = (await self._job(schema=schema))["schema"]
        assert isinstance(found, dict)
        return found

    async def problems(self, schema: str, arguments: str) -> tuple[Problem, ...]:
        """What is wrong with arguments (JSON of an object) by a schema (JSON). Raises Failure as `read`."""
        return tuple(Problem(*each) for each in (await self._job(schema=schema, arguments=arguments))["problems"])

    async def check(self, schema: str, arguments: str) -> tuple[Problem, ...]:
        """As `problems`, for a tool: raises ToolError, with words that end a sentence which says what could not be checked."""
        try:
            return await self.problems(schema, arguments)
        except Failure as failure:
            slow = failure.code == "tool_schema.too_slow"
            raise ToolError("it took too long." if slow else f"its schema cannot be used ({failure.code}).") from None

    async def aclose(self) -> None:
        for process in list(self._all):
            await self._end(process)

    async def _job(self, **job: str) -> dict[str, Any]:
        # Half a surrogate pair stays an escape in JSON; arguments have none, and in a schema it harms nobody.
        line = json.dumps(job).encode() + b"\n"
        async with self._free:
            process = self._idle.pop() if self._idle else await self._start()
            answer = b""
            try:
                answer = await self._ask(process, line)
            finally:  # also when the caller was cancelled: an answer that nobody took would be the next caller's
                if answer:
                    self._idle.append(process)
                else:
                    await asyncio.shield(self._end(process))
        if not answer:
            raise Failure("tool_schema.too_slow")
        found: dict[str, Any] = json.loads(answer)
        if "failure" in found:
            raise Failure(found["failure"], **found["params"])
        return found

    async def _ask(self, process: asyncio.subprocess.Process, line: bytes) -> bytes:
        """The worker's answer; b"" when it ended, or was silent for too long."""
        assert process.stdin is not None and process.stdout is not None
        try:
            async with asyncio.timeout(WALL_S):
                process.stdin.write(line)
                await process.stdin.drain()
                return await process.stdout.readline()
        except (TimeoutError, ConnectionError):
            return b""

    async def _start(self) -> asyncio.subprocess.Process:
        try:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-I", "-c", _START, _ROOT),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                limit=1 << 20,
                env={name: os.environ[name] for name in ("PATH", "SYSTEMROOT") if name in os.environ},  # no secrets of ours
                start_new_session=True,  # Ctrl-C in the terminal is the application's business
            )
        except OSError as error:
            raise Failure("tool_schema.no_worker", error=error.strerror or error) from error
        self._all.add(process)
        assert process.stdout is not None
        greeting = b""
        try:
            async with asyncio.timeout(START_S):
                greeting = await process.stdout.readline()
        except TimeoutError:
            pass
        finally:
            if greeting != READY:
                await asyncio.shield(self._end(process))
        if greeting != READY:
            raise Failure("tool_schema.no_worker", error="it did not start")
        return process

    async def _end(self, process: asyncio.subprocess.Process) -> None:
        if process in self._idle:
            self._idle.remove(process)
        self._all.discard(process)
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()
