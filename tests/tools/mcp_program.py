"""A real MCP server for the tests: `python mcp_program.py` speaks over stdin and stdout, `… http PORT` over streamable HTTP.

`… stubborn` stays when its input has ended. TEST_TOKEN: over HTTP, the bearer token that every request must bring.
"""

import asyncio
import json
import os
import signal
import sys
from typing import Any

import uvicorn
from mcp.server.mcpserver import Image, MCPServer
from starlette.applications import Starlette
from starlette.middleware.base import BaseHTTPMiddleware, RequestResponseEndpoint
from starlette.requests import Request
from starlette.responses import Response

server = MCPServer("test")


@server.tool()
def add(a: int, b: int) -> str:
    "Add two numbers"
    return str(a + b)


@server.tool()
def environment() -> str:
    "Says what the server's environment holds"
    return json.dumps(dict(os.environ))


@server.tool(name="with.dots/and slashes")
def odd() -> str:
    "A name that no model could call"
    return "odd"


@server.tool()
async def slow(seconds: float) -> str:
    "Waits"
    await asyncio.sleep(seconds)
    return "waited"


@server.tool()
def broken() -> str:
    "Raises"
    raise ValueError("out of order")


@server.tool()
def leave() -> str:
    "Ends the server"
    os._exit(3)


@server.tool(structured_output=False)
def picture() -> list[Any]:
    "A picture"
    return ["two lines\nof text", Image(data=b"\x89PNG", format="png")]


@server.tool()
def remote() -> str:
    "Its schema refers to another host"
    return "never"


server._tool_manager._tools["remote"].parameters["$ref"] = "http://127.0.0.1:9/schema.json"


class NeedsToken(BaseHTTPMiddleware):
    async def dispatch(self, request: Request, call_next: RequestResponseEndpoint) -> Response:
        given, wanted = request.headers.get("authorization"), os.environ.get("TEST_TOKEN")
        return Response(status_code=401) if wanted and given != f"Bearer {wanted}" else await call_next(request)


def app() -> Starlette:
    made = server.streamable_http_app()
    if "TEST_TOKEN" in os.environ:
        made.add_middleware(NeedsToken)
    return made


if __name__ == "__main__":
    if sys.argv[1:2] == ["http"]:
        uvicorn.run(app(), host="127.0.0.1", port=int(sys.argv[2]), log_level="info")
    else:
        print("this goes to the log", file=sys.stderr, flush=True)
        server.run(transport="stdio")
        if sys.argv[1:2] == ["stubborn"]:
            signal.pause()
