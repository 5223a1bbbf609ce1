"""`Registry`: the runs of all people. Every look-up takes the owner; another's run is as unknown as one that never was."""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import replace
from uuid import uuid4

from kimi_demo.dialect.events import Asked, Ended, Event, Timed
from kimi_demo.dialect.failure import Failure
from kimi_demo.engines.request_label import REQUEST_LABEL
from kimi_demo.limits.gate import Gate
from kimi_demo.limits.rules import Rules, Wanted
from kimi_demo.limits.spent import spent
from kimi_demo.owners import is_viewer
from kimi_demo.runs.rows import whole
from kimi_demo.runs.run import Run
from kimi_demo.runs.store import Store
from kimi_demo.runs.tree import Node, Tree

log = logging.getLogger(__name__)

MOST_KEPT_EVENTS = 200_000


class Registry:
    """Starts runs, finds them again, and hands every event to the store. Belongs to the event loop's thread.

    max_at_once: most runs going at the same time, all owners together.
    keep: most finished runs held in memory (with at most MOST_KEPT_EVENTS); older ones are read from the store.
    """

    def __init__(self, store: Store, max_at_once: int, keep: int = 64) -> None:
        self._store = store
        self._max_at_once = max_at_once
        self._keep = keep
        self._live: dict[str, Run] = {}
        self._finished: OrderedDict[str, Run] = OrderedDict()
        self._closing = False
        self.gate: Gate | None = None  # what viewers of a public page pass before their runs begin
        self.viewers_veil: Callable[[Event], Event] | None = None  # for the runs of viewers of a public page
        self.on_deleted: Callable[[Run], Awaitable[None]] | None = None  # what else of a run is to go

    @property
    def store(self) -> Store:
        return self._store

    def start(
        self,
        owner: str,
        kind: str,
        work: Callable[[Run], Awaitable[None]],
        *,
        title: str,
        asked: Asked,
        group: str | None = None,
        parent: str | None = None,
    ) -> Run:
        """A new run that does `work`. What it asks comes first in its list, with the parameters that a person chose.

        The run ends as done when `work` returns, as failed when it raises, as stopped when it is cancelled.
        Raises Failure: runs.too_many (limit), runs.closing.
        """
        if self._closing:
            raise Failure("runs.closing")
        gate = self.gate if is_viewer(owner) else None
        if gate is None and sum(not is_viewer(each.owner) for each in self._live.values()) >= self._max_at_once:
            raise Failure("runs.too_many", limit=self._max_at_once)
        id = uuid4().hex
        if gate is not None:
            gate.admit(id, owner, wanted_of(kind, asked, gate.rules))
        run = self._new(owner, kind, title, group, parent, id)
        run.append(replace(asked, text=whole(asked.text)))

        async def labelled(run: Run) -> None:
            REQUEST_LABEL.set(run.id)  # of this run's own task only
            if gate is None:
                await work(run)
                return
            async with gate.turn(run.id, run.append, lambda: spent(run.entries)):
                await work(run)

        run.start(labelled)
        if gate is not None:
            run.when_over(lambda: gate.give_up(run.id))  # one that is stopped before its first step never came to its turn
        return run

    def add_finished(
        self, owner: str, kind: str, events: Iterable[Event], *, title: str, group: str | None = None, parent: str | None = None
    ) -> Run:
        """A run that happened elsewhere. Raises Failure: runs.closing."""
        if self._closing:
            raise Failure("runs.closing")
        run = self._new(owner, kind, title, group, parent)
        for event in (*events, Ended("done")):
            run.append(event)
        return run

    def _new(self, owner: str, kind: str, title: str, group: str | None, parent: str | None, id: str | None = None) -> Run:
        veil = self.viewers_veil if is_viewer(owner) else None
        run = Run(owner=owner, kind=kind, title=whole(title), group=group, parent=parent, id=id, on_append=self._appended, veil=veil)
        self._live[run.id] = run
        self._store.add(run)
        return run

    async def get(self, run_id: str, owner: str) -> Run:
        """The run, going or finished. Raises Failure: runs.unknown (also when it is another's), store.corrupt, store.unusable."""
        run = self._in_memory(run_id)
        if run is None:
            loaded = await asyncio.to_thread(self._store.load, run_id, owner)
            run = self._in_memory(run_id) or loaded  # another look-up may have been faster; then all share its object
            if run is not None and run is loaded:
                self._remember(run)
        if run is None or run.owner != owner:
            raise Failure("runs.unknown")
        return run

    async def group(self, group_id: str, owner: str) -> list[Run]:
        """The owner's runs of a group, in order of creation."""
        return [await self.get(run_id, owner) for run_id in await self._ids(owner, group=group_id)]

    async def tree(self, group_id: str, owner: str) -> Tree:
        """How the owner's runs of a group follow one another."""
        nodes = {node.id: node for node in await asyncio.to_thread(self._store.nodes, group_id, owner)}
        for run in sorted((*self._finished.values(), *self._live.values()), key=lambda run: run.created_at):
            if run.group == group_id and run.owner == owner:  # on disk as well, unless that is full
                nodes.setdefault(run.id, Node(run.id, run.parent))
        return Tree(list(nodes.values()))

    async def latest(self, owner: str, kind: str) -> Run | None:
        """The owner's newest run of a kind, going or finished."""
        ids = await self._ids(owner, kind=kind)
        return await self.get(ids[-1], owner) if ids else None

    def active(self, owner: str, kind: str | None = None) -> list[Run]:
        """The owner's runs that are going (of a kind, or of any), in order of creation."""
        return [run for run in self._live.values() if run.owner == owner and kind in (None, run.kind)]

    def all_active(self) -> list[Run]:
        """Every run that is going."""
        return list(self._live.values())

    def seen(self, run_id: str, owner: str) -> Run | None:
        """The run, where it is in memory and the owner's; for what is only worth a look, not a read of the disk."""
        run = self._live.get(run_id) or self._finished.get(run_id)
        return run if run is not None and run.owner == owner else None

    @property
    def going(self) -> int:
        """How many runs are going, all owners together."""
        return len(self._live)

    async def delete(self, run_id: str, owner: str) -> None:
        """Removes a run of one's own from memory and disk; one that is going is stopped first. Raises Failure: runs.unknown."""
        run = await self.get(run_id, owner)
        run.cancel()
        await run.wait()
        self._finished.pop(run_id, None)
        await asyncio.to_thread(self._store.delete, run_id)
        if self.on_deleted is not None:
            await self.on_deleted(run)

    async def aclose(self) -> None:
        """Stops every run and waits until the store has written all of it. Nothing starts after this."""
        self._closing = True
        going = list(self._live.values())
        for run in going:
            run.cancel()
        for run in going:
            await run.wait()
        await asyncio.to_thread(self._store.flush)

    def _appended(self, run: Run, timed: Timed) -> None:
        self._store.write(run.id, timed)
        if isinstance(timed.event, Ended):
            self._live.pop(run.id, None)
            self._remember(run)

    def _in_memory(self, run_id: str) -> Run | None:
        run = self._live.get(run_id)
        if run is None and run_id in self._finished:
            self._finished.move_to_end(run_id)
            run = self._finished[run_id]
        return run

    def _remember(self, run: Run) -> None:
        self._finished[run.id] = run
        events = sum(len(kept.entries) for kept in self._finished.values())
        for oldest in list(self._finished.values())[:-1]:
            if len(self._finished) <= self._keep and events <= MOST_KEPT_EVENTS:
                break
            if self._store.holds(oldest.id):  # what is not on disk (which may be full) would be gone
                del self._finished[oldest.id]
                events -= len(oldest.entries)

    async def _ids(self, owner: str, *, kind: str | None = None, group: str | None = None) -> list[str]:
        """Ids in order of creation, those that are not on disk (which may be full) included."""
        # Taken before the disk is asked: what leaves memory meanwhile is on disk by then.
        in_memory = sorted((*self._finished.values(), *self._live.values()), key=lambda run: run.created_at)
        stored = await asyncio.to_thread(self._store.ids, owner, kind=kind, group=group)
        known = set(stored)
        return stored + [
            run.id
            for run in in_memory
            if run.id not in known and run.owner == owner and kind in (None, run.kind) and group in (None, run.group)
        ]


def wanted_of(kind: str, asked: Asked, rules: Rules) -> Wanted:
    """What a run asks for, as far as its question tells. A tool conversation may take all its rounds, as often as it is repeated."""
    given = asked.parameters
    limit, images = given.get("max_tokens"), given.get("images")
    rounds = rules.rounds if kind.startswith("tools") and given.get("as") != "plain" else 1
    replies = int(given.get("rows") or 1) * int(given.get("times") or 1) * rounds
    return Wanted(
        asked.text,
        max_tokens=limit if isinstance(limit, int) else rules.max_tokens,
        replies=replies,
        images=len(images) if isinstance(images, list | tuple) else 0,
    )
