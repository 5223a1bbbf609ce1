"""How an MCP server is reached: over HTTP, or as a child process that ends with the application, however that ends."""

import asyncio
import os
import uuid
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from kimi_demo.engines.guardian import Guardian
from kimi_demo.mcp_target import McpTarget

_MARK = "KIMI_DEMO_MCP_CHILD"
"""A variable by which the child is found again; the library starts it and does not say its process id."""


def transport(target: McpTarget, guardian: Guardian, logs: Path) -> Any:
    """For `mcp.Client`, to be used once."""
    if target.url:
        return _over_http(target)
    return _child(target, guardian, logs / f"mcp-{target.name}.log")


def token_variable(name: str) -> str:
    """The environment variable that holds the bearer token of the server `name`: a flag would show in the process list."""
    return f"KIMI_DEMO_MCP_TOKEN_{name}".upper().replace("-", "_")


@asynccontextmanager
async def _over_http(target: McpTarget) -> AsyncGenerator[Any, None]:
    import httpx2
    from mcp.client.streamable_http import streamable_http_client

    token = os.environ.get(token_variable(target.name))
    headers = {"authorization": f"Bearer {token}"} if token else None
    # Long reads, as the library's own client has: a server may hold its stream open.
    async with (
        httpx2.AsyncClient(headers=headers, timeout=httpx2.Timeout(30.0, read=300.0)) as client,
        streamable_http_client(target.url, http_client=client) as streams,
    ):
        yield streams


@asynccontextmanager
async def _child(target: McpTarget, guardian: Guardian, log: Path) -> AsyncGenerator[Any, None]:
    """The server's environment is what the library thinks safe (PATH, HOME and the like): no key or password of ours is in it."""
    from mcp.client.stdio import StdioServerParameters, stdio_client

    mark = uuid.uuid4().hex
    parameters = StdioServerParameters(command=target.command[0], args=list(target.command[1:]), env={_MARK: mark})
    file = await asyncio.to_thread(_opened, log)
    pid: int | None = None
    try:
        async with stdio_client(parameters, errlog=file) as streams:
            pid = await asyncio.to_thread(_found, mark)
            if pid is not None:
                guardian.watch_session(pid)  # the library makes it the leader of a session
            yield streams
    finally:
        if pid is not None:
            guardian.forget(pid)
        file.close()


def _opened(log: Path) -> Any:
    log.parent.mkdir(parents=True, exist_ok=True)
    return log.open("w", encoding="utf-8", errors="replace")


def _found(mark: str) -> int | None:
    import psutil

    for child in psutil.Process().children():
        with suppress(psutil.Error):
            if child.environ().get(_MARK) == mark:
                return int(child.pid)
    return None
