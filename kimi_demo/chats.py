"""`Chats`: what a person does with conversations: send, ask again, edit, go back and forth between versions, wait in line."""

import asyncio
import weakref
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any
from uuid import uuid4

from kimi_demo.dialect.conversation import ChatRequest, Message, past_turn, system, user
from kimi_demo.dialect.events import Asked, Event
from kimi_demo.dialect.failure import Failure
from kimi_demo.dialect.reply import rounds
from kimi_demo.dialect.sampling import Sampling
from kimi_demo.runs.conversations import KIND, UNDO_S, Conversation, Conversations, Queued, shortened
from kimi_demo.runs.registry import Registry
from kimi_demo.runs.rows import whole
from kimi_demo.runs.run import Run
from kimi_demo.runs.tree import Tree

MOST_WAITING = 20

Work = Callable[[Run, ChatRequest], Awaitable[None]]
"""What makes the reply: appends it to the run, or raises Failure."""


@dataclass(frozen=True)
class Asking:
    """A message and how it is to be answered."""

    text: str
    sampling: Sampling
    thinking: bool = True
    images: tuple[str, ...] = ()

    @property
    def parameters(self) -> dict[str, Any]:
        """As `Asked` keeps them; `of` reads them back."""
        images = {"images": list(self.images)} if self.images else {}
        return {**self.sampling.model_dump(exclude_none=True), "thinking": self.thinking, **images}

    @classmethod
    def of(cls, text: str, parameters: dict[str, Any]) -> "Asking":
        known = {name: value for name, value in parameters.items() if name in Sampling.model_fields}
        return cls(text, Sampling(**known), bool(parameters.get("thinking", True)), tuple(parameters.get("images") or ()))


@dataclass(frozen=True)
class Shown:
    """What a tab shows of a conversation. runs: from the first turn to the leaf; versions: of each of them, siblings in order;
    taken_back: whether there are turns after the leaf; going: the run that is being written, also when it is on another branch."""

    conversation: Conversation
    runs: Sequence[Run]
    versions: dict[str, list[str]]
    taken_back: bool
    going: Run | None


class Chats:
    """All conversations, and who is writing in them. Belongs to the event loop's thread; every method checks the owner.

    work: makes one reply. All methods raise Failure("conversations.unknown") for what is not the owner's.
    """

    def __init__(self, registry: Registry, work: Work, *, max_prompt_chars: int) -> None:
        self.conversations = Conversations(registry)
        self._registry = registry
        self._work = work
        self._max_prompt_chars = max_prompt_chars
        self._following: dict[str, asyncio.Task[None]] = {}  # conversation → what sends the next message when a reply is done
        self._locks: weakref.WeakValueDictionary[str, asyncio.Lock] = weakref.WeakValueDictionary()
        self._purging: set[asyncio.Task[None]] = set()

    # Looking

    def news(self, conversation_id: str) -> int:
        """Grows with every change to what is shown of the conversation."""
        return self.conversations.changes.get(conversation_id, 0)

    async def shown(self, conversation: Conversation) -> Shown:
        tree = await self._registry.tree(conversation.id, conversation.owner)
        path = tree.path(conversation.leaf)
        runs = [await self._registry.get(run_id, conversation.owner) for run_id in path]
        leaf = path[-1] if path else None
        return Shown(
            conversation=conversation,
            runs=runs,
            versions={run_id: tree.versions(run_id) for run_id in path},
            taken_back=tree.newest_under(leaf) != leaf,
            going=self.going(conversation),
        )

    async def path(self, conversation: Conversation, run_id: str) -> list[str]:
        """The turns up to this one; [] when it is not of this conversation."""
        tree = await self._registry.tree(conversation.id, conversation.owner)
        return tree.path(run_id)

    def going(self, conversation: Conversation) -> Run | None:
        """The run of the conversation that is being written."""
        return next((run for run in self._registry.active(conversation.owner, KIND) if run.group == conversation.id), None)

    async def settled(self, conversation: Conversation) -> None:
        """Returns when it is decided what follows a reply that has just ended."""
        task = self._following.get(conversation.id)
        if task is not None and self.going(conversation) is None:
            await asyncio.wait({task})

    async def before(self, owner: str, conversation_id: str) -> list[Message]:
        """What the next message would be sent after; [] for a conversation that has not begun."""
        conversation = await self.conversations.find(conversation_id, owner)
        return [] if conversation is None else await self._before(conversation, conversation.leaf)

    # Asking

    async def send(self, owner: str, conversation_id: str, asking: Asking) -> Run | None:
        """A new turn after the leaf; or None when a reply is being written: then the message waits in line.

        Messages that a stopped or failed reply left waiting go first, in order: who writes again wants to go on.

        Raises Failure: prompt.empty, prompt.too_long, conversations.deleted, conversations.queue_full, runs.too_many.
        """
        self.check(asking.text, asking.images)
        asking = replace(asking, text=whole(asking.text))
        async with self._lock(conversation_id):
            conversation = await self.conversations.open(conversation_id, owner)
            if self.going(conversation) is None and not conversation.queue:
                return await self._start(conversation, conversation.leaf, asking)
            if len(conversation.queue) >= MOST_WAITING:
                raise Failure("conversations.queue_full", limit=MOST_WAITING)
            waiting = Queued(uuid4().hex, asking.text, asking.parameters)
            queue = (*conversation.queue, waiting)
            self.conversations.wait_in_line(conversation, queue)
            if self.going(conversation) is None:
                await self._next(replace(conversation, queue=queue))
            return None

    async def again(
        self,
        owner: str,
        run_id: str,
        change: Callable[[Asking], Asking] = lambda asking: asking,
        *,
        work: Work | None = None,
    ) -> Run:
        """Another version of a turn, beside it: what was asked there, changed by `change` (another text, mode, limit, …).

        work: makes the reply in place of the usual. Raises Failure: runs.unknown, runs.busy, and those of `send`.
        """
        run = await self._registry.get(run_id, owner)
        asked = run.asked
        if run.kind != KIND or run.group is None or asked is None:
            raise Failure("runs.unknown")
        asking = change(Asking.of(asked.text, asked.parameters))
        self.check(asking.text, asking.images)
        async with self._lock(run.group):
            conversation = await self._idle(owner, run.group)
            return await self._start(conversation, run.parent, asking, work)

    def check(self, text: str, images: Sequence[str] = ()) -> None:
        """Images need no words. Raises Failure: prompt.empty, prompt.too_long."""
        if not text.strip() and not images:
            raise Failure("prompt.empty")
        if len(text) > self._max_prompt_chars:
            raise Failure("prompt.too_long", characters=len(text), limit=self._max_prompt_chars)

    # Versions

    async def turn_to(self, owner: str, run_id: str) -> None:
        """Shows the branch of this turn, up to its newest one."""
        run = await self._registry.get(run_id, owner)
        conversation, tree = await self._tree(owner, run.group or "")
        if run_id not in tree:
            raise Failure("runs.unknown")
        self.conversations.turn_to(conversation, tree.newest_under(run_id))

    async def take_back(self, owner: str, run_id: str) -> None:
        """The conversation goes on from before this turn; the turn stays, as a version. Raises Failure: runs.busy, runs.unknown."""
        run = await self._registry.get(run_id, owner)
        async with self._lock(run.group or ""):
            conversation = await self._idle(owner, run.group or "")
            self.conversations.turn_to(conversation, run.parent)

    async def bring_back(self, owner: str, conversation_id: str) -> None:
        """Undoes `take_back`: the newest turns after the leaf."""
        conversation, tree = await self._tree(owner, conversation_id)
        leaf = conversation.leaf if conversation.leaf in tree else None
        self.conversations.turn_to(conversation, tree.newest_under(leaf))

    # Waiting in line

    async def unqueue(self, owner: str, conversation_id: str, message_id: str) -> Asking:
        """Takes a waiting message back, and returns it. Raises Failure: conversations.not_waiting."""
        async with self._lock(conversation_id):
            conversation = await self.conversations.get(conversation_id, owner)
            found = next((each for each in conversation.queue if each.id == message_id), None)
            if found is None:
                raise Failure("conversations.not_waiting")
            self.conversations.wait_in_line(conversation, tuple(each for each in conversation.queue if each is not found))
            return Asking.of(found.text, found.parameters)

    async def send_waiting(self, owner: str, conversation_id: str) -> None:
        """Sends the first message that waits, although the reply before it did not finish.

        Raises Failure: runs.busy, conversations.not_waiting.
        """
        async with self._lock(conversation_id):
            conversation = await self._idle(owner, conversation_id)
            if not await self._next(conversation):
                raise Failure("conversations.not_waiting")

    async def stop(self, owner: str, conversation_id: str) -> None:
        """Stops the reply that is being written; what waits stays, unsent."""
        conversation = await self.conversations.find(conversation_id, owner)
        going = self.going(conversation) if conversation else None
        if going is not None:
            going.cancel()

    # The list

    async def delete(self, owner: str, conversation_id: str) -> Conversation:
        """Hides the conversation, and stops what is being written in it."""
        async with self._lock(conversation_id):
            conversation = await self.conversations.get(conversation_id, owner)
            going = self.going(conversation)
            if going is not None:
                going.cancel()
                await going.wait()
            self.conversations.delete(conversation)
        asyncio.get_running_loop().call_later(UNDO_S + 1, self.purge)
        return conversation

    async def restore(self, owner: str, conversation_id: str) -> None:
        found = await self.conversations.find(conversation_id, owner)
        if found is None:
            raise Failure("conversations.unknown")
        self.conversations.restore(found)

    def purge(self) -> None:
        """Begins to remove what was deleted too long ago to be brought back."""
        task = asyncio.get_running_loop().create_task(self.conversations.purge(), name="purge conversations")
        self._purging.add(task)
        task.add_done_callback(self._purging.discard)

    async def take_in(self, owner: str, title: str, instructions: str, turns: Iterable[tuple[str, Sequence[str], Sequence[Event]]]) -> str:
        """A conversation from elsewhere, as its own: (question, ids of its images, events of the reply) in order. Returns its id."""
        conversation = await self.conversations.open(uuid4().hex, owner)
        self.conversations.instruct(conversation, instructions)
        for question, images, events in turns:
            asked = Asked(question, {"imported": True, **({"images": list(images)} if images else {})})
            run = self._registry.add_finished(
                owner, KIND, (asked, *events), title=shortened(question), group=conversation.id, parent=conversation.leaf
            )
            self.conversations.grow(conversation, run.id, title=title or question)
            conversation = replace(conversation, leaf=run.id, title=conversation.title or title or question)
        return conversation.id

    async def aclose(self) -> None:
        """Sends nothing more. To be called before the registry is closed."""
        tasks = [*self._following.values(), *self._purging]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    # Inside

    async def _before(self, conversation: Conversation, leaf: str | None) -> list[Message]:
        tree = await self._registry.tree(conversation.id, conversation.owner)
        runs = [await self._registry.get(run_id, conversation.owner) for run_id in tree.path(leaf)]
        return [*([system(conversation.system)] if conversation.system.strip() else []), *history(runs)]

    async def _start(self, conversation: Conversation, parent: str | None, asking: Asking, work: Work | None = None) -> Run:
        messages = [*await self._before(conversation, parent), user(asking.text, asking.images)]
        request = ChatRequest(messages, asking.sampling, thinking=asking.thinking)

        async def reply(run: Run) -> None:
            await (work or self._work)(run, request)

        asked = Asked(asking.text, asking.parameters)
        title = shortened(asking.text, 80)
        run = self._registry.start(conversation.owner, KIND, reply, title=title, asked=asked, group=conversation.id, parent=parent)
        self.conversations.grow(conversation, run.id, title=asking.text)
        self._following[conversation.id] = asyncio.get_running_loop().create_task(self._follow(run), name=f"after {run.id}")
        return run

    async def _follow(self, run: Run) -> None:
        """Sends the next waiting message when the reply is done. One that failed or was stopped is left to the person."""
        assert run.group is not None
        state = await run.wait()
        async with self._lock(run.group):
            if state == "done":
                conversation = await self.conversations.find(run.group, run.owner)
                if conversation is not None and not conversation.deleted and self.going(conversation) is None:
                    with suppress(Failure):  # runs.closing, runs.too_many: it goes on waiting, and the page says so
                        await self._next(conversation)
            if self._following.get(run.group) is asyncio.current_task():
                del self._following[run.group]

    async def _next(self, conversation: Conversation) -> bool:
        """Whether there was a message to send. It stays in line when it cannot be sent."""
        if not conversation.queue:
            return False
        first, *rest = conversation.queue
        await self._start(conversation, conversation.leaf, Asking.of(first.text, first.parameters))
        self.conversations.wait_in_line(conversation, tuple(rest))
        return True

    async def _idle(self, owner: str, conversation_id: str) -> Conversation:
        conversation = await self.conversations.get(conversation_id, owner)
        if self.going(conversation) is not None:
            raise Failure("runs.busy")
        return conversation

    async def _tree(self, owner: str, conversation_id: str) -> tuple[Conversation, Tree]:
        conversation = await self.conversations.get(conversation_id, owner)
        return conversation, await self._registry.tree(conversation.id, owner)

    def _lock(self, conversation_id: str) -> asyncio.Lock:
        return self._locks.setdefault(conversation_id, asyncio.Lock())


def history(runs: Iterable[Run]) -> list[Message]:
    """Earlier turns as messages; a turn that failed or was stopped before its answer is left out."""
    messages: list[Message] = []
    for run in runs:
        asked, replies = run.asked, rounds(run.entries)
        if asked is not None and replies and replies[-1].answer.strip():
            messages += past_turn(asked.text, replies[-1].answer, asked.parameters.get("images") or ())
    return messages
