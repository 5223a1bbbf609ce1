"""`Workbench`: every tool that there is for a visitor, which of them are switched on, and the changes that a visitor makes."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from kimi_demo.dialect.failure import Failure
from kimi_demo.tools.bench import Bench, Benches
from kimi_demo.tools.guide import GUIDE_TOOLS
from kimi_demo.tools.mcp_server import McpServer
from kimi_demo.tools.own import OwnTool, checked, tool_of
from kimi_demo.tools.own_exchange import MOST_OWN, imported
from kimi_demo.tools.schema_checker import SchemaChecker
from kimi_demo.tools.showcase import SHOWCASE
from kimi_demo.tools.tool import AnyTool

CONNECT_WAIT_S = 10.0
"""How long a question waits for MCP servers that are still connecting."""

Source = Literal["guide", "showcase", "own", "mcp"]


@dataclass(frozen=True)
class Listed:
    """A tool as the picker shows it. server: of an MCP tool. tool: None where it cannot be used, and then `failure` says why; own: what
    its owner wrote, of a tool of their own."""

    name: str
    description: str
    source: Source
    on: bool
    tool: AnyTool | None
    server: str = ""
    failure: Failure | None = None
    own: OwnTool | None = None


@dataclass(frozen=True)
class Chosen:
    """What a conversation is to be started with. names: of the tools that are on, in order; choice: as in ChatRequest;
    parallel, approve: as in Bench."""

    names: tuple[str, ...]
    choice: str | dict[str, Any] | None
    parallel: bool
    approve: bool


@dataclass(frozen=True)
class Taken:
    """What an import did: tools added (under another name where theirs was taken), and left out because they were there already."""

    added: tuple[str, ...]
    same: int


class Workbench:
    """Every method takes the owner. Those that read raise Failure("own_tools.unreadable"), those that change also .unwritable."""

    def __init__(self, benches: Benches, checker: SchemaChecker, servers: Sequence[McpServer] = ()) -> None:
        self.servers = tuple(servers)
        self._benches = benches
        self._checker = checker

    def start(self) -> None:
        """Begins to connect to the MCP servers that are not there (again)."""
        for server in self.servers:
            if server.state != "ready":
                server.start()

    async def aclose(self) -> None:
        for server in self.servers:
            await server.aclose()
        await self._checker.aclose()

    def plain(self) -> "Workbench":
        """The same, without MCP servers: for viewers of a public page."""
        return Workbench(self._benches, self._checker)

    @property
    def benches(self) -> Benches:
        return self._benches

    def bench(self, owner: str) -> Bench:
        return self._benches.get(owner)

    def listed(self, owner: str) -> list[Listed]:
        """Every tool, by source; of two with the same name the first."""
        bench = self.bench(owner)
        found: dict[str, Listed] = {}
        sources: list[tuple[Source, Sequence[AnyTool]]] = [("guide", GUIDE_TOOLS), ("showcase", SHOWCASE)]
        for source, tools in sources:
            for tool in tools:
                found[tool.name] = Listed(tool.name, tool.description, source, bench.on.get(tool.name, source == "guide"), tool)
        for own in bench.own:
            on = bench.on.get(own.name, True)
            found.setdefault(own.name, Listed(own.name, own.description, "own", on, tool_of(own, self._checker), own=own))
        for server in self.servers:
            for mcp in server.tools:
                on = bench.on.get(mcp.name, False) and mcp.tool is not None
                row = Listed(mcp.name, mcp.description, "mcp", on, mcp.tool, server=server.name, failure=mcp.failure)
                found.setdefault(mcp.name, row)
        return list(found.values())

    def tools(self, owner: str, names: Sequence[str] | None = None) -> list[AnyTool]:
        """Those with these names, switched on or not; with None those that are on."""
        rows = self.listed(owner)
        return [row.tool for row in rows if row.tool is not None and (row.on if names is None else row.name in names)]

    async def chosen(self, owner: str) -> Chosen:
        """What the visitor has chosen for the next question. Waits a little for MCP servers whose tools are wanted and not known yet.

        Raises Failure: tool_choice.off (name), tool_choice.nothing.
        """
        bench = self.bench(owner)
        self.start()
        for server in self.servers:
            if not server.tools and any(on and name.startswith(f"{server.name}__") for name, on in bench.on.items()):
                await server.settled(CONNECT_WAIT_S)
        names = tuple(tool.name for tool in self.tools(owner))
        kind, _, name = bench.choice.partition(":")
        if kind == "tool":
            if name not in names:
                raise Failure("tool_choice.off", name=name)
            return Chosen(names, {"type": "function", "function": {"name": name}}, bench.parallel, bench.approve)
        if kind == "required" and not names:
            raise Failure("tool_choice.nothing")
        # auto is what servers do by themselves: it is not sent
        return Chosen(names, None if kind == "auto" or not names else kind, bench.parallel, bench.approve)

    async def switch(self, owner: str, name: str, on: bool) -> None:
        """Raises Failure("own_tools.unknown")."""
        if name not in [row.name for row in self.listed(owner)]:
            raise Failure("own_tools.unknown", name=name[:80])
        await self._benches.change(owner, lambda bench: bench.switched(name, on))

    async def choose(self, owner: str, choice: str) -> None:
        """choice: as in Bench. Raises Failure("tool_choice.unknown")."""
        known = ["auto", "none", "required", *(f"tool:{row.name}" for row in self.listed(owner))]
        if choice not in known:
            raise Failure("tool_choice.unknown", choice=choice[:80])
        await self._benches.change(owner, lambda bench: bench.model_copy(update={"choice": choice}))

    async def allow_parallel(self, owner: str, parallel: bool) -> None:
        await self._benches.change(owner, lambda bench: bench.model_copy(update={"parallel": parallel}))

    async def require_leave(self, owner: str, approve: bool) -> None:
        await self._benches.change(owner, lambda bench: bench.model_copy(update={"approve": approve}))

    async def save(self, owner: str, draft: OwnTool, was: str | None = None) -> OwnTool:
        """Keeps a new tool, or changes the one named `was`. Raises what `own.checked` raises, own_tools.too_many (limit), .unknown."""
        tool = await checked(draft, {name for name in self._taken(owner) if name != was}, self._checker)

        def kept(bench: Bench) -> Bench:
            if was is not None and bench.named(was) is None:
                raise Failure("own_tools.unknown", name=was[:80])
            if was is None and len(bench.own) >= MOST_OWN:
                raise Failure("own_tools.too_many", limit=MOST_OWN)
            if tool.name != was and bench.named(tool.name) is not None:  # another tab was quicker
                raise Failure("own_tools.name_taken", name=tool.name)
            return bench.with_tool(tool, was)

        await self._benches.change(owner, kept)
        return tool

    async def delete(self, owner: str, name: str) -> None:
        """An own tool; that it is gone already is no mistake."""
        await self._benches.change(owner, lambda bench: bench.without(name) if bench.named(name) is not None else bench)

    async def take_in(self, owner: str, data: bytes) -> Taken:
        """Imports a file of tools, all of them or none. Raises what `imported` raises, own_tools.import_checked, .too_many."""
        taken, same = self._taken(owner), 0
        added: list[OwnTool] = []
        known = self.bench(owner).own
        for number, draft in enumerate(imported(data), start=1):
            try:
                tool = await checked(draft, (), self._checker)
            except Failure as failure:
                raise EntryFailure(number, draft.name[:80], failure) from failure
            if any(_same(tool, each) for each in (*known, *added)):
                same += 1
                continue
            tool = tool.model_copy(update={"name": _free(tool.name, taken)})
            taken.add(tool.name)
            added.append(tool)

        def with_all(bench: Bench) -> Bench:
            if len(bench.own) + len(added) > MOST_OWN:
                raise Failure("own_tools.too_many", limit=MOST_OWN)
            for tool in added:
                bench = bench.with_tool(tool.model_copy(update={"name": _free(tool.name, {each.name for each in bench.own})}))
            return bench

        if added:
            await self._benches.change(owner, with_all)
        return Taken(tuple(tool.name for tool in added), same)

    def _taken(self, owner: str) -> set[str]:
        return {row.name for row in self.listed(owner)}


class EntryFailure(Failure):
    """A tool in a file that cannot be taken; `cause` says why, in a sentence of its own."""

    def __init__(self, number: int, name: str, cause: Failure) -> None:
        super().__init__("own_tools.import_checked", number=number, name=name, problem="")
        self.cause = cause


def _same(one: OwnTool, other: OwnTool) -> bool:
    """Whether they differ in nothing but how their schemas are written."""

    def known(tool: OwnTool) -> tuple[Any, ...]:
        return (tool.name, tool.description, json.loads(tool.parameters), tool.answering, tool.text)

    return known(one) == known(other)


def _free(name: str, taken: set[str]) -> str:
    free, number = name, 2
    while free in taken:
        free = f"{name[:60]}_{number}"
        number += 1
    return free
