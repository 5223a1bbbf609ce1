"""Which visitors are there: a page that is open asks for the badge every few seconds, hidden about every minute. Pure."""

from collections import Counter


class Presence:
    def __init__(self) -> None:
        self._here: Counter[str] = Counter()  # requests that are being answered, streams among them
        self._seen: dict[str, float] = {}

    def enter(self, owner: str, now: float) -> None:
        """A request of theirs begins."""
        self._here[owner] += 1
        self._seen[owner] = now

    def leave(self, owner: str, now: float) -> None:
        """That request has ended."""
        self._seen[owner] = now
        self._here[owner] -= 1
        if self._here[owner] <= 0:
            del self._here[owner]

    def open_of(self, owner: str) -> int:
        """Requests of theirs that are being answered now."""
        return self._here[owner]

    @property
    def open(self) -> int:
        """Those of everybody."""
        return self._here.total()

    def away_s(self, owner: str, now: float) -> float:
        """Seconds since they were last here; 0 while they are."""
        if owner in self._here:
            return 0.0
        return now - self._seen.setdefault(owner, now)  # never seen: their absence begins now

    def forget(self, before: float) -> None:
        """Those who were last seen before that."""
        for owner in [owner for owner, seen in self._seen.items() if seen < before and owner not in self._here]:
            del self._seen[owner]
