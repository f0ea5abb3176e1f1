"""Many nodes of some sizes, as the scheduler would see them: nodes, ResourceSlices, DeviceClasses.

One host of each size is written and scanned; the others are derived from what it publishes by replacing the values that
differ from node to node in reality: GUIDs, LIDs, MAC addresses, GPU UUIDs, placement groups, names. A test holds a
derived node against one that was scanned. Attributes that do not differ are shared between all nodes, so ten thousand
nodes take a second and little memory. The same arguments give the same fleet.
"""

from collections.abc import Callable, Sequence

import msgspec

from fishplate.dra.intent_classes import device_classes
from fishplate.dra.world import Node, World
from fishplate.errors import UsageError
from fishplate.hardware.catalog import Catalog, Size
from fishplate.k8s.claim import DeviceClass, ResourceClaim
from fishplate.k8s.resource import Device, DeviceAttribute, ObjectMeta, ResourceSlice
from fishplate.sim.gpu_drivers import check_profile, default_profile, driver_name, load_profile, publish_gpu_slice
from fishplate.sim.host import host_name, synthesise
from fishplate.sim.nics import port_guid, port_lid, port_mac
from fishplate.sim.places import stable_uuid
from fishplate.sim.variations import TEXTBOOK, Variations
from fishplate.topology.inventory import Inventory
from fishplate.topology.slices import publish_slices

HOSTNAME_LABEL = "kubernetes.io/hostname"
SIZE_LABEL = "node.kubernetes.io/instance-type"
PLACEMENT_GROUP = "azure.dra.net/placementGroupId"
VM_SIZE = "azure.dra.net/vmSize"
# A rack of Grace boards holds 18 VMs; other sizes share a scale set of one placement group, which takes up to 100
# (Azure: ND GB300 v6 series page; virtual machine scale sets, "large scale sets").
_RACK, _PLACEMENT_GROUP_VMS = 18, 100
_MOST_NODES = 100_000
__all__ = ["Fleet", "device_classes", "make_fleet", "parse_fleet", "placement_group"]
_UUID = ("uuid", "gpu.nvidia.com/uuid")


class Fleet(msgspec.Struct, frozen=True, kw_only=True):
    nodes: tuple[Node, ...]
    slices: tuple[ResourceSlice, ...]
    classes: tuple[DeviceClass, ...]

    def world(self, claims: tuple[ResourceClaim, ...] = ()) -> World:
        return World(slices=self.slices, classes=self.classes, claims=claims)


def parse_fleet(text: str) -> tuple[tuple[str, int], ...]:
    """`SIZE=N,SIZE=N`; a size alone means one node of it."""
    parts = []
    for part in text.split(","):
        name, equals, count = part.strip().partition("=")
        if not name or (equals and not (count.isascii() and count.isdigit())):
            raise UsageError(f"{part!r} is no part of a fleet", remedy="write SIZE=N, several separated by commas")
        parts.append((name, int(count) if equals else 1))
    total = sum(count for _, count in parts)
    if not 0 < total <= _MOST_NODES:
        raise UsageError(f"a fleet of {total} nodes", remedy=f"ask for 1 to {_MOST_NODES}")
    return tuple(parts)


def make_fleet(
    parts: Sequence[tuple[str, int]],
    catalog: Catalog,
    *,
    gpu_drivers: Sequence[str] = (),
    seed: int = 0,
    publish_uuid: bool = False,
    fabric_label: str = "",
    variations: Variations = TEXTBOOK,
) -> Fleet:
    """N nodes of each size. `gpu_drivers` names a profile for each vendor that shall not have its newest; nodes get
    their placement group as `fabric_label`, where that is given."""
    nodes: list[Node] = []
    slices: list[ResourceSlice] = []
    made: dict[str, int] = {}
    _check_profiles([catalog.find(name) for name, _ in parts], gpu_drivers)
    for name, count in parts:
        size = catalog.find(name)
        pattern = _Pattern(size, catalog, _choose_profile(size, gpu_drivers), publish_uuid, variations)
        first = made.get(size.name, 0)
        for index in range(first, first + count):
            node, published = pattern.derive(index, len(nodes) + seed * _MOST_NODES, seed, fabric_label)
            nodes.append(node)
            slices += published
        made[size.name] = first + count
    return Fleet(nodes=tuple(nodes), slices=tuple(slices), classes=device_classes())


def placement_group(size: Size, index: int, seed: int = 0) -> str:
    """The id that node `index` of this size has; blocks of nodes share one."""
    block = _RACK if size.gpu is not None and size.gpu.c2c else _PLACEMENT_GROUP_VMS
    return str(stable_uuid("placement-group", size.name, index // block, seed))


def _check_profiles(sizes: Sequence[Size], wanted: Sequence[str]) -> None:
    """Every profile is for some size of the fleet."""
    for name in wanted:
        if not any(size.gpu is not None and load_profile(name).driver == driver_name(size.gpu) for size in sizes):
            check_profile(name, sizes[0])


def _choose_profile(size: Size, wanted: Sequence[str]) -> str:
    if size.gpu is None:
        return ""
    own = [name for name in wanted if load_profile(name).driver == driver_name(size.gpu)]
    return own[-1] if own else default_profile(size)


class _Pattern:
    """What one host of a size publishes, and the places in it where hosts differ."""

    def __init__(self, size: Size, catalog: Catalog, profile: str, publish_uuid: bool, variations: Variations) -> None:
        self._size = size
        self._azure = size.provider == "azure"
        inventory = synthesise(size, catalog, variations=variations)
        self._addresses = {gpu.uuid: gpu.pci.address for gpu in inventory.gpus if gpu.uuid}
        self._slices = self._publish(inventory, profile, publish_uuid)

    def _publish(self, inventory: Inventory, profile: str, publish_uuid: bool) -> list[tuple[ResourceSlice, "_Maker"]]:
        placeholders = {PLACEMENT_GROUP: "-", VM_SIZE: self._size.name} if self._azure else {}
        slices = list(publish_slices(inventory, node="-", node_attributes=placeholders, publish_uuid=publish_uuid))
        if profile:
            slices.append(publish_gpu_slice(inventory, profile, node="-", spec=self._size.gpu))
        return [(one, self._find_changes(one)) for one in slices]

    def _find_changes(self, published: ResourceSlice) -> "_Maker":
        varying = [(device, list(self._varying(device))) for device in published.spec.devices]

        def make(host: int, group: DeviceAttribute) -> tuple[Device, ...]:
            devices = []
            for device, changes in varying:
                attributes = device.attributes.copy()
                for key, change in changes:
                    attributes[key] = group if change is None else change(host)
                devices.append(Device(name=device.name, attributes=attributes, capacity=device.capacity))
            return tuple(devices)

        return make

    def _varying(self, device: Device) -> "list[tuple[str, _Change | None]]":
        rails = {port_guid(0, rail): rail for rail in range(len(self._size.layout.nics if self._size.layout else ()))}
        rail = rails.get(str(_value(device, "dra.net/portGuid") or _value(device, "dra.net/nodeGuid")), 0)
        known: dict[str, _Change | None] = {
            "dra.net/nodeGuid": lambda host: DeviceAttribute(string=port_guid(host, rail)),
            "dra.net/portGuid": lambda host: DeviceAttribute(string=port_guid(host, rail)),
            "dra.net/lid": lambda host: DeviceAttribute(int_=port_lid(host, rail)),
            "dra.net/mac": lambda host: DeviceAttribute(string=port_mac(host, rail)),
            PLACEMENT_GROUP: None,
        }
        for key in _UUID:
            if (address := self._addresses.get(str(_value(device, key)))) is not None:
                known[key] = _uuid_of(address)
        return [(key, change) for key, change in known.items() if key in device.attributes]

    def derive(self, index: int, host: int, seed: int, fabric_label: str) -> tuple[Node, list[ResourceSlice]]:
        name = host_name(self._size, index)
        labels = {HOSTNAME_LABEL: name, SIZE_LABEL: self._size.name}
        group = placement_group(self._size, index, seed) if self._azure else ""
        if fabric_label and group:
            labels[fabric_label] = group
        published = []
        for pattern, make in self._slices:
            spec = msgspec.structs.replace(
                pattern.spec,
                node_name=name,
                pool=msgspec.structs.replace(pattern.spec.pool, name=name),
                devices=make(host, DeviceAttribute(string=group)),
            )
            metadata = ObjectMeta(name=f"{pattern.metadata.name.removesuffix('-')}{name}")
            published.append(ResourceSlice(metadata=metadata, spec=spec))
        return Node(name=name, labels=labels), published


_Change = Callable[[int], DeviceAttribute]
_Maker = Callable[[int, DeviceAttribute], tuple[Device, ...]]


def _uuid_of(address: str) -> _Change:
    return lambda host: DeviceAttribute(string=f"GPU-{stable_uuid('gpu', address, host)}")


def _value(device: Device, key: str) -> int | bool | str | None:
    attribute = device.attributes.get(key)
    return None if attribute is None else attribute.value
