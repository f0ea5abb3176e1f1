"""Shared counters of partitionable devices: what a pool offers, what is taken, what this attempt takes.

A device fits if, with it, nothing exceeds what is available: not only the counters it consumes. A counter that is
overdrawn already therefore blocks every device of its pool that consumes any counter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from fishplate.dra.world import read_quantity
from fishplate.k8s.quantity import Quantity

if TYPE_CHECKING:
    from fishplate.dra.pools import Candidate
    from fishplate.dra.scene import Scene
    from fishplate.k8s.resource import CounterSet, Device, ResourceSlice

Key: TypeAlias = tuple[str, str]
"""Counter set, counter."""
Amounts: TypeAlias = dict[Key, int]
"""In billionths, as Quantity.nanos."""


class Overdraft(NamedTuple):
    counter_set: str
    counter: str
    needed: Quantity
    available: Quantity


class Counters:
    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._available: dict[object, Amounts] = {}
        self._consumed: dict[object, Amounts] = {}

    def reserve(self, candidate: Candidate) -> bool:
        """Take the counters of a device, or change nothing and say no."""
        if self.find_overdraft(candidate) is not None:
            return False
        consumed = self._consumed.setdefault(self._scope(candidate), {})
        for key, amount in _consumption(candidate.device):
            consumed[key] = consumed.get(key, 0) + amount
        return True

    def release(self, candidate: Candidate) -> None:
        consumed = self._consumed[self._scope(candidate)]
        for key, amount in _consumption(candidate.device):
            consumed[key] -= amount

    def find_overdraft(self, candidate: Candidate) -> Overdraft | None:
        scope = self._scope(candidate)
        available = self._available.get(scope)
        if available is None:
            available = self._available[scope] = self._count(candidate)
        needed = dict(self._consumed.get(scope, {}))
        for key, amount in _consumption(candidate.device):
            needed[key] = needed.get(key, 0) + amount
        for key, left in available.items():
            if left < needed.get(key, 0):
                return Overdraft(*key, Quantity(needed.get(key, 0), -9), Quantity(left, -9))
        return None

    def _scope(self, candidate: Candidate) -> object:
        """Whose counters a device draws on: its slice's (1.34), those of any pool of that name (1.35), its pool's."""
        match self._scene.profile.minor:
            case "1.34":
                return candidate.slice.metadata.name
            case "1.35":
                return candidate.id[1]
        return candidate.pool.id

    def _count(self, candidate: Candidate) -> Amounts:
        sets: list[CounterSet]
        slices: list[ResourceSlice]
        if self._scene.profile.minor == "1.34":
            sets, slices = list(candidate.slice.spec.shared_counters), [candidate.slice]
        else:
            sets = list(candidate.pool.counter_sets.values())
            slices = candidate.pool.slices + candidate.pool.elsewhere
        available = {
            (each.name, name): read_quantity(counter.value).nanos
            for each in sets
            for name, counter in each.counters.items()
        }
        for origin in slices:
            for device in origin.spec.devices:
                if device.consumes_counters and self._is_allocated(origin, device):
                    for key, amount in _consumption(device):
                        if key in available:
                            available[key] -= amount
        return available

    def _is_allocated(self, origin: ResourceSlice, device: Device) -> bool:
        identity = (origin.spec.driver, origin.spec.pool.name, device.name)
        holdings = self._scene.holdings
        if holdings.owner(identity) is not None:
            return True
        shared = identity in holdings.shared or identity in holdings.capacity
        return shared and self._scene.profile.shares_hold_counters


def _consumption(device: Device) -> list[tuple[Key, int]]:
    return [
        ((consumption.counter_set, name), read_quantity(counter.value).nanos)
        for consumption in device.consumes_counters
        for name, counter in consumption.counters.items()
    ]
