"""A limit for searches. The search is complete, so its worst case is exponential; a caller must be able to stop it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from fishplate.errors import BudgetError

if TYPE_CHECKING:
    from collections.abc import Callable

# Looking at the clock costs as much as a step of the search.
_STEPS_BETWEEN_LOOKS = 64


class Budget:
    """Steps, seconds, or both; spent by one or more searches. Without limits it only counts."""

    def __init__(
        self,
        *,
        steps: int | None = None,
        seconds: float | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.spent = 0
        self._steps = steps
        self._seconds = seconds
        self._clock = clock
        self._end = None if seconds is None else clock() + seconds

    def spend(self) -> None:
        """One step; BudgetError when nothing is left."""
        self.spent += 1
        if self._steps is not None and self.spent > self._steps:
            raise BudgetError(f"stopped after {self._steps} steps: whether the claims fit is not known")
        if self._end is not None and self.spent % _STEPS_BETWEEN_LOOKS == 1 and self._clock() >= self._end:
            raise BudgetError(f"stopped after {self._seconds} s: whether the claims fit is not known")
