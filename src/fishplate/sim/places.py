"""Where a device sits in sysfs: below a PCI root of its own, or below Hyper-V's VMBUS."""

import uuid

from fishplate.hardware.catalog import Place
from fishplate.sim.files import FileTree
from fishplate.sim.variations import Variations

_VMBUS = "/sys/devices/LNXSYSTM:00/LNXSYBUS:00/ACPI0004:00/VMBUS:00"
_NAMESPACE = uuid.UUID("6e1c7b5e-0d1f-4d55-9f0e-0c6f7d1a3b42")


def stable_uuid(*parts: object) -> uuid.UUID:
    """The same parts give the same UUID, on every machine."""
    return uuid.uuid5(_NAMESPACE, "/".join(map(str, parts)))


def write_function(
    tree: FileTree, place: Place, number: int, driver: str, ids: dict[str, str | int], variations: Variations
) -> str:
    """A PCI function with the bridges above it; returns its path in sysfs."""
    root = f"{_VMBUS}/{stable_uuid('vmbus', place.address, number)}" if place.vmbus else "/sys/devices"
    path = f"{root}/{place.root}"
    for bridge in (*place.bridges, *_extra_bridges(place, variations)):
        path = f"{path}/{bridge}"
        _write_one(tree, path, bridge, "pcieport", {"vendor": "0x8086", "device": "0x352a", "class": "0x060400"})
        tree.file(f"{path}/numa_node", numa_text(place, variations))
    path = f"{path}/{place.address}"
    _write_one(tree, path, place.address, driver, ids)
    tree.file(f"{path}/numa_node", numa_text(place, variations))
    return path


def numa_text(place: Place, variations: Variations) -> int:
    if variations.numa_unknown or variations.single_numa or place.numa is None:
        return -1
    return place.numa


def _extra_bridges(place: Place, variations: Variations) -> list[str]:
    domain = place.address.split(":")[0]
    return [f"{domain}:{0xE0 + i:02x}:00.0" for i in range(variations.extra_bridges)]


def _write_one(tree: FileTree, path: str, address: str, driver: str, ids: dict[str, str | int]) -> None:
    tree.files(path, ids)
    tree.link(f"/sys/bus/pci/devices/{address}", path)
    tree.directory(f"/sys/bus/pci/drivers/{driver}")
    tree.link(f"{path}/driver", f"/sys/bus/pci/drivers/{driver}")
