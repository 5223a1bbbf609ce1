"""How often a wrong password may be given: by all strangers together, for through a tunnel they have one address. Pure."""

FREE = 5
"""Wrong ones before anybody has to wait."""
LONGEST_S = 60.0
FORGOTTEN_S = 900.0


class Attempts:
    def __init__(self) -> None:
        self._wrong = 0
        self._last = float("-inf")

    def wait_s(self, now: float) -> float:
        """Seconds until the next attempt is looked at; 0 for now."""
        if now - self._last > FORGOTTEN_S:
            self._wrong = 0
        if self._wrong < FREE:
            return 0.0
        return max(0.0, self._last + min(2.0 ** (self._wrong - FREE), LONGEST_S) - now)

    def begin(self, now: float) -> None:
        """An attempt is looked at: it counts as wrong until it proves right, so that many at once are not free."""
        self._wrong += 1
        self._last = now

    def right(self) -> None:
        """It was right; it does not make those of others forgotten."""
        self._wrong = max(0, self._wrong - 1)
