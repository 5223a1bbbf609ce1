"""An MCP server as the operator names it: NAME=COMMAND ARGUMENTS… or NAME=URL."""

import re
import shlex
from dataclasses import dataclass
from urllib.parse import urlsplit

NAME = re.compile(r"[a-z][a-z0-9-]{0,19}")


@dataclass(frozen=True)
class McpTarget:
    """command: the program and its arguments, started without a shell; or url: of a server that speaks streamable HTTP."""

    name: str
    command: tuple[str, ...] = ()
    url: str = ""


def mcp_target(text: str) -> McpTarget:
    """Raises ValueError, in words for who wrote it."""
    name, equals, target = text.strip().partition("=")
    name, target = name.strip(), target.strip()
    if not equals or not target:
        raise ValueError(f"must be NAME=COMMAND or NAME=URL, not {text.strip()!r}")
    if not NAME.fullmatch(name):
        raise ValueError(f"the name {name!r} must be small letters, digits and dashes (at most 20)")
    if re.match(r"https?://", target):
        if not urlsplit(target).hostname:
            raise ValueError(f"{target!r} names no host")
        return McpTarget(name, url=target)
    return McpTarget(name, command=tuple(shlex.split(target)))


def mcp_targets(texts: tuple[str, ...]) -> tuple[McpTarget, ...]:
    """All of them, each under a name of its own. Raises ValueError."""
    targets = tuple(mcp_target(text) for text in texts)
    names = [target.name for target in targets]
    if twice := {name for name in names if names.count(name) > 1}:
        raise ValueError(f"the name {sorted(twice)[0]!r} is given twice")
    return targets
