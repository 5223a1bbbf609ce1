"""`password`: a line for the file of accounts, from a password that is typed (or piped in)."""

import argparse
import getpass
import sys

from kimi_demo.accounts import MOST_PASSWORD_CHARS, ROLES, hashed
from kimi_demo.flags import BadSetting
from kimi_demo.ui.texts import texts

LEAST_CHARS = 10


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `password`. Its handler returns 0, or raises BadSetting for a password that is none."""
    line = texts().say("cli.password")
    parser = subparsers.add_parser("password", help=line, description=line, allow_abbrev=False)
    parser.add_argument("name", help="the name that is signed in with")
    parser.add_argument("--role", choices=ROLES, default="viewer", help="operator: may do everything (default: viewer)")
    parser.set_defaults(handler=_main)


def _main(given: argparse.Namespace) -> int:
    password = getpass.getpass("Password: ") if sys.stdin.isatty() else sys.stdin.readline().rstrip("\n")
    if not LEAST_CHARS <= len(password) <= MOST_PASSWORD_CHARS:
        raise BadSetting([f"a password of {LEAST_CHARS} to {MOST_PASSWORD_CHARS} characters is needed"])
    print(f"{given.name}:{given.role}:{hashed(password)}")
    return 0
