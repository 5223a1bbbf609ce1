"""`Gate`: every run of a viewer passes it. It refuses in a sentence what is too much, and lets the rest in turn by turn."""

import asyncio
import logging
import os
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

from kimi_demo.dialect.events import Phase
from kimi_demo.dialect.failure import Failure
from kimi_demo.limits.line import Line
from kimi_demo.limits.pace import Pace
from kimi_demo.limits.purse import Purses, until_tomorrow
from kimi_demo.limits.rules import Rules, Wanted
from kimi_demo.owners import purse_of
from kimi_demo.settings import Settings

log = logging.getLogger(__name__)

FILE = "limits.json"
_EVERYBODY = "*"


class Gate:
    """Belongs to the event loop's thread.

    clock: seconds that only go on; now: the time of day, with its zone; both for tests to hand in their own.
    """

    def __init__(
        self,
        settings: Settings,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self.settings = settings
        self.rules = Rules(
            max_tokens=settings.public_max_tokens,
            prompt_chars=settings.public_prompt_chars,
            images=settings.public_images,
            rows=settings.public_rows,
            rounds=settings.public_rounds,
            repeats=settings.public_repeats,
        )
        self.line = Line(settings.public_runs, settings.public_runs_each, settings.public_line, settings.public_line_each)
        self.purses = Purses(settings.public_tokens_per_day, settings.public_tokens_per_day_all)
        self._pace = Pace(settings.public_requests_per_minute)
        self._pace_of_all = Pace(settings.public_requests_per_minute_all)
        self._clock, self._now = clock, now
        self._moved = asyncio.Event()
        self._file = settings.data / FILE
        if self._file.is_file():
            self.purses.load(self._file.read_text(encoding="utf-8", errors="replace"))

    def admit(self, id: str, owner: str, wanted: Wanted) -> None:
        """Lets something of this viewer's begin: it is in the line from now on, and its tokens are held back.

        To be followed by `turn`, or by `give_up`. Raises Failure: the `limits.` family.
        """
        who, clock = purse_of(owner), self._clock()
        self.rules.check(wanted)
        for pace, name, code in ((self._pace, who, "limits.pace"), (self._pace_of_all, _EVERYBODY, "limits.pace_of_all")):
            if wait := pace.wait_s(name, clock):
                raise Failure(code, limit=pace.most, seconds=max(1, round(wait)))
        now = self._now()
        left, left_of_all = self.purses.left(who, now), self.purses.left_of_all(now)
        if wanted.tokens > left:
            numbers = {"wanted": f"{wanted.tokens:,}", "left": f"{left:,}", "limit": f"{self.purses.each:,}"}
            raise Failure("limits.tokens", **numbers, **self._midnight(now))
        if wanted.tokens > left_of_all:
            raise Failure("limits.tokens_of_all", limit=f"{self.purses.all:,}", **self._midnight(now))
        if not self.line.has_room(who):
            raise Failure("limits.line_full", waiting=self.line.waiting)
        self._pace.note(who, clock)
        self._pace_of_all.note(_EVERYBODY, clock)
        self.purses.hold(id, who, wanted.tokens)
        self.line.join(id, who)

    @asynccontextmanager
    async def turn(self, id: str, tell: Callable[[Phase], None], spent: Callable[[], int]) -> AsyncIterator[None]:
        """Waits until it is this one's turn, saying its place in the line whenever that changes; then it may take run_s seconds.

        spent: what it has cost, asked at its end. Raises Failure("limits.too_long").
        """
        limit = self.settings.public_run_s
        try:
            told = 0
            while place := self.line.place(id):
                if place != told:
                    told = place
                    tell(Phase("in_line", params={"place": str(place)}))
                await self._moved.wait()
            try:
                async with asyncio.timeout(limit) as clock:
                    yield
            except TimeoutError:
                if not clock.expired():  # another's
                    raise
                raise Failure("limits.too_long", seconds=f"{limit:g}") from None
        finally:
            self.give_up(id, spent())

    def give_up(self, id: str, tokens: int = 0) -> None:
        """It has ended, or never began. Once more: nothing."""
        self.line.leave(id)
        self.purses.settle(id, tokens, self._now())
        moved, self._moved = self._moved, asyncio.Event()
        moved.set()
        if tokens:
            self._save()

    def left(self, owner: str) -> int:
        """Tokens that a viewer may still spend today."""
        now = self._now()
        return min(self.purses.left(purse_of(owner), now), self.purses.left_of_all(now))

    def _midnight(self, now: datetime) -> dict[str, str]:
        left: timedelta = until_tomorrow(now)
        hours, minutes = divmod(max(60, int(left.total_seconds())) // 60, 60)
        return {"hours": str(hours), "minutes": str(minutes)}

    def _save(self) -> None:
        part: Path = self._file.with_suffix(".part")
        try:
            part.write_text(self.purses.dump(), encoding="utf-8")
            os.replace(part, self._file)
        except OSError as error:  # counted on in memory
            log.warning("What visitors have spent today cannot be written: %s", error)
