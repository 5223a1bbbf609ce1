"""`McpServer`: one MCP server, connected in the background, asked for its tools, and called. No page ever waits for it."""

import asyncio
import json
import logging
import re
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from pydantic import TypeAdapter, ValidationError

from kimi_demo.dialect.events import Problem
from kimi_demo.dialect.failure import Failure
from kimi_demo.mcp_target import McpTarget
from kimi_demo.tools.error import ToolError
from kimi_demo.tools.schema_checker import SchemaChecker
from kimi_demo.tools.tool import SchemaTool

log = logging.getLogger(__name__)

CONNECT_S = 60.0
CALL_S = 30.0
AGAIN_S = 5.0
"""Not sooner than this after a failure is the server tried again, when somebody asks for it."""
MOST_TOOLS = 200
MOST_DESCRIPTION_CHARS = 4_000
MOST_NAME_CHARS = 64

State = Literal["off", "connecting", "ready", "failed"]


@dataclass(frozen=True)
class McpTool:
    """theirs: its name at the server; tool: as the model gets it, None when its schema cannot be used, and then `failure` says why."""

    theirs: str
    name: str
    description: str
    tool: SchemaTool | None = None
    failure: Failure | None = None


@dataclass(frozen=True)
class _Told:
    """What a server says of a tool, as it is noted for a start at which the server is not there."""

    name: str
    description: str
    input_schema: dict[str, Any]


_NOTE: TypeAdapter[list[_Told]] = TypeAdapter(list[_Told])


@dataclass
class _Link:
    """A connection: client is None until it stands; `gone` ends it."""

    client: Any = None
    gone: asyncio.Event = field(default_factory=asyncio.Event)


class McpServer:
    """state, why (words, where it failed) and tools are what the page shows. The tools stay known when the server goes, with `note` (a
    file) also over a restart: calling one is then a failed call, and connects again. connect: makes a transport for `mcp.Client`, used
    once. Belongs to the event loop's thread.
    """

    def __init__(
        self,
        target: McpTarget,
        connect: Callable[[], Any],
        checker: SchemaChecker,
        *,
        note: Path | None = None,
        connect_s: float = CONNECT_S,
        call_s: float = CALL_S,
    ) -> None:
        self.name = target.name
        self.state: State = "off"
        self.why = ""
        self.tools: tuple[McpTool, ...] = ()
        self._connect = connect
        self._checker = checker
        self._note = note
        self._connect_s = connect_s
        self._call_s = call_s
        self._link = _Link()
        self._task: asyncio.Task[None] | None = None
        self._failed_at = float("-inf")
        self._settled = asyncio.Event()

    def start(self) -> None:
        """Begins to connect, unless that is going on, done, or was just tried."""
        if self._task is not None and not self._task.done():
            return
        if time.monotonic() - self._failed_at < AGAIN_S:
            return
        self.state, self.why = "connecting", ""
        self._settled = asyncio.Event()
        self._link = _Link()
        self._task = asyncio.create_task(self._serve(self._link), name=f"mcp {self.name}")

    async def settled(self, seconds: float) -> None:
        """Waits until it is connected or has failed, at most so long."""
        if self.state == "connecting":
            try:
                async with asyncio.timeout(seconds):
                    await self._settled.wait()
            except TimeoutError:
                pass

    async def call(self, theirs: str, arguments: str) -> str:
        """What a tool returned, as text. Raises ToolError, in words for the model and for a person."""
        self.start()
        await self.settled(self._call_s)
        link = self._link
        if self.state != "ready" or link.client is None:
            raise ToolError(f"The MCP server {self.name} is not there: {self.why or 'it is still starting'}.")
        call = asyncio.ensure_future(link.client.call_tool(theirs, json.loads(arguments)))
        gone = asyncio.ensure_future(link.gone.wait())
        try:
            await asyncio.wait({call, gone}, return_when=asyncio.FIRST_COMPLETED)
            if not call.done():
                raise ToolError(f"The MCP server {self.name} went away during the call.")
            result = call.result()
        except ToolError:
            raise
        except Exception as error:
            if _is_broken(error):
                link.gone.set()
            raise ToolError(f"The MCP server {self.name} could not carry this out: {_words(error)}.") from None
        finally:
            call.cancel()
            gone.cancel()
        text = text_of(result)
        if result.is_error:
            raise ToolError(text or f"The MCP server {self.name} says that it failed, and not why.")
        return text

    async def aclose(self) -> None:
        """Ends the connection, and a server that we started. Bounded by the library to a few seconds."""
        self._link.gone.set()
        if self._task is not None:
            if self.state == "connecting":
                self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        self.state = "off"

    async def _serve(self, link: _Link) -> None:
        """Holds the connection: the library wants it opened and closed by the same task."""
        from mcp import Client

        try:
            if not self.tools:
                self.tools = await self._checked(await asyncio.to_thread(self._noted))
            async with asyncio.timeout(self._connect_s) as limit:
                async with Client(self._connect(), cache=None) as client:
                    told = await _told(client)
                    self.tools = await self._checked(told)
                    await asyncio.to_thread(self._take_note, told)
                    limit.reschedule(None)
                    link.client = client
                    self.state = "ready"
                    self._settled.set()
                    await link.gone.wait()
            self._lost("the connection has ended")
        except TimeoutError:
            self._lost(f"it did not answer within {self._connect_s:g} seconds")
        except Exception as error:
            log.warning("MCP server %s: %s", self.name, _words(error))
            self._lost(_words(error))
        finally:
            link.client = None
            link.gone.set()
            self._settled.set()

    def _lost(self, why: str) -> None:
        self.state, self.why = "failed", why
        self._failed_at = time.monotonic()

    async def _checked(self, told: list[_Told]) -> tuple[McpTool, ...]:
        tools: list[McpTool] = []
        for each in told:
            tools.append(await self._tool(each, {tool.name for tool in tools}))
        return tuple(tools)

    def _noted(self) -> list[_Told]:
        """[] where there is no note, or none that can be read: it is no more than what the server will say again."""
        try:
            return _NOTE.validate_json(self._note.read_bytes()) if self._note is not None else []
        except (OSError, ValidationError):
            return []

    def _take_note(self, told: list[_Told]) -> None:
        if self._note is None:
            return
        try:
            self._note.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            part = self._note.with_suffix(".part")
            part.write_bytes(_NOTE.dump_json(told))
            part.replace(self._note)
        except (OSError, ValueError) as error:
            log.warning("The tools of the MCP server %s cannot be noted: %s", self.name, error)

    async def _tool(self, found: _Told, taken: set[str]) -> McpTool:
        name, description = tool_name(self.name, found.name, taken), found.description
        schema = json.dumps(found.input_schema)
        try:
            parameters = await self._checker.read(schema)
        except Failure as failure:
            return McpTool(found.name, name, description, failure=failure)

        def check(arguments: str) -> Awaitable[tuple[Problem, ...]]:
            return self._checker.check(schema, arguments)

        def answer(arguments: str) -> Awaitable[str]:
            return self.call(found.name, arguments)

        return McpTool(found.name, name, description, SchemaTool(name, description, parameters, check, answer, limit_s=self._call_s))


async def _told(client: Any) -> list[_Told]:
    """All pages of the server's list of tools, up to MOST_TOOLS."""
    found: list[Any] = []
    cursor: str | None = None
    while len(found) < MOST_TOOLS:
        page = await client.list_tools(cursor=cursor)
        found += page.tools
        cursor = page.next_cursor
        if not cursor or not page.tools:
            break
    return [
        _Told(each.name, (each.description or each.title or "")[:MOST_DESCRIPTION_CHARS], each.input_schema) for each in found[:MOST_TOOLS]
    ]


def tool_name(server: str, theirs: str, taken: set[str]) -> str:
    """What the model calls the tool: the server's name before it, so that no server's tool can pass for another's."""
    name = f"{server}__{re.sub(r'[^A-Za-z0-9_-]', '_', theirs)}"[:MOST_NAME_CHARS]
    number = 2
    while name in taken:
        name = f"{name[: MOST_NAME_CHARS - 4]}_{number}"
        number += 1
    return name


def text_of(result: Any) -> str:
    """A result's texts; what is no text is named, for no model could read it here."""
    parts = []
    for item in result.content:
        if item.type == "text":
            parts.append(item.text)
        elif item.type == "resource" and getattr(item.resource, "text", None) is not None:
            parts.append(item.resource.text)
        elif item.type == "resource_link":
            parts.append(f"[{item.uri}]")
        else:
            parts.append(f"[{item.type}: {getattr(item, 'mime_type', None) or 'of an unknown kind'}; not shown to the model]")
    if not parts and result.structured_content is not None:
        return json.dumps(result.structured_content, ensure_ascii=False)
    return "\n".join(parts)


def _is_broken(error: Exception) -> bool:
    """Whether the connection is of no use any more, as opposed to a call that the server refused."""
    from mcp.shared.exceptions import MCPError

    return not isinstance(error, MCPError) or "clos" in str(error).lower()


def _words(error: BaseException) -> str:
    """Of an exception, or of the first one in a group of them."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, FileNotFoundError) and error.filename:
        return f"there is no program {error.filename}"
    return " ".join((str(error) or type(error).__name__).split())[:300].rstrip(".")
