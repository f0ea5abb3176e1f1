"""How long to wait before the next try: doubling up to a cap, at random, so that many nodes do not knock at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class Backoff:
    def __init__(self, draw: Callable[[], float], *, first: float, cap: float) -> None:
        """`draw` gives numbers from 0 to 1. The first try after `reset` waits at most `first` seconds."""
        self._draw = draw
        self._first = first
        self._cap = cap
        self._limit = first

    def reset(self) -> None:
        self._limit = self._first

    def next(self) -> float:
        """Never gives up, and never waits less than half of the limit, so that a failing peer is not hammered."""
        limit = self._limit
        self._limit = min(limit * 2, self._cap)
        return limit * (0.5 + self._draw() / 2)
