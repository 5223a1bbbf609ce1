"""How many tokens a day (UTC) may cost, for each visitor and for all together. Pure but for the time that is handed in."""

import json
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta


@dataclass(frozen=True)
class Hold:
    who: str
    tokens: int


class Purses:
    """each: tokens a day for one visitor; all: for all of them. What runs is held back beforehand, so that nothing is spent twice."""

    def __init__(self, each: int, all: int) -> None:
        self.each, self.all = each, all
        self._day = ""
        self._spent: Counter[str] = Counter()
        self._held: dict[str, Hold] = {}

    def left(self, who: str, now: datetime) -> int:
        """Tokens that this visitor may still spend today, what is held back left out."""
        return max(0, self.each - self._used(who, now))

    def left_of_all(self, now: datetime) -> int:
        self._turn(now)
        return max(0, self.all - self._spent.total() - sum(hold.tokens for hold in self._held.values()))

    def hold(self, id: str, who: str, tokens: int) -> None:
        """Holds tokens back for something that begins."""
        self._held[id] = Hold(who, tokens)

    def settle(self, id: str, tokens: int, now: datetime) -> None:
        """It has ended, and cost so many."""
        hold = self._held.pop(id, None)
        self._turn(now)
        if hold is not None and tokens:
            self._spent[hold.who] += tokens

    def dump(self) -> str:
        """What is to be there after a restart."""
        return json.dumps({"day": self._day, "spent": self._spent})

    def load(self, text: str) -> None:
        """What `dump` gave; anything else is nothing spent."""
        try:
            found = json.loads(text)
            spent = {str(name): int(tokens) for name, tokens in found["spent"].items()}
            self._day, self._spent = str(found["day"]), Counter(spent)
        except (ValueError, TypeError, KeyError, AttributeError):
            self._day, self._spent = "", Counter()

    def _used(self, who: str, now: datetime) -> int:
        self._turn(now)
        return self._spent[who] + sum(hold.tokens for hold in self._held.values() if hold.who == who)

    def _turn(self, now: datetime) -> None:
        """A new day begins with nothing spent."""
        day = now.astimezone(UTC).date().isoformat()
        if day != self._day:
            self._day, self._spent = day, Counter()


def until_tomorrow(now: datetime) -> timedelta:
    """How long today lasts, in UTC."""
    utc = now.astimezone(UTC)
    return (utc + timedelta(days=1)).replace(hour=0, minute=0, second=0, microsecond=0) - utc
