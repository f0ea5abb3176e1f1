"""The run-time cost: counted step by step as cel-go counts it, with its value stack.

Costs of calls depend on the sizes of their arguments, which the reference implementation finds by searching a stack of
recent values by node id. Ids repeat inside loops, and skipped arguments leave the call free of charge; to arrive at the
same number, this tracker keeps the same stack.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fishplate.cel.values import Value

COST_LIMIT = 1_000_000


class Cancelled(Exception):
    """Evaluation cannot go on, and nothing absorbs it: the cost limit, or what makes upstream panic.

    `cost` is what the step that was not taken would have cost.
    """

    def __init__(self, message: str, cost: int = 0) -> None:
        super().__init__(message)
        self.cost = cost


LIMIT_EXCEEDED = "operation cancelled: actual cost limit exceeded"


class Tracker:
    __slots__ = ("_ids", "_places", "_values", "cost", "limit")

    def __init__(self, limit: int = COST_LIMIT) -> None:
        self.cost = 0
        self.limit = limit
        self._ids: list[int] = []
        self._values: list[Value] = []
        # Where each id lies in the stack, so that a search is a look-up.
        self._places: dict[int, list[int]] = {}

    def push(self, node: int, value: Value, cost: int = 0) -> None:
        self.cost += cost
        self._places.setdefault(node, []).append(len(self._ids))
        self._ids.append(node)
        self._values.append(value)
        if self.cost > self.limit:
            raise Cancelled(LIMIT_EXCEEDED)

    def _cut(self, length: int) -> None:
        for node in reversed(self._ids[length:]):
            self._places[node].pop()
        del self._ids[length:]
        del self._values[length:]

    def drop(self, node: int) -> None:
        """Forget the latest value of a node and all above it."""
        places = self._places.get(node)
        if places:
            self._cut(places[-1])

    def take(self, nodes: tuple[int, ...]) -> list[Value] | None:
        """The latest values of the nodes, dropped with all above them; None if one is missing."""
        taken: list[Value] = []
        for node in reversed(nodes):
            places = self._places.get(node)
            if not places:
                return None
            taken.append(self._values[places[-1]])
            self._cut(places[-1])
        taken.reverse()
        return taken
