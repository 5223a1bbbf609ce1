"""Which group of runs a visitor is looking at, per kind: the tool questions, the batch. (A chat tab knows its conversation itself.)"""

import uuid

from kimi_demo.runs.registry import Registry
from kimi_demo.runs.run import Run


class Desk:
    """The current group is the one of the visitor's latest run, until they begin a new one; so it survives refresh and restart."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._begun: dict[tuple[str, str], str] = {}
        self._chosen: dict[str, dict[str, str]] = {}  # owner → question → version

    async def group(self, owner: str, kind: str) -> str:
        """The id of the group to show and to add to."""
        begun = self._begun.get((owner, kind))
        if begun is not None:
            return begun
        latest = await self._registry.latest(owner, kind)
        return latest.group if latest is not None and latest.group is not None else self.begin(owner, kind)

    def begin(self, owner: str, kind: str) -> str:
        """A new, empty group becomes the current one."""
        group = uuid.uuid4().hex
        self._begun[owner, kind] = group
        return group

    async def runs(self, owner: str, kind: str) -> list[Run]:
        """The runs of the current group, oldest first."""
        return await self._registry.group(await self.group(owner, kind), owner)

    def choose(self, owner: str, question: str, run_id: str) -> None:
        """Of the question's versions this one is shown, until another is chosen or the app ends."""
        self._chosen.setdefault(owner, {})[question] = run_id

    def chosen(self, owner: str) -> set[str]:
        """The ids of the versions that were chosen."""
        return set(self._chosen.get(owner, {}).values())

    async def active(self, owner: str, kind: str) -> Run | None:
        """The run of the current group that is going on."""
        group = await self.group(owner, kind)
        return next((run for run in self._registry.active(owner, kind) if run.group == group), None)
