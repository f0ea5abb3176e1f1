"""Asks a provider again and again, and remembers.

Nobody waits for it: the driver starts after a short grace whether there was an answer or not, and publishes again when
one comes. An endpoint that fails does not take back what it said before: attributes that come and go with a metadata
service would rewrite the slice of every node at once, and make claims fail that select on them.
"""

import asyncio
import contextlib
import logging
import random
import time
from collections.abc import Callable, Iterable

import msgspec

from fishplate.errors import OutsideError
from fishplate.node.metadata.facts import DeviceId, FactsState, NodeFacts, Provider

_LOG = logging.getLogger(__name__)
_LONGEST_BACK_OFF = 120.0


class Refresher:
    """`on_change` is called, in the event loop, whenever the facts differ from before."""

    def __init__(
        self,
        provider: Provider,
        *,
        on_change: Callable[[], None] = lambda: None,
        first_back_off: float = 1.0,
        clock: Callable[[], float] = time.monotonic,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._provider = provider
        self._on_change = on_change
        self._first_back_off = first_back_off
        self._clock = clock
        self._jitter = jitter
        self._facts = NodeFacts()
        self._good_at: float | None = None
        self._error = ""
        self._attempts = 0
        self._failures = 0
        self._devices: tuple[DeviceId, ...] = ()
        self._settled = asyncio.Event()
        self._wake = asyncio.Event()

    @property
    def facts(self) -> NodeFacts:
        """What is known now; never waits."""
        state = FactsState(
            provider=self._provider.name,
            answered=self._good_at is not None,
            age_seconds=None if self._good_at is None else self._clock() - self._good_at,
            last_error=self._error,
            attempts=self._attempts,
            failures=self._failures,
            ignored=self._facts.state.ignored,
        )
        return msgspec.structs.replace(self._facts, state=state)

    def ask_about(self, devices: Iterable[DeviceId]) -> None:
        """Tell which devices there are; a provider that knows them one by one is asked soon, in the background."""
        given = tuple(devices)
        if given != self._devices:
            self._devices = given
            if self._provider.per_device:
                self._wake.set()

    async def settled(self, grace: float = 2.0) -> NodeFacts:
        """The facts after the first attempt, or after `grace` seconds if that takes longer. Needs `run` to run."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(grace):
                await self._settled.wait()
        return self.facts

    async def run(self) -> None:
        """For ever; cancel it to end it."""
        failed_in_a_row = 0
        while True:
            self._wake.clear()
            failed_in_a_row = 0 if await self._attempt() else failed_in_a_row + 1
            self._settled.set()
            await self._rest(self.plan_rest(failed_in_a_row))

    def plan_rest(self, failed_in_a_row: int) -> float:
        """Seconds until the next attempt. All nodes of a pool start at once; the jitter keeps them apart."""
        if failed_in_a_row == 0:
            return self._provider.interval * (0.9 + 0.2 * self._jitter())
        longest = min(_LONGEST_BACK_OFF, self._first_back_off * float(1 << min(failed_in_a_row - 1, 20)))
        return longest * (0.5 + 0.5 * self._jitter())

    async def _rest(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._wake.wait()

    async def _attempt(self) -> bool:
        self._attempts += 1
        try:
            facts = await self._provider.attributes(self._devices)
        except OutsideError as error:
            self._fail(str(error))
            return False
        except Exception as error:
            # A fault in a provider must not end the driver: devices can be handed out without these facts.
            self._fail(f"{type(error).__name__}: {error}")
            return False
        if self._error:
            _LOG.info("metadata of %s is back", self._provider.name)
        for reason in facts.state.ignored:
            if reason not in self._facts.state.ignored:
                _LOG.warning("metadata of %s ignored: %s", self._provider.name, reason)
        self._good_at, self._error = self._clock(), ""
        changed = not facts.says_the_same_as(self._facts)
        self._facts = facts
        if changed:
            self._on_change()
        return True

    def _fail(self, error: str) -> None:
        self._failures += 1
        if error != self._error:
            _LOG.warning("metadata of %s: %s", self._provider.name, error)
        self._error = error
