"""`python -m kimi_demo.engines.rehearsal …`: the same commands as `python -m kimi_demo rehearsal …`."""

import argparse
import sys

from kimi_demo.engines.rehearsal.command import add_commands


def main() -> int:
    parser = argparse.ArgumentParser(prog="rehearsal", description=__doc__)
    add_commands(parser)
    arguments = parser.parse_args()
    status: int = arguments.handler(arguments)
    return status


if __name__ == "__main__":
    sys.exit(main())
