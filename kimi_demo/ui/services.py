"""What the page's handlers work with, gathered once per application."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from kimi_demo.batch_queue import Batches
from kimi_demo.chats import Asking as ToAsk
from kimi_demo.chats import Chats
from kimi_demo.dialect.conversation import ChatRequest, Message, user
from kimi_demo.dialect.events import Asked, Timed
from kimi_demo.dialect.failure import Failure
from kimi_demo.dialect.sampling import PRESETS, Sampling
from kimi_demo.engines.accelerators import Lease
from kimi_demo.engines.availability import require_vllm
from kimi_demo.engines.chat_engine import ChatEngine
from kimi_demo.engines.offline import OfflineEngine
from kimi_demo.limits.gate import Gate
from kimi_demo.owners import is_viewer
from kimi_demo.qa_runs import QaRuns
from kimi_demo.runs.published import Published
from kimi_demo.runs.registry import Registry
from kimi_demo.runs.run import Run
from kimi_demo.server_control import ServerControl
from kimi_demo.settings import Settings
from kimi_demo.tasks import batch, batch_on_server, chat, repeat, use_tools
from kimi_demo.tools.people import Asking, People
from kimi_demo.tools.toolbox import Toolbox
from kimi_demo.tools.workbench import Workbench
from kimi_demo.ui.access import Access
from kimi_demo.ui.attachments import Attachments
from kimi_demo.ui.desk import Desk
from kimi_demo.ui.live import Pace
from kimi_demo.ui.texts import Texts
from kimi_demo.ui.view.notice import failure_html


@dataclass(frozen=True)
class ToolUse:
    """How a tool conversation may use tools. names: of the tools to offer, None for those that the visitor has switched on;
    choice, parallel: as in ChatRequest; approve: whether a person gives leave to each call before it is carried out."""

    names: tuple[str, ...] | None = None
    choice: str | dict[str, Any] | None = None
    parallel: bool = True
    approve: bool = False


@dataclass(frozen=True)
class Services:
    settings: Settings
    texts: Texts
    access: Access
    registry: Registry
    desk: Desk
    pace: Pace
    chats: Chats
    attachments: Attachments
    published: Published
    chat_engine: ChatEngine
    offline: OfflineEngine
    lease: Lease
    batches: Batches
    control: ServerControl
    qa: QaRuns
    people: People
    workbench: Workbench

    @property
    def gate(self) -> Gate | None:
        """What viewers of a public page pass; None in local mode."""
        return self.registry.gate

    def most_rounds(self, owner: str) -> int:
        """Of one tool conversation of theirs."""
        most = self.settings.max_rounds
        return min(most, self.settings.public_rounds) if is_viewer(owner) else most

    def within(self, owner: str, chosen: Sampling, preset: str) -> Sampling:
        """The parameters, with the preset's own number of tokens lowered to what a viewer may ask for: nobody has chosen that one."""
        limit = self.settings.public_max_tokens
        if not is_viewer(owner) or chosen.max_tokens <= limit or chosen.max_tokens != PRESETS[preset].sampling.max_tokens:
            return chosen
        return chosen.model_copy(update={"max_tokens": limit})

    def start_alone(self, owner: str, message: str, sampling: Sampling, *, thinking: bool, kind: str) -> Run:
        """A reply to `message` that belongs to no conversation. Raises Failure for a message that cannot be sent."""
        self.chats.check(message)
        request = ChatRequest([user(message)], sampling, thinking=thinking)

        async def work(run: Run) -> None:
            await chat(run, self.chat_engine, request)

        return self.registry.start(owner, kind, work, title=_title(message), asked=_asked(message, sampling, thinking))

    async def tool_use(self, owner: str, *, approve: bool = False) -> ToolUse:
        """As the visitor has chosen. approve: what their page shows, where it is ahead of what has been kept.

        Raises Failure: tool_choice.off, tool_choice.nothing, own_tools.unreadable.
        """
        chosen = await self.workbench.chosen(owner)
        return ToolUse(chosen.names, chosen.choice, chosen.parallel, approve or chosen.approve)

    def toolbox(self, owner: str, use: ToolUse) -> Toolbox:
        """The tools that a conversation of this visitor's offers. Raises Failure("own_tools.unreadable")."""
        return Toolbox(self.workbench.tools(owner, use.names))

    def start_tools(
        self,
        owner: str,
        group: str | None,
        question: str,
        sampling: Sampling,
        *,
        thinking: bool = True,
        kind: str = "tools",
        use: ToolUse = ToolUse(),
        parent: str | None = None,
        before: Sequence[Timed] = (),
    ) -> Run:
        """A tool conversation about `question`; every question stands on its own.

        parent: the question's first run, when this is another version of it; before: the rounds that it goes on from.
        """
        self.chats.check(question)
        toolbox = self.toolbox(owner, use)
        tools = toolbox.schemas()
        request = ChatRequest([user(question)], sampling, thinking=thinking, tools=tools, tool_choice=use.choice, parallel=use.parallel)

        async def work(run: Run) -> None:
            asking = Asking(partial(self.people.ask, run.id), self.settings.max_wait_s, use.approve) if kind == "tools" else None
            try:
                rounds = self.most_rounds(owner)
                await use_tools(run, self.chat_engine, request, toolbox, max_rounds=rounds, asking=asking, before=before)
            finally:
                self.people.forget(run.id)

        more = {"approve": True} if use.approve else {}
        asked = _asked(question, sampling, thinking, **more)
        return self.registry.start(owner, kind, work, title=_title(question), group=group, parent=parent, asked=asked)

    def start_plain(self, owner: str, group: str | None, asking: ToAsk, *, parent: str) -> Run:
        """The same question as in the tool conversation `parent`, without tools."""
        request = ChatRequest([user(asking.text)], asking.sampling, thinking=asking.thinking)

        async def work(run: Run) -> None:
            await chat(run, self.chat_engine, request)

        asked = _asked(asking.text, asking.sampling, asking.thinking, **{"as": "plain"})
        return self.registry.start(owner, "tools", work, title=_title(asking.text), group=group, parent=parent, asked=asked)

    def start_repeat(self, owner: str, group: str | None, asking: ToAsk, use: ToolUse, times: int, *, parent: str) -> Run:
        """The same question as in the tool conversation `parent`, many times; nobody is asked about a call.

        Raises Failure: limits.repeats (limit).
        """
        if self.gate is not None and is_viewer(owner) and times > self.gate.rules.repeats:
            raise Failure("limits.repeats", limit=self.gate.rules.repeats)
        toolbox = self.toolbox(owner, use)
        request = ChatRequest(
            [user(asking.text)],
            asking.sampling,
            thinking=asking.thinking,
            tools=toolbox.schemas(),
            tool_choice=use.choice,
            parallel=use.parallel,
        )

        async def work(run: Run) -> None:
            await repeat(run, self.chat_engine, request, toolbox, times=times, max_rounds=self.most_rounds(owner))

        asked = _asked(asking.text, asking.sampling, asking.thinking, **{"as": "repeat", "times": times})
        return self.registry.start(owner, "tools", work, title=_title(asking.text), group=group, parent=parent, asked=asked)

    def start_batch(
        self,
        owner: str,
        group: str | None,
        prompts: Sequence[str],
        sampling: Sampling,
        *,
        thinking: bool,
        takeover: bool = False,
        kind: str,
    ) -> Run:
        """All `prompts` through somebody's server where that answers the chat, else through the in-process engine.

        Raises Failure when there is none, or one cannot be sent.
        """
        if not self.chat_engine.remote:
            require_vllm()
        if not prompts:
            raise Failure("batch.no_prompts")
        if self.gate is not None and is_viewer(owner) and len(prompts) > self.gate.rules.rows:
            raise Failure("limits.rows", rows=len(prompts), limit=self.gate.rules.rows)
        if len(prompts) > self.settings.max_batch_rows:
            raise Failure("batch.too_many_rows", rows=len(prompts), limit=self.settings.max_batch_rows)
        for number, prompt in enumerate(prompts, start=1):
            if len(prompt) > self.settings.max_prompt_chars:
                raise Failure("batch.row_too_long", row=number, characters=len(prompt), limit=self.settings.max_prompt_chars)
        rows: list[list[Message]] = [[user(prompt)] for prompt in prompts]

        async def work(run: Run) -> None:
            if self.chat_engine.remote:
                await batch_on_server(run, self.chat_engine, prompts, sampling, thinking=thinking)
            else:
                await batch(run, self.offline, self.lease, rows, sampling, thinking=thinking, takeover=takeover)

        asked = _asked(prompts[0], sampling, thinking, rows=len(prompts))
        return self.registry.start(owner, kind, work, title=_title(prompts[0]), group=group, asked=asked)

    async def require_shelf(self, owner: str, conversation_id: str) -> None:
        """Raises Failure("limits.conversations") where a viewer would have one conversation too many with this."""
        if not is_viewer(owner):
            return
        limit = self.settings.public_conversations
        kept = await self.chats.conversations.list(owner, limit=limit)
        if len(kept) >= limit and all(each.id != conversation_id for each in kept):
            raise Failure("limits.conversations", limit=limit)

    async def require_idle(self, owner: str, kind: str) -> None:
        """Raises Failure("runs.busy") while the visitor's current group is being written."""
        if await self.desk.active(owner, kind) is not None:
            raise Failure("runs.busy")

    async def stop(self, owner: str, kind: str) -> None:
        """Stops what the visitor sees running."""
        run = await self.desk.active(owner, kind)
        if run is not None:
            run.cancel()

    def notice(self, failure: Failure) -> str:
        """A failure as HTML, for the place where the input was given."""
        return failure_html(failure, self.texts)


def _title(text: str) -> str:
    return " ".join(text.split())[:80]


def _asked(text: str, sampling: Sampling, thinking: bool, **more: Any) -> Asked:
    return Asked(text, {**sampling.model_dump(exclude_none=True), "thinking": thinking, **more})
