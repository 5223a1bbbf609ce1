"""`tools`: a question through a tool conversation, without a page; the same run as the page's /tools endpoint."""

import argparse
import asyncio
import sys
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import Any

from kimi_demo.command_endpoint import command_endpoint
from kimi_demo.command_runs import keep_run
from kimi_demo.dialect.conversation import user
from kimi_demo.dialect.events import Asked, Event, Timed
from kimi_demo.dialect.failure import Failure
from kimi_demo.dialect.sampling import Sampling
from kimi_demo.engines.room import fit
from kimi_demo.flags import ATTACHING, LOADING, add_flags, settings_from
from kimi_demo.mcp_target import mcp_targets
from kimi_demo.runs.store import STORE
from kimi_demo.settings import Settings
from kimi_demo.tools.guide import GUIDE_TOOLS
from kimi_demo.tools.rounds import converse
from kimi_demo.tools.showcase import SHOWCASE
from kimi_demo.tools.summary import summary
from kimi_demo.tools.tool import AnyTool
from kimi_demo.tools.toolbox import Toolbox
from kimi_demo.tools_console import ToolsConsole
from kimi_demo.ui.parameters import sampling
from kimi_demo.ui.texts import texts

DONE, FAILED, BAD_INPUT, INTERRUPTED = 0, 1, 2, 130

_SETTINGS = (*LOADING, *ATTACHING, "mcp", "data", "language", "max_prompt_chars", "max_rounds")
_CHOICES = ("auto", "none", "required")


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `tools`. Its handler returns 0 (answered), 1 (failed on the way), 2 (asked for something impossible), 130 (interrupted)."""
    line = texts().say("cli.tools")
    parser = subparsers.add_parser("tools", help=line, description=line, usage='%(prog)s "QUESTION" [flags]', allow_abbrev=False)
    add = parser.add_argument
    add("question", nargs="?", metavar="QUESTION", help="what to ask; - reads it from standard input")
    add("--json", action="store_true", help="print the whole run as one JSON object, as the page's /tools endpoint returns it")
    add("--list", action="store_true", help="print the tools that there are, MCP servers included, and end")
    add("--tools", metavar="NAME,NAME", help="which tools to offer (default: the deployment guide's four)")
    add("--tool-choice", default="auto", metavar="CHOICE", help="auto, none, required, or the name of a tool (default: auto)")
    add("--parallel", action=argparse.BooleanOptionalAction, default=True, help="several calls in one reply (default: yes)")
    add("--temperature", type=float, metavar="X", help="default: 0.01")
    add("--seed", type=int, metavar="N", help="default: none")
    add_flags(parser, _SETTINGS)
    parser.set_defaults(handler=_main)


def _main(given: argparse.Namespace) -> int:
    settings = settings_from(given)
    console = ToolsConsole(texts(settings.language), as_json=given.json)
    try:
        return asyncio.run(_Command(settings, given, console).run())
    except KeyboardInterrupt:
        console.end()
        return INTERRUPTED


class _Command:
    def __init__(self, settings: Settings, given: argparse.Namespace, console: ToolsConsole) -> None:
        self._settings = settings
        self._given = given
        self._console = console
        self._entries: list[Timed] = []
        self._began = time.monotonic()

    async def run(self) -> int:
        async with AsyncExitStack() as stack:
            try:
                question = "" if self._given.list else self._question()
                chosen = sampling("tools", temperature=self._given.temperature, seed=self._given.seed)
                tools = await self._tools(stack)
                if self._given.list:
                    for tool in tools:
                        self._console.line(f"{tool.name}: {tool.description}")
                    return DONE
                toolbox, choice = Toolbox(tools), self._choice([tool.name for tool in tools])
            except Failure as failure:
                self._console.failure(failure)
                return BAD_INPUT
            try:
                found = await stack.enter_async_context(command_endpoint(self._settings, self._console.event))
                endpoint = found.endpoint
                await converse(
                    endpoint,
                    [user(question)],
                    toolbox,
                    chosen,
                    thinking=True,
                    emit=self._emit,
                    max_rounds=self._settings.max_rounds,
                    tool_choice=choice,
                    parallel=self._given.parallel,
                    prepare=lambda asked: fit(asked, endpoint),
                )
            except Failure as failure:
                self._failed(failure)
                self._keep(question, chosen, failure)
                return FAILED
            self._console.end()
            self._keep(question, chosen)
            if self._given.json:
                self._console.json(summary(self._entries))
            return DONE

    def _emit(self, event: Event) -> None:
        self._entries.append(Timed(time.monotonic() - self._began, event))
        self._console.event(event)

    def _keep(self, question: str, chosen: Sampling, failure: Failure | None = None) -> None:
        """Beside the page's runs. That it cannot be kept is said, and changes nothing about what was answered."""
        asked = Asked(question, {**chosen.model_dump(exclude_none=True), "thinking": True})
        try:
            keep_run(self._settings.data / STORE, "tools", asked, self._entries, failure)
        except Failure as trouble:
            self._console.failure(trouble)

    def _failed(self, failure: Failure) -> None:
        """What came until then is not lost: the object says it, and has the failure beside it."""
        self._console.failure(failure)
        if self._given.json:
            self._console.json({**summary(self._entries), "error": {"code": failure.code, **failure.params}})

    def _question(self) -> str:
        """Raises Failure: prompt.empty, prompt.too_long, tools_command.not_text."""
        given = self._given.question
        try:
            text: str = sys.stdin.buffer.read().decode("utf-8-sig") if given == "-" else given or ""
        except UnicodeDecodeError as error:
            raise Failure("tools_command.not_text", byte=error.start) from None
        if not text.strip():
            raise Failure("prompt.empty")
        if len(text) > self._settings.max_prompt_chars:
            raise Failure("prompt.too_long", characters=len(text), limit=self._settings.max_prompt_chars)
        return text

    def _choice(self, names: Sequence[str]) -> str | dict[str, Any] | None:
        """Raises Failure("tool_choice.off", name=…)."""
        choice = self._given.tool_choice
        if choice in _CHOICES:
            return None if choice == "auto" else str(choice)
        if choice not in names:
            raise Failure("tool_choice.off", name=choice)
        return {"type": "function", "function": {"name": choice}}

    async def _tools(self, stack: AsyncExitStack) -> list[AnyTool]:
        """Those that are asked for. MCP servers are started only where one of theirs may be meant.

        Raises Failure: tools_command.unknown_tool (name, known), tools_command.mcp (name, why).
        """
        names = [name.strip() for name in (self._given.tools or "").split(",") if name.strip()]
        if not names and not self._given.list:
            return list(GUIDE_TOOLS)
        known: list[AnyTool] = [*GUIDE_TOOLS, *SHOWCASE]
        if self._settings.mcp and (self._given.list or any("__" in name for name in names)):
            known += await self._mcp_tools(stack, names)
        table = {tool.name: tool for tool in known}
        for name in names:
            if name not in table:
                raise Failure("tools_command.unknown_tool", name=name, known=", ".join(table))
        return [table[name] for name in dict.fromkeys(names)] if names else known

    async def _mcp_tools(self, stack: AsyncExitStack, names: Sequence[str]) -> list[AnyTool]:
        from kimi_demo.engines.guardian import Guardian
        from kimi_demo.tools.mcp_server import CONNECT_S, McpServer
        from kimi_demo.tools.mcp_transport import transport
        from kimi_demo.tools.schema_checker import SchemaChecker

        guardian, checker, logs = Guardian(), SchemaChecker(), self._settings.data / "logs"
        stack.callback(guardian.close)
        stack.push_async_callback(checker.aclose)
        found: list[AnyTool] = []
        for target in mcp_targets(self._settings.mcp):
            if names and not any(name.startswith(f"{target.name}__") for name in names):
                continue
            server = McpServer(target, lambda target=target: transport(target, guardian, logs), checker)  # type: ignore[misc]
            server.start()
            stack.push_async_callback(server.aclose)
            await server.settled(CONNECT_S)
            if server.state != "ready":
                raise Failure("tools_command.mcp", name=server.name, why=server.why)
            found += [each.tool for each in server.tools if each.tool is not None]
        return found
