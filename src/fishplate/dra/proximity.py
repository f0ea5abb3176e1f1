"""How near the GPUs and NICs of an allocation are, from what their drivers publish.

Drivers differ in what they say: NVIDIA's before 0.5 publishes no NUMA node. Where the node's size is known, the
catalogue's layout fills that in by PCI address.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from fishplate.topology.alignment import judge_gpudirect
from fishplate.topology.inventory import PciFunction
from fishplate.topology.relations import relate_functions

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fishplate.hardware.catalog import Catalog
    from fishplate.k8s.claim import AllocationResult
    from fishplate.k8s.resource import Device

_STANDARD = "resource.kubernetes.io"
_GPU_DRIVERS = ("gpu.nvidia.com", "gpu.amd.com")
_FABRIC = "azure.dra.net/placementGroupId"
_SIZE = "azure.dra.net/vmSize"


class Pair(NamedTuple):
    gpu: str
    nic: str
    relation: str
    gpudirect: str  # what NCCL needs for GPUDirect: "default", "NCCL_NET_GDR_LEVEL=PHB", …, "" where it cannot be told


class Proximity(NamedTuple):
    pairs: tuple[Pair, ...]
    fabrics: tuple[str, ...]


def judge_proximity(
    results: Sequence[AllocationResult], devices: Mapping[tuple[str, str, str], Device], catalog: Catalog
) -> Proximity:
    """Every GPU–NIC pair among the devices of an allocation, and the fabrics of its NICs."""
    given = [
        (result.driver, devices[result.driver, result.pool, result.device])
        for allocation in results
        for result in allocation.devices.results
        if (result.driver, result.pool, result.device) in devices
    ]
    gpus = [(driver, device) for driver, device in given if driver in _GPU_DRIVERS]
    nics = [(driver, device) for driver, device in given if driver not in _GPU_DRIVERS and _is_nic(device)]
    numa = _layout_numa(nics, catalog)
    pairs = tuple(_relate(gpu_driver, gpu, nic, numa) for gpu_driver, gpu in gpus for _, nic in nics)
    fabrics = dict.fromkeys(fabric for _, nic in nics if (fabric := _text(nic, _FABRIC)))
    return Proximity(pairs, tuple(fabrics))


def _is_nic(device: Device) -> bool:
    return "dra.net/rdma" in device.attributes


def _layout_numa(nics: Sequence[tuple[str, Device]], catalog: Catalog) -> dict[str, int]:
    """PCI address → NUMA node of everything on the node, where its size has a layout."""
    for _, nic in nics:
        name = _text(nic, _SIZE)
        size = next((size for size in catalog.sizes if size.name == name), None) if name else None
        if size is not None and size.layout is not None:
            places = (*size.layout.gpus, *size.layout.nics)
            return {place.address: place.numa for place in places if place.numa is not None}
    return {}


def _relate(gpu_driver: str, gpu: Device, nic: Device, numa: Mapping[str, int]) -> Pair:
    one, other = _function(gpu_driver, gpu, numa), _function("dra.net", nic, numa)
    relation = relate_functions(one, other)
    # Attributes tell the root and not the bridges, so PHB here means "one host bridge or nearer".
    direct = judge_gpudirect(relation, coherent=False)
    need = "" if direct is None else "default" if direct.by_default == "yes" else f"NCCL_NET_GDR_LEVEL={direct.level}"
    return Pair(gpu.name, nic.name, str(relation), need)


def _function(driver: str, device: Device, numa: Mapping[str, int]) -> PciFunction:
    address = (
        _text(device, f"{_STANDARD}/pciBusID") or _text(device, "dra.net/pciAddress") or _text(device, "pcieBusID")
    )
    known = numa.get(address)
    node = known if known is not None else _numa(driver, device)
    root = _text(device, f"{_STANDARD}/pcieRoot") or None
    return PciFunction(address=address or device.name, root=root, numa_node=node)


def _numa(driver: str, device: Device) -> int | None:
    for name in (f"{_STANDARD}/numaNode", "dra.net/numaNode", f"{driver}/numaNode", "numaNode"):
        attribute = device.attributes.get(name)
        if attribute is not None and attribute.int_ is not None and attribute.int_ >= 0:
            return attribute.int_
    return None


def _text(device: Device, name: str) -> str:
    attribute = device.attributes.get(name)
    return (attribute.string or "") if attribute is not None else ""
