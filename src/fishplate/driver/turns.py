"""One at a time per key: calls for the same claim wait for each other, calls for different claims do not."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator


class Turns:
    def __init__(self) -> None:
        self._locks: dict[str, asyncio.Lock] = {}
        self._interest: Counter[str] = Counter()

    @contextlib.asynccontextmanager
    async def of(self, key: str) -> AsyncIterator[None]:
        lock = self._locks.setdefault(key, asyncio.Lock())
        self._interest[key] += 1
        try:
            async with lock:
                yield
        finally:
            self._interest[key] -= 1
            if not self._interest[key]:  # nobody waits: the key leaves nothing behind
                del self._interest[key], self._locks[key]

    def busy(self, key: str) -> bool:
        return key in self._locks

    def __len__(self) -> int:
        return len(self._locks)
