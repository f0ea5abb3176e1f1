"""Pools as one node sees them: which slices count, whether a pool is complete and sound, in which order devices come.

The order is part of the contract: the first solution wins, so pool names, slice names and the order of devices in a
slice are the driver's way to say what it prefers. Where the followed version leaves the order of pools to chance, pools
come in the order of `Scene.pool_order`, so that a caller can try every order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fishplate.dra.consumption import read_rules
from fishplate.errors import AllocationError, InputError
from fishplate.k8s.selection import NodeSelector, selects_node

if TYPE_CHECKING:
    from fishplate.cel import Device as CelDevice
    from fishplate.dra.consumption import Rule
    from fishplate.dra.scene import Scene
    from fishplate.dra.world import DeviceID, Node, PoolID
    from fishplate.k8s.resource import CounterSet, Device, ResourceSlice


class Candidate:
    """A device that might be allocated, with what its slice and its pool add to it. `held`: some claim has it."""

    __slots__ = ("_rules", "device", "held", "id", "multiple", "pool", "seen", "slice")

    def __init__(self, device: Device, origin: ResourceSlice, pool: Pool, *, consumable: bool) -> None:
        self.device = device
        self.slice = origin
        self.pool = pool
        self.id: DeviceID = (origin.spec.driver, origin.spec.pool.name, device.name)
        self.multiple = consumable and bool(device.allow_multiple_allocations)
        self.held = False
        self.seen: CelDevice | None = None
        self._rules: dict[str, Rule] | None = None

    def __str__(self) -> str:
        return "/".join(self.id)

    @property
    def rules(self) -> dict[str, Rule]:
        if self._rules is None:
            self._rules = read_rules(self.device.capacity)
        return self._rules


class Pool:
    """`invalid` holds the reason; `slices` are those with devices for the node, `elsewhere` those for other nodes."""

    __slots__ = ("candidates", "counter_sets", "elsewhere", "id", "incomplete", "invalid", "slices")

    def __init__(self, identity: PoolID, *, incomplete: str = "", invalid: str = "") -> None:
        self.id = identity
        self.incomplete = incomplete
        self.invalid = invalid
        self.slices: list[ResourceSlice] = []
        self.elsewhere: list[ResourceSlice] = []
        self.counter_sets: dict[str, CounterSet] = {}
        self.candidates: list[Candidate] = []

    def __str__(self) -> str:
        return "/".join(self.id)


def gather_pools(scene: Scene, node: Node) -> list[Pool]:
    profile = scene.profile
    groups: dict[PoolID, list[ResourceSlice]] = {}
    late: list[ResourceSlice] = []
    for origin in scene.slices_for(node):
        if not is_relevant(scene, origin, node):
            continue
        counts_everywhere = origin.spec.shared_counters and profile.counters_reach_every_node
        if profile.binding_slices_last and not counts_everywhere and _has_binding_conditions(origin):
            late.append(origin)
        else:
            _add_slice(groups, origin)
    for origin in late:
        _add_slice(groups, origin)
    pools = [pool for identity, group in groups.items() if (pool := _judge(scene, identity, group)) is not None]
    for pool in pools:
        held = scene.holdings.devices.get(pool.id, {})
        pool.candidates = [
            Candidate(device, origin, pool, consumable=profile.consumable)
            for origin in pool.slices
            for device in origin.spec.devices
        ]
        if held:
            for candidate in pool.candidates:
                candidate.held = candidate.id[2] in held
    return _sort_pools(scene, pools)


def is_relevant(scene: Scene, origin: ResourceSlice, node: Node) -> bool:
    """Whether a slice counts for a node at all."""
    spec, profile = origin.spec, scene.profile
    if not profile.partitionable and spec.per_device_node_selection is not None:
        return False
    if spec.shared_counters and profile.skips_counter_slices:
        return False
    if profile.ignores_compatibility_groups and uses_compatibility_groups(origin):
        return False
    if spec.shared_counters and profile.counters_reach_every_node:
        return True
    try:
        if spec.node_name or spec.all_nodes or spec.node_selector is not None:
            return node_matches(node, spec.node_name, spec.all_nodes, spec.node_selector)
    except InputError as error:
        place = f"failed to perform node selection for slice {origin.metadata.name}"
        raise _unreadable(place, error) from error
    if not spec.per_device_node_selection:
        return False
    for device in spec.devices:
        try:
            if node_matches(node, device.node_name, device.all_nodes, device.node_selector):
                return True
        except InputError as error:
            place = f"failed to perform node selection for device {device.name} in slice {origin.metadata.name}"
            raise _unreadable(place, error) from error
    return False


def _unreadable(place: str, error: InputError) -> AllocationError:
    return AllocationError(f"gather pool information: {place}: failed to parse node selector: {error.what}")


def node_matches(node: Node, name: str | None, everywhere: bool | None, selector: NodeSelector | None) -> bool:
    if name:
        return node.name == name
    if everywhere:
        return True
    return selector is not None and selects_node(selector, node.name, node.labels)


def uses_compatibility_groups(origin: ResourceSlice) -> bool:
    return any(
        consumption.compatibility_groups for device in origin.spec.devices for consumption in device.consumes_counters
    )


def _has_binding_conditions(origin: ResourceSlice) -> bool:
    return any(device.binding_conditions is not None for device in origin.spec.devices)


def _add_slice(groups: dict[PoolID, list[ResourceSlice]], origin: ResourceSlice) -> None:
    """The newest generation wins."""
    pool = origin.spec.pool
    identity = (origin.spec.driver, pool.name)
    group = groups.get(identity)
    if group is None or pool.generation > group[0].spec.pool.generation:
        groups[identity] = [origin]
    elif pool.generation == group[0].spec.pool.generation:
        group.append(origin)


def _judge(scene: Scene, identity: PoolID, group: list[ResourceSlice]) -> Pool | None:
    """The pool these slices make; None if a newer generation elsewhere makes them obsolete."""
    expected = group[0].spec.pool.resource_slice_count
    if not scene.profile.looks_elsewhere:
        incomplete = "" if len(group) == expected else f"has {len(group)} of {expected} slices"
        pool = Pool(identity, incomplete=incomplete, invalid=_repeated_device(group))
        pool.slices = group
        return pool
    if len(group) == expected:
        return _build(scene, identity, group, [])
    everywhere = []
    for origin in scene.slices_of(identity):
        if origin.spec.pool.generation > group[0].spec.pool.generation:
            return None
        if origin.spec.pool.generation == group[0].spec.pool.generation:
            everywhere.append(origin)
    if scene.profile.ignores_compatibility_groups:
        everywhere = [origin for origin in everywhere if not uses_compatibility_groups(origin)]
    if len(everywhere) != expected:
        invalid = _repeated_device(group) if scene.profile.judges_incomplete else ""
        return Pool(identity, incomplete=f"has {len(everywhere)} of {expected} slices", invalid=invalid)
    return _build(scene, identity, group, everywhere)


def _build(scene: Scene, identity: PoolID, group: list[ResourceSlice], everywhere: list[ResourceSlice]) -> Pool:
    """A complete pool. Slices with counters bring no devices."""
    profile = scene.profile
    if profile.sorts:
        group = sorted(group, key=lambda origin: origin.metadata.name)
    pool = Pool(identity)
    counters = [origin for origin in group if profile.partitionable and origin.spec.shared_counters]
    pool.slices = [origin for origin in group if not (profile.partitionable and origin.spec.shared_counters)]
    if len(group) < len(everywhere):
        known = {origin.metadata.name for origin in group}
        others = [origin for origin in everywhere if origin.metadata.name not in known]
        if profile.counters_reach_every_node:
            pool.elsewhere = others
        else:
            counters += [origin for origin in others if profile.partitionable and origin.spec.shared_counters]
            pool.elsewhere = [
                origin for origin in others if not (profile.partitionable and origin.spec.shared_counters)
            ]
    invalid = _repeated_device(pool.slices)
    if not invalid and profile.partitionable:
        invalid = _collect_counters(pool, counters)
        # Up to 1.36 slices with counters are checked for devices, too.
        checked = group if profile.counters_reach_every_node else pool.slices
        invalid = invalid or _unknown_counter(pool, checked) or _unknown_counter(pool, pool.elsewhere)
    return Pool(identity, invalid=invalid) if invalid else pool


def _repeated_device(slices: list[ResourceSlice]) -> str:
    names: set[str] = set()
    for origin in slices:
        for device in origin.spec.devices:
            if device.name in names:
                return f"duplicate device name {device.name}"
            names.add(device.name)
    return ""


def _collect_counters(pool: Pool, slices: list[ResourceSlice]) -> str:
    for origin in slices:
        for counters in origin.spec.shared_counters:
            if counters.name in pool.counter_sets:
                return f"duplicate counter set name {counters.name}"
            pool.counter_sets[counters.name] = counters
    return ""


def _unknown_counter(pool: Pool, slices: list[ResourceSlice]) -> str:
    for origin in slices:
        for device in origin.spec.devices:
            for consumption in device.consumes_counters:
                known = pool.counter_sets.get(consumption.counter_set)
                if known is None:
                    return f"counter set {consumption.counter_set} not found"
                for name in consumption.counters:
                    if name not in known.counters:
                        return f"counter {name} not found in counter set {known.name}"
    return ""


def _sort_pools(scene: Scene, pools: list[Pool]) -> list[Pool]:
    profile = scene.profile
    if profile.sorts:
        pools = sorted(pools, key=lambda pool: pool.id)
    elif scene.pool_order:
        rank = {identity: index for index, identity in enumerate(scene.pool_order)}
        pools = sorted(pools, key=lambda pool: rank.get(pool.id, len(rank)))
    if profile.binding_pools_last:
        pools = sorted(pools, key=lambda pool: any(map(_has_binding_conditions, pool.slices)))
    return pools
