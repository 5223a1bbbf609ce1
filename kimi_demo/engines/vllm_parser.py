"""vLLM's own opinion of command lines, asked in a child process: importing its parser takes seconds and pulls in torch."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence

from kimi_demo.dialect.failure import Failure
from kimi_demo.engines.availability import find_vllm

_TIMEOUT_S = 300.0

_CHILD = """
import json, sys
from contextlib import redirect_stderr
from io import StringIO

from vllm.entrypoints.launchers.cli_args import make_arg_parser, validate_parsed_serve_args
from vllm.utils.argparse_utils import FlexibleArgumentParser


def verdict(arguments):
    parser = make_arg_parser(FlexibleArgumentParser())
    said = StringIO()
    try:
        with redirect_stderr(said):
            validate_parsed_serve_args(parser.parse_args(arguments))
    except SystemExit:
        lines = [line for line in said.getvalue().splitlines() if "error: " in line]
        return lines[-1].split("error: ", 1)[1] if lines else said.getvalue()[-300:]
    except Exception as error:
        return str(error)
    return None


out = sys.stdout
sys.stdout = sys.stderr
json.dump([verdict(one) for one in json.load(sys.stdin)], out)
"""


def refused(lines: Sequence[Sequence[str]]) -> list[str | None]:
    """For each list of arguments (those of `vllm serve`): None, or vLLM's words against it. All are asked in one child process.

    Blocks for seconds. Raises Failure: server.no_vllm, server.parser (the child could not say).
    """
    if find_vllm() is None:
        raise Failure("server.no_vllm")
    environment = {name: value for name, value in os.environ.items() if not name.upper().startswith("KIMI_DEMO_")}
    try:
        ended = subprocess.run(
            [sys.executable, "-c", _CHILD],
            input=json.dumps([list(line) for line in lines]),
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_S,
            env=environment | {"VLLM_NO_USAGE_STATS": "1"},
        )
        found = json.loads(ended.stdout)
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        raise Failure("server.parser", reason=str(error).splitlines()[0][:200]) from error
    return [None if one is None else " ".join(str(one).split())[:300] for one in found]
