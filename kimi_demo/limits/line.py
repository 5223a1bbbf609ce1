"""A line in front of a few places, in which nobody who brings ten things holds up somebody who brings one. Pure."""

from collections import Counter
from dataclasses import dataclass


@dataclass(frozen=True)
class Ticket:
    id: str
    who: str


class Line:
    """most: places in all; most_each: of them for one visitor; most_waiting: tickets that may wait; most_waiting_each: of them one
    visitor's."""

    def __init__(self, most: int, most_each: int, most_waiting: int, most_waiting_each: int) -> None:
        self.most, self.most_each = most, most_each
        self.most_waiting, self.most_waiting_each = most_waiting, most_waiting_each
        self._going: dict[str, Ticket] = {}
        self._waiting: dict[str, Ticket] = {}  # in order of arrival
        self._served: dict[str, int] = {}  # who has something here → the turn in which they last got a place
        self._turns = 0

    def has_room(self, who: str) -> bool:
        """Whether one more of this visitor's would get a place, or may wait for one."""
        if not self._waiting and self._may_go(who):
            return True
        own = sum(ticket.who == who for ticket in self._waiting.values())
        return len(self._waiting) < self.most_waiting and own < self.most_waiting_each

    def join(self, id: str, who: str) -> None:
        """To be called after `has_room`; it takes a place, or waits."""
        self._waiting[id] = Ticket(id, who)
        self._admit()

    def leave(self, id: str) -> None:
        """Done, or not waiting any longer."""
        self._going.pop(id, None)
        self._waiting.pop(id, None)
        self._admit()
        here = {ticket.who for ticket in (*self._going.values(), *self._waiting.values())}
        self._served = {who: turn for who, turn in self._served.items() if who in here}

    def place(self, id: str) -> int:
        """0 for one that goes; else how many turns it is away, from 1."""
        order = [ticket.id for ticket in self._order()]
        return order.index(id) + 1 if id in order else 0

    @property
    def going(self) -> int:
        return len(self._going)

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    def _may_go(self, who: str) -> bool:
        own = sum(ticket.who == who for ticket in self._going.values())
        return len(self._going) < self.most and own < self.most_each

    def _order(self) -> list[Ticket]:
        """As they will get their turn: everybody's first, then everybody's second (what goes counts as had); of these first who has
        waited longest since their last."""
        had = Counter(ticket.who for ticket in self._going.values())
        ranked = []
        for arrival, ticket in enumerate(self._waiting.values()):
            ranked.append((had[ticket.who], self._served.get(ticket.who, 0), arrival, ticket))
            had[ticket.who] += 1
        return [ticket for *_, ticket in sorted(ranked, key=lambda each: each[:3])]

    def _admit(self) -> None:
        for ticket in self._order():
            if self._may_go(ticket.who):
                del self._waiting[ticket.id]
                self._going[ticket.id] = ticket
                self._turns += 1
                self._served[ticket.who] = self._turns
