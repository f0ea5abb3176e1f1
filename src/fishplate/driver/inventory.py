"""What is on this node now, for the kubelet side to look devices up in, and who is told when it changes."""

import asyncio
import time
from collections.abc import Callable
from typing import Literal

from fishplate.topology.inventory import Inventory, Nic

Scan = Callable[[], Inventory]
Cause = Literal["start", "event", "request", "clock", "claim"]


class NodeInventory:
    """The last scan. Scans run in a thread, one at a time; whoever asks while one runs waits for the next."""

    def __init__(
        self,
        scan: Scan,
        *,
        still_there: Callable[[Nic], bool] = lambda _: True,
        on_scan: Callable[[Cause, Inventory], None] = lambda *_: None,
    ) -> None:
        self._scan = scan
        self._still_there = still_there
        self._on_scan = on_scan
        self._lock = asyncio.Lock()
        self._now = Inventory()
        self._started = 0.0
        self.scans = 0
        self.last_scan_s = 0.0

    @property
    def now(self) -> Inventory:
        return self._now

    def nic(self, device: str) -> Nic | None:
        return next((nic for nic in self._now.nics if nic.id == device and not nic.excluded), None)

    def is_current(self, device: str) -> bool:
        """Whether the device is known and its nodes are still its own: a few small files, not a scan."""
        nic = self.nic(device)
        return nic is not None and self._still_there(nic)

    async def rescan(self, cause: Cause) -> Inventory:
        """A scan that starts after this call; everybody hears of it, whoever asked."""
        asked = time.monotonic()
        async with self._lock:
            if self._started >= asked:  # somebody's scan began while we waited for the lock: it saw what we want to see
                return self._now
            self._started = time.monotonic()
            self._now = await asyncio.to_thread(self._scan)
            self.scans += 1
            self.last_scan_s = time.monotonic() - self._started
            self._on_scan(cause, self._now)
            return self._now
