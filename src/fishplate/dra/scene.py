"""A world prepared for many questions: slices by node and by pool, classes by name, what is in use, compiled selectors.

Making a Scene costs one pass over the slices and the claims; asking it about a node costs only that node's slices. A
Scene never changes: to ask what would be after an allocation, make one with `holding()`.
"""

from __future__ import annotations

from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

from fishplate.dra.selectors import Selectors
from fishplate.dra.world import Holdings, count_holdings

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fishplate.dra.profile import Profile
    from fishplate.dra.world import Node, PoolID, World
    from fishplate.k8s.claim import AllocationResult
    from fishplate.k8s.resource import ResourceSlice


def _position(origin: ResourceSlice) -> tuple[str, str, str]:
    return (origin.spec.driver, origin.spec.pool.name, origin.metadata.name)


def _same_pool(left: ResourceSlice, right: ResourceSlice) -> bool:
    return left.spec.driver == right.spec.driver and left.spec.pool.name == right.spec.pool.name


def _is_whole(origin: ResourceSlice, slices: list[ResourceSlice]) -> bool:
    """Whether a node's own slices make up the pool: one generation, one count, and no device twice."""
    same = [other for other in slices if _same_pool(origin, other)]
    names = [device.name for other in same for device in other.spec.devices]
    return (
        len(same) == origin.spec.pool.resource_slice_count
        and len(set(names)) == len(names)
        and all(other.spec.pool == origin.spec.pool for other in same)
    )


class Scene:
    def __init__(self, world: World, profile: Profile, *, pool_order: tuple[PoolID, ...] = ()) -> None:
        self.world = world
        self.profile = profile
        self.pool_order = pool_order
        self.classes = {device_class.metadata.name: device_class for device_class in world.classes}
        self.holdings = count_holdings(world.claims, consumable=profile.consumable)
        self.selectors = Selectors(profile)
        self._by_node: dict[str, list[ResourceSlice]] = {}
        # Nodes with more to them than pools of one slice each, in the order of their drivers.
        self._irregular: set[str] = set()
        self._shared: list[ResourceSlice] = []
        self._index()

    def _index(self) -> None:
        if not self.profile.sorts:
            # There the order in which slices arrived is the order in which they are searched.
            self._shared = list(self.world.slices)
            return
        by_node, everywhere = self._by_node, self.profile.counters_reach_every_node
        for origin in self.world.slices:
            spec = origin.spec
            name = spec.node_name
            if not name or (spec.shared_counters and everywhere):
                self._shared.append(origin)
                continue
            known = by_node.get(name)
            if known is None:
                by_node[name] = [origin]
            elif len(known) == 1 and spec.driver < known[0].spec.driver:
                known.insert(0, origin)
            else:
                if not known[-1].spec.driver < spec.driver:
                    self._irregular.add(name)
                known.append(origin)
            if (
                spec.pool.resource_slice_count != 1
                or spec.shared_counters
                or spec.per_device_node_selection is not None
            ):
                self._irregular.add(name)

    @cached_property
    def _by_pool(self) -> dict[PoolID, list[ResourceSlice]]:
        """Needed only where a node's own slices do not make up a pool."""
        found: dict[PoolID, list[ResourceSlice]] = {}
        for origin in self.world.slices:
            found.setdefault((origin.spec.driver, origin.spec.pool.name), []).append(origin)
        return found

    @property
    def has_shared_slices(self) -> bool:
        """Whether slices exist that are not bound to one node by name."""
        return bool(self._shared)

    def slices_for(self, node: Node) -> list[ResourceSlice]:
        """All that may concern a node."""
        own = self._by_node.get(node.name)
        if own is None:
            return self._shared
        return own + self._shared if self._shared else own

    def local_slices(self, node: Node) -> list[ResourceSlice] | None:
        """The node's slices in the order they are searched, if its pools are whole and concern no other node."""
        if self._shared or not self.profile.sorts:
            return None
        slices = self._by_node.get(node.name, [])
        return self._order(slices) if node.name in self._irregular else slices

    def _order(self, slices: list[ResourceSlice]) -> list[ResourceSlice] | None:
        for origin in slices:
            spec = origin.spec
            if spec.shared_counters or spec.per_device_node_selection is not None:
                return None
            if spec.pool.resource_slice_count != 1 and not _is_whole(origin, slices):
                return None
        ordered = sorted(slices, key=_position)
        for first, second in pairwise(ordered):
            if first.spec.pool.resource_slice_count == 1 and _same_pool(first, second):
                return None
        return ordered

    def narrow(self, node: Node) -> Scene:
        """The same scene with only one node in it. Exact where `local_slices` has an answer."""
        own = self.slices_for(node)
        smaller = object.__new__(Scene)
        smaller.__dict__.update(self.__dict__)
        old = self.holdings
        pools = {(one.spec.driver, one.spec.pool.name) for one in own}
        identities = [(one.spec.driver, one.spec.pool.name, device.name) for one in own for device in one.spec.devices]
        smaller.holdings = Holdings(
            {pool: old.devices[pool] for pool in pools if pool in old.devices},
            {each for each in identities if each in old.shared},
            {each: old.capacity[each] for each in identities if each in old.capacity},
        )
        return smaller

    def slices_of(self, pool: PoolID) -> list[ResourceSlice]:
        return self._by_pool.get(pool, [])

    def holding(self, results: Iterable[AllocationResult], owner: str = "") -> Scene:
        """The same scene after these allocations; everything that is only read is shared."""
        later = object.__new__(Scene)
        later.__dict__.update(self.__dict__)
        old = self.holdings
        later.holdings = Holdings(
            {pool: dict(held) for pool, held in old.devices.items()},
            set(old.shared),
            {identity: dict(held) for identity, held in old.capacity.items()},
        )
        for result in results:
            for device in result.devices.results:
                later.holdings.add(device, owner, consumable=self.profile.consumable)
        return later
