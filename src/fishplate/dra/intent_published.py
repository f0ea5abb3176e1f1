"""What the drivers of a node pool publish, in the shape that writing claims asks for: GPUs and RDMA NICs by node."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from fishplate.dra.intent_classes import GPU_DRIVERS, NIC_DRIVER, Vendor
from fishplate.errors import InputError
from fishplate.k8s.resource import Device, DeviceAttribute, ResourceSlice

_VENDORS = {driver: vendor for vendor, driver in GPU_DRIVERS.items()}
_WHOLE_GPUS = ("gpu", "amdgpu")


class Offered(NamedTuple):
    """A device with its attributes under their full names."""

    name: str
    attributes: dict[str, DeviceAttribute]

    def value(self, key: str) -> int | bool | str | None:
        attribute = self.attributes.get(key)
        return None if attribute is None else attribute.value


class OfferedNode(NamedTuple):
    name: str
    gpus: tuple[Offered, ...]
    nics: tuple[Offered, ...]


class Published(NamedTuple):
    """`vendor` is None where no node has GPUs."""

    nodes: tuple[OfferedNode, ...]
    vendor: Vendor | None

    @property
    def gpu_driver(self) -> str:
        return GPU_DRIVERS[self.vendor] if self.vendor else ""

    @property
    def gpus(self) -> list[Offered]:
        return [gpu for node in self.nodes for gpu in node.gpus]

    @property
    def nics(self) -> list[Offered]:
        return [nic for node in self.nodes for nic in node.nics]


def vendors_in(slices: Sequence[ResourceSlice]) -> tuple[Vendor, ...]:
    """Whose whole GPUs are among the slices."""
    drivers = {one.spec.driver for one in slices if any(_whole_gpus(one.spec.driver, one.spec.devices))}
    return tuple(vendor for vendor, driver in GPU_DRIVERS.items() if driver in drivers)


def read_published(slices: Sequence[ResourceSlice], *, vendor: Vendor | None = None) -> Published:
    """GPUs of one vendor and RDMA NICs; everything else that slices hold is left out."""
    gpus: dict[str, list[Offered]] = defaultdict(list)
    nics: dict[str, list[Offered]] = defaultdict(list)
    vendors: set[Vendor] = set()
    for one in slices:
        spec = one.spec
        node = spec.node_name or spec.pool.name
        maker = _VENDORS.get(spec.driver)
        if maker is not None and (vendor is None or maker == vendor):
            found = list(_whole_gpus(spec.driver, spec.devices))
            gpus[node] += found
            if found:
                vendors.add(maker)
        elif spec.driver == NIC_DRIVER:
            nics[node] += _rdma_nics(spec.devices)
    if len(vendors) > 1:
        raise InputError(
            "the slices hold GPUs of two vendors, and one claim is for one of them",
            remedy="say which with --vendor nvidia or --vendor amd; --vendor any writes for both",
        )
    nodes = tuple(OfferedNode(name, tuple(gpus[name]), tuple(nics[name])) for name in sorted({*gpus, *nics}))
    return Published(nodes, next(iter(vendors), None))


def _whole_gpus(driver: str, devices: Iterable[Device]) -> Iterable[Offered]:
    """Partitions and devices for virtual machines are no GPUs that a pod could share a NIC with."""
    for device in devices:
        offered = Offered(device.name, qualify(driver, device))
        if offered.value(f"{driver}/type") in _WHOLE_GPUS:
            yield offered


def _rdma_nics(devices: Iterable[Device]) -> Iterable[Offered]:
    for device in devices:
        offered = Offered(device.name, qualify(NIC_DRIVER, device))
        if offered.value("dra.net/rdma") is True:
            yield offered


def qualify(driver: str, device: Device) -> dict[str, DeviceAttribute]:
    """A name without a domain belongs to the driver's."""
    return {(key if "/" in key else f"{driver}/{key}"): value for key, value in device.attributes.items()}
