"""What a public page does by itself: stops what nobody waits for any more, and deletes what was left behind long ago."""

import asyncio
import logging
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta

from kimi_demo.batch_queue import Batches
from kimi_demo.dialect.failure import Failure
from kimi_demo.limits.presence import Presence
from kimi_demo.owners import is_viewer
from kimi_demo.runs.registry import Registry
from kimi_demo.settings import Settings
from kimi_demo.ui.leftovers import Leftovers

log = logging.getLogger(__name__)

LOOK_S = 5.0
TIDY_S = 3600.0


class Caretaker:
    """Belongs to the event loop's thread."""

    def __init__(
        self,
        settings: Settings,
        registry: Registry,
        batches: Batches,
        leftovers: Leftovers,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.presence = Presence()
        self._settings, self._registry, self._batches, self._leftovers, self._clock = settings, registry, batches, leftovers, clock
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._work(), name="caretaker")

    async def aclose(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    async def look(self) -> None:
        """Stops the runs and batches of viewers who have been away for longer than the grace time. A call of the API is not a visit:
        it ends with its connection."""
        now, grace = self._clock(), self._settings.public_grace_s
        for run in self._registry.all_active():
            if is_viewer(run.owner) and not run.kind.endswith("_api") and self.presence.away_s(run.owner, now) > grace:
                run.cancel()
        for entry in self._batches.going():
            if is_viewer(entry.owner) and self.presence.away_s(entry.owner, now) > grace:
                await self._batches.stop(entry.owner, entry.id)
        self.presence.forget(now - 10 * grace)

    async def _work(self) -> None:
        tidied = -TIDY_S
        while True:
            try:
                await self.look()
                if self._clock() - tidied >= TIDY_S:
                    tidied = self._clock()
                    await self._leftovers.tidy(datetime.now(UTC) - timedelta(days=self._settings.public_keep_days))
            except Failure as failure:
                log.warning("The caretaker could not do its round: %s", failure)
            except Exception:
                log.exception("The caretaker could not do its round")
            await asyncio.sleep(LOOK_S)
