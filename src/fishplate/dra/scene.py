"""A world prepared for many questions: slices by node and by pool, classes by name, what is in use, compiled selectors.

Making a Scene costs one pass over the slices and the claims; asking it about a node costs only that node's slices. A
Scene never changes: to ask what would be after an allocation, make one with `holding()`.
"""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING

from fishplate.dra.selectors import Selectors
from fishplate.dra.world import Holdings, count_holdings, read_quantity

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fishplate.dra.pools import PoolID
    from fishplate.dra.profile import Profile
    from fishplate.dra.world import Node, World
    from fishplate.k8s.claim import AllocationResult
    from fishplate.k8s.resource import ResourceSlice


_NAME = attrgetter("name")


def _position(origin: ResourceSlice) -> tuple[str, str, str]:
    return (origin.spec.driver, origin.spec.pool.name, origin.metadata.name)


def _agree(slices: list[ResourceSlice]) -> bool:
    """One node, one generation, one count, and no device twice."""
    first = slices[0].spec
    names = [device.name for origin in slices for device in origin.spec.devices]
    return len(set(names)) == len(names) and all(
        (origin.spec.node_name, origin.spec.pool) == (first.node_name, first.pool) for origin in slices
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
        self._shared: list[ResourceSlice] = []
        self._by_pool: dict[PoolID, list[ResourceSlice]] = {}
        self._index()

    def _index(self) -> None:
        if not self.profile.sorts:
            # There the order in which slices arrived is the order in which they are searched.
            self._shared = list(self.world.slices)
        for origin in self.world.slices:
            spec = origin.spec
            self._by_pool.setdefault((spec.driver, spec.pool.name), []).append(origin)
            if not self.profile.sorts:
                continue
            if not spec.node_name or (spec.shared_counters and self.profile.counters_reach_every_node):
                self._shared.append(origin)
            else:
                self._by_node.setdefault(spec.node_name, []).append(origin)

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
        for origin in slices:
            spec = origin.spec
            if spec.shared_counters or spec.per_device_node_selection is not None:
                return None
            same = self._by_pool[spec.driver, spec.pool.name]
            if len(same) != spec.pool.resource_slice_count or (len(same) > 1 and not _agree(same)):
                return None
            if len(set(map(_NAME, spec.devices))) != len(spec.devices):
                return None
        return sorted(slices, key=_position) if len(slices) > 1 else slices

    def narrow(self, node: Node) -> Scene:
        """The same scene with only one node in it. Exact where `local_slices` has an answer."""
        own = self.slices_for(node)
        smaller = object.__new__(Scene)
        smaller.__dict__.update(self.__dict__)
        identities = [(one.spec.driver, one.spec.pool.name, device.name) for one in own for device in one.spec.devices]
        old = self.holdings
        smaller.holdings = Holdings(
            {each: old.devices[each] for each in identities if each in old.devices},
            {each: old.shared[each] for each in identities if each in old.shared},
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
        later.holdings = Holdings(dict(old.devices), dict(old.shared), dict(old.capacity))
        for result in results:
            for device in result.devices.results:
                if device.admin_access:
                    continue
                identity = (device.driver, device.pool, device.device)
                if device.share_id is None or not self.profile.consumable:
                    later.holdings.devices[identity] = owner
                    continue
                later.holdings.shared[identity] = owner
                if device.consumed_capacity is not None:
                    held = dict(later.holdings.capacity.get(identity, {}))
                    for name, amount in device.consumed_capacity.items():
                        consumed = read_quantity(amount)
                        held[name] = held[name] + consumed if name in held else consumed
                    later.holdings.capacity[identity] = held
        return later
