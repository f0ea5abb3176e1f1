"""Errors to come: selectors that fail on devices which the search has not reached.

The search stops at the first fit, so a selector that raises an error on some later device goes unnoticed until the day
the devices before it are busy; then the scheduler gives up on the pod. So every selector is run on all devices. Devices
of which the selectors read the same values answer the same, and are asked once; those that are odd (see `oddities`), or
of which a selector may read anything, are asked one by one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from fishplate.dra.oddities import find_oddities

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Sequence

    from fishplate.cel import Program
    from fishplate.dra.scene import Scene
    from fishplate.dra.world import PoolID
    from fishplate.k8s.claim import DeviceSelector, ResourceClaim
    from fishplate.k8s.resource import Device


class Foreseen(NamedTuple):
    """A selector that would raise an error on devices the search may not have reached yet."""

    owner: str
    expression: str
    message: str
    devices: int
    example: str


def foresee(scene: Scene, claims: Sequence[ResourceClaim]) -> Iterable[Foreseen]:
    """Every request of every claim, on all devices there are."""
    odd = (scene.world.odd if scene.world.odd is not None else find_oddities(scene.world.slices)).pools
    for claim in claims:
        for request in claim.spec.devices.requests:
            for one in [request.exactly] if request.exactly else request.first_available:
                if one.device_class_name in scene.classes:
                    written = (*scene.classes[one.device_class_name].spec.selectors, *one.selectors)
                    yield from _find_failures(scene, f"claim {claim}", written, odd)


_Failure = tuple[str, str]
"""The expression and what it said."""


def _find_failures(
    scene: Scene, owner: str, selectors: Sequence[DeviceSelector], odd: frozenset[PoolID]
) -> Iterable[Foreseen]:
    programs = _compile(scene, selectors)
    names = _Names(programs)
    known: dict[Hashable, _Failure | None] = {}
    failures: dict[_Failure, list[str]] = {}
    for origin in scene.world.slices:
        driver, pool = origin.spec.driver, origin.spec.pool.name
        for device in origin.spec.devices:
            identity = (driver, pool, device.name)
            key = names.values(driver, device) if (driver, pool) not in odd else identity
            key = identity if key is None else key
            if key not in known:
                known[key] = _fail(scene, programs, driver, device)
            failure = known[key]
            if failure is not None:
                failures.setdefault(failure, []).append("/".join(identity))
    for (expression, message), devices in failures.items():
        yield Foreseen(owner, expression, message, len(devices), devices[0])


def _compile(scene: Scene, selectors: Sequence[DeviceSelector]) -> list[Program]:
    """Those that are reached: one that does not compile ends the attempt by itself, before those behind it."""
    programs = []
    for selector in selectors:
        program = scene.selectors.compile(selector.cel.expression) if selector.cel else ""
        if isinstance(program, str):
            break
        programs.append(program)
    return programs


def _fail(scene: Scene, programs: Sequence[Program], driver: str, device: Device) -> _Failure | None:
    """In order, ending at the first that says no, as the scheduler does."""
    seen = scene.selectors.view(device, driver)
    for program in programs:
        outcome = program.matches_fast(seen)
        if outcome is None:
            said = program.run(seen)
            if said.error:
                return program.source, said.error
            outcome = said.value is True
        if not outcome:
            return None
    return None


class _Names:
    """What selectors read of a device, under every name that it may have there."""

    def __init__(self, programs: Sequence[Program]) -> None:
        self._everything = any(program.reads.everything for program in programs)
        self._items = sorted({item for program in programs for item in program.reads.items})
        self._by_driver: dict[str, list[tuple[str, str]]] = {}

    def values(self, driver: str, device: Device) -> Hashable | None:
        """Devices with equal values answer alike; None where that cannot be said."""
        if self._everything:
            return None
        names = self._by_driver.get(driver)
        if names is None:
            names = self._by_driver[driver] = list(self._spell(driver))
        attributes, capacity = device.attributes, device.capacity
        read = [attributes.get(name) if kind == "attribute" else repr(capacity.get(name)) for kind, name in names]
        return (driver, device.allow_multiple_allocations, *read)

    def _spell(self, driver: str) -> Iterable[tuple[str, str]]:
        for kind, domain, name in self._items:
            if kind in ("attribute", "capacity"):
                yield kind, f"{domain}/{name}"
                if domain == driver:
                    yield kind, name
