"""The command line: picks the command, imports only that one, and turns what goes wrong into one line.

A command is a module with `add_parser(subparsers)`, which adds its parser and sets `handler`: arguments → exit code.
"""

import logging
import os
import select
import sys
from collections.abc import Sequence
from importlib import import_module

from kimi_demo import __version__
from kimi_demo.dialect.failure import Failure
from kimi_demo.flags import BadSetting, OneLineParser, joined
from kimi_demo.ui.texts import texts

# name → module; what each does is under `cli.<name>` in the texts.
COMMANDS = {
    "ui": "kimi_demo.ui.command",
    "batch": "kimi_demo.batch_command",
    "tools": "kimi_demo.tools_command",
    "plan": "kimi_demo.plan_command",
    "shape": "kimi_demo.shape_command",
    "qa": "kimi_demo.qa_command",
    "download": "kimi_demo.download_command",
    "serve": "kimi_demo.serve_command",
    "check": "kimi_demo.check_command",
    "bench": "kimi_demo.bench_command",
    "password": "kimi_demo.password_command",
    "rehearsal": "kimi_demo.engines.rehearsal.command",
}
DEFAULT = "ui"

_NOBODY_READS = 141
"""What a shell calls a program that SIGPIPE ended (128 + 13): `plan | head -1` is no failure that needs words."""


def main(arguments: Sequence[str] | None = None, prog: str = "python -m kimi_demo") -> int:
    """Run one command and return its exit code: 0 done, 1 failed, 2 asked for something impossible, 130 interrupted, 141 where
    nobody reads what it prints any more."""
    given = joined(sys.argv[1:] if arguments is None else arguments)
    try:
        if not given or given[0].startswith("-"):
            given = [DEFAULT, *given]
        elif given[0] not in COMMANDS:
            raise BadSetting([f"there is no command {given[0]!r}: choose from {', '.join(COMMANDS)}"])
        return _run(given, prog)
    except BadSetting as bad:
        for line in bad.lines:
            print(f"{prog}: error: {line}", file=sys.stderr)
        return 2
    except Failure as failure:
        print(f"{prog}: {texts().sentence(failure)}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    except Exception as error:
        if isinstance(error, BrokenPipeError) and _nobody_reads():
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or the interpreter complains as it ends
            return _NOBODY_READS
        logging.getLogger(__name__).exception("unexpected")
        print(f"{prog}: {texts().sentence(Failure('unexpected', error=error))}", file=sys.stderr)
        return 1


def _run(given: list[str], prog: str) -> int:
    parser = OneLineParser(prog=prog, allow_abbrev=False)
    commands = parser.add_subparsers(metavar="{" + ",".join(COMMANDS) + "}", required=True)
    import_module(COMMANDS[given[0]]).add_parser(commands)
    for command in commands.choices.values():
        command.add_argument("--version", action="version", version=f"kimi_demo {__version__}")
        command.epilog = command.epilog or _other_commands(given[0], prog)
    try:
        args = parser.parse_args(given)
        return int(args.handler(args) or 0)
    finally:
        sys.stdout.flush()  # here, where what goes wrong with it is told


def _nobody_reads() -> bool:
    """Whether it is stdout that is broken, and not another pipe."""
    poll = select.poll()
    poll.register(sys.stdout.fileno(), 0)
    return any(state & (select.POLLERR | select.POLLHUP) for _, state in poll.poll(0))


def _other_commands(chosen: str, prog: str) -> str:
    say = texts().say
    return "Other commands: " + "; ".join(f"{prog} {name} ({say(f'cli.{name}')})" for name in COMMANDS if name != chosen)
