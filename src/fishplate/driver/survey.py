"""When to look at the host again: on the kernel's word, on request, and slowly by the clock.

A burst of events is one look. Two looks are never closer than the minimal interval, but for the first few (`burst`), so
a flapping link costs a bounded share of a core.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterable, Callable

from fishplate.driver.inventory import Cause, NodeInventory

_log = logging.getLogger("fishplate.survey")


class Allowance:
    """A token bucket: `burst` looks at once, then one per `interval`."""

    def __init__(self, interval: float, burst: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._interval = interval
        self._burst = burst
        self._clock = clock
        self._tokens = float(burst)
        self._at = clock()

    def wait_s(self) -> float:
        """Take one; how long to wait before using it."""
        now = self._clock()
        if self._interval > 0:
            self._tokens = min(self._burst, self._tokens + (now - self._at) / self._interval)
        else:
            self._tokens = self._burst
        self._at = now
        self._tokens -= 1
        return max(0.0, -self._tokens * self._interval)


class Survey:
    def __init__(
        self,
        inventory: NodeInventory,
        *,
        allowance: Allowance,
        interval: float,
    ) -> None:
        self._inventory = inventory
        self._allowance = allowance
        self._interval = interval
        self._wake = asyncio.Event()
        self._cause: Cause = "start"

    def request(self, cause: Cause = "request") -> None:
        self._cause = cause
        self._wake.set()

    async def listen(self, ticks: AsyncIterable[object]) -> None:
        async for _ in ticks:
            self.request("event")

    async def run(self) -> None:
        self._wake.set()
        while True:
            cause: Cause = "clock"
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._interval):
                    await self._wake.wait()
                    cause = self._cause
            await asyncio.sleep(self._allowance.wait_s())
            self._wake.clear()  # whatever happened up to here is seen by the scan that starts now
            try:
                await self._inventory.rescan(cause)
            except Exception:
                # A scan reports what it cannot read; anything else is a fault of ours, and the old inventory stands.
                _log.exception("the host could not be scanned")
