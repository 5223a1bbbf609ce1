"""vLLM's own opinion of command lines, asked in a child process: importing its parser takes seconds and pulls in torch."""

import asyncio
import json
import os
import subprocess
import sys
import tempfile
from asyncio.subprocess import Process
from collections.abc import Sequence
from contextlib import suppress
from typing import IO

from kimi_demo.dialect.failure import Failure
from kimi_demo.engines.availability import find_vllm

_TIMEOUT_S = 300.0
_IDLE_S = 120.0
"""How long the child is kept after a question: it holds half a GB, and the next question would wait for the import again."""

_MOST_KEPT = 200
_ANSWER_BYTES = 1 << 20

_CHILD = """
import json, sys
from contextlib import redirect_stderr
from io import StringIO

out, sys.stdout = sys.stdout, sys.stderr

from vllm.entrypoints.launchers.cli_args import make_arg_parser, validate_parsed_serve_args
from vllm.utils.argparse_utils import FlexibleArgumentParser

parser = make_arg_parser(FlexibleArgumentParser())


def verdict(arguments):
    said = StringIO()
    try:
        with redirect_stderr(said):
            validate_parsed_serve_args(parser.parse_args(arguments))
    except SystemExit:
        lines = [line for line in said.getvalue().splitlines() if "error: " in line]
        return lines[-1].split("error: ", 1)[1] if lines else said.getvalue()[-300:]
    except Exception as error:
        return str(error) or type(error).__name__
    return None


for line in sys.stdin:
    print(json.dumps(verdict(json.loads(line))), file=out, flush=True)
"""
"""A line of JSON in (a list of arguments), a line of JSON out (null, or what is said against them), until its input ends."""

_COMMAND = (sys.executable, "-c", _CHILD)


def _environment() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.upper().startswith("KIMI_DEMO_")}
    return kept | {"VLLM_NO_USAGE_STATS": "1"}


def _words(verdict: object) -> str | None:
    return None if verdict is None else " ".join(str(verdict).split())[:300]


def refused(lines: Sequence[Sequence[str]]) -> list[str | None]:
    """For each list of arguments (those of `vllm serve`): None, or vLLM's words against it. All are asked in one child process.

    Blocks for seconds. Raises Failure: server.no_vllm, server.parser (the child could not say).
    """
    if find_vllm() is None:
        raise Failure("server.no_vllm")
    asked = "".join(json.dumps(list(line)) + "\n" for line in lines)
    try:
        ended = subprocess.run(_COMMAND, input=asked, capture_output=True, text=True, timeout=_TIMEOUT_S, env=_environment())
        found = [json.loads(line) for line in ended.stdout.splitlines()]
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        raise Failure("server.parser", reason=str(error).splitlines()[0][:200]) from error
    if len(found) != len(lines):
        raise Failure("server.parser", reason=_last_line(ended.stderr))
    return [_words(one) for one in found]


class VllmParser:
    """The same for a page: one child, started with the first question and kept for a while; each command line is asked about once.

    Belongs to one event loop; `aclose` ends the child.
    """

    def __init__(self) -> None:
        self._asked: dict[tuple[str, ...], asyncio.Task[str | None]] = {}
        self._turn = asyncio.Lock()
        self._child: Process | None = None
        self._complaints: IO[bytes] | None = None
        self._idle: asyncio.TimerHandle | None = None

    async def refused(self, arguments: Sequence[str]) -> str | None:
        """None, or vLLM's words against the arguments (those of `vllm serve`). The first time takes as long as vLLM's import.

        May be cancelled: the answer is kept all the same. Raises Failure: server.no_vllm, server.parser (the child could not say).
        """
        key = tuple(arguments)
        task = self._asked.get(key)
        if task is None:
            task = self._asked[key] = asyncio.create_task(self._ask(key), name="vllm-parser")
            task.add_done_callback(lambda done: self._keep(key, done))
        return await asyncio.shield(task)

    async def aclose(self) -> None:
        for task in [task for task in self._asked.values() if not task.done()]:
            task.cancel()
            with suppress(asyncio.CancelledError, Failure):
                await task
        await self._end()

    def _keep(self, key: tuple[str, ...], done: asyncio.Task[str | None]) -> None:
        """Answers are kept; a child that could not say is asked again next time."""
        if done.cancelled() or done.exception() is not None:
            self._asked.pop(key, None)
        for old in [known for known, task in self._asked.items() if task.done()][:-_MOST_KEPT]:
            del self._asked[old]

    async def _ask(self, key: tuple[str, ...]) -> str | None:
        if find_vllm() is None:
            raise Failure("server.no_vllm")
        async with self._turn:
            answered = False
            try:
                child = await self._running()
                assert child.stdin is not None and child.stdout is not None
                child.stdin.write(json.dumps(key).encode() + b"\n")
                async with asyncio.timeout(_TIMEOUT_S):
                    await child.stdin.drain()
                    line = await child.stdout.readline()
                found = _words(json.loads(line))
                answered = True
                return found
            except (OSError, ValueError, TimeoutError) as error:
                raise Failure("server.parser", reason=self._last_words() or str(error)[:200] or type(error).__name__) from error
            finally:
                if answered:
                    self._idle = asyncio.get_running_loop().call_later(_IDLE_S, self._rest)
                else:  # it may be in the middle of an answer
                    await self._end()

    async def _running(self) -> Process:
        if self._idle is not None:
            self._idle.cancel()
        child = self._child
        if child is None or child.returncode is not None or child.stdin is None or child.stdin.is_closing():
            await self._end()
            self._complaints = tempfile.TemporaryFile()
            pipe = asyncio.subprocess.PIPE
            child = self._child = await asyncio.create_subprocess_exec(
                *_COMMAND, stdin=pipe, stdout=pipe, stderr=self._complaints, env=_environment(), limit=_ANSWER_BYTES
            )
        return child

    def _rest(self) -> None:
        """Its input ends, and so does the child."""
        if self._child is not None and self._child.stdin is not None:
            self._child.stdin.close()

    async def _end(self) -> None:
        if self._idle is not None:
            self._idle.cancel()
        child, self._child = self._child, None
        if child is not None:
            with suppress(ProcessLookupError):
                child.kill()
            await child.wait()
        if self._complaints is not None:
            self._complaints.close()
            self._complaints = None

    def _last_words(self) -> str:
        if self._complaints is None:
            return ""
        self._complaints.seek(0)
        return _last_line(self._complaints.read().decode(errors="replace"))


def _last_line(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[-1][:200] if lines else ""
