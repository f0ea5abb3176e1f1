"""The ResourceSlices that follow from an inventory: exactly what the driver publishes."""

import hashlib
from collections.abc import Callable, Mapping

from fishplate.k8s.resource import (
    MAX_DEVICES_PER_SLICE,
    Device,
    ObjectMeta,
    ResourcePool,
    ResourceSlice,
    ResourceSliceSpec,
)
from fishplate.topology.attributes import Value, device_attributes
from fishplate.topology.inventory import Inventory, Nic

DRIVER = "dra.net"
_MAX_NAME = 253


def publish_slices(
    inventory: Inventory,
    *,
    node: str,
    driver: str = DRIVER,
    generation: int = 1,
    node_attributes: Mapping[str, Value] | None = None,
    publish_uuid: bool = False,
    attributes_of: Callable[[Nic], Mapping[str, Value]] | None = None,
    keep: Callable[[Device], bool] = lambda _: True,
) -> tuple[ResourceSlice, ...]:
    """One pool per node, named after it; split where one slice cannot hold all devices; empty rather than absent.

    Only RDMA devices are offered: an interface without one would have to be moved into the pod, which nobody does yet.
    `attributes_of` adds what somebody else knows of a device, `keep` has the last word on each."""
    uuids = {gpu.pci.address: gpu.uuid for gpu in inventory.gpus} if publish_uuid else {}
    devices = [
        Device(
            name=nic.id,
            attributes=device_attributes(
                nic,
                node={**(node_attributes or {}), **(attributes_of(nic) if attributes_of else {})},
                gpu_uuid=uuids.get(nic.paired_gpu, ""),
            ),
        )
        for nic in inventory.nics
        if nic.is_rdma and not nic.excluded
    ]
    devices = [device for device in devices if keep(device)]
    devices.sort(key=lambda device: device.name)
    chunks = [devices[i : i + MAX_DEVICES_PER_SLICE] for i in range(0, len(devices), MAX_DEVICES_PER_SLICE)] or [[]]
    return tuple(
        ResourceSlice(
            metadata=ObjectMeta(name=_slice_name(index, driver, node)),
            spec=ResourceSliceSpec(
                driver=driver,
                node_name=node,
                pool=ResourcePool(name=node, generation=generation, resource_slice_count=len(chunks)),
                devices=tuple(chunk),
            ),
        )
        for index, chunk in enumerate(chunks)
    )


def _slice_name(index: int, driver: str, node: str) -> str:
    """Index first, so that a list sorted by name shows the slices of a pool in order. A name that grew too long is told
    apart by its hash."""
    name = f"{index:05x}-{driver}-{node}"
    if len(name) <= _MAX_NAME:
        return name
    digest = hashlib.sha256(node.encode()).hexdigest()[:16]
    return f"{name[: _MAX_NAME - len(digest) - 1].rstrip('-.')}-{digest}"
