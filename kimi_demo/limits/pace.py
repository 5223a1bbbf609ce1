"""How often something may be done within a minute. Pure but for the time that is handed in (seconds on any clock that only goes on)."""

from collections import deque

WINDOW_S = 60.0


class Pace:
    """most: within any WINDOW_S seconds, each name on its own."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._times: dict[str, deque[float]] = {}

    def wait_s(self, name: str, now: float) -> float:
        """Seconds until it may be done again; 0 when it may be now."""
        times = self._fresh(name, now)
        return 0.0 if len(times) < self.most else times[-self.most] + WINDOW_S - now

    def note(self, name: str, now: float) -> None:
        """It is done."""
        self._fresh(name, now).append(now)
        if len(self._times) > 1000:  # names come and go: those that have been quiet are forgotten
            for known in [known for known, times in self._times.items() if times[-1] <= now - WINDOW_S]:
                del self._times[known]

    def _fresh(self, name: str, now: float) -> deque[float]:
        times = self._times.setdefault(name, deque())
        while times and times[0] <= now - WINDOW_S:
            times.popleft()
        return times
