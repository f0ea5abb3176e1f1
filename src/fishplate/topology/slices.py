"""The ResourceSlices that follow from an inventory: exactly what the driver publishes."""

import hashlib
from collections.abc import Mapping

from fishplate.k8s.resource import (
    MAX_DEVICES_PER_SLICE,
    Device,
    ObjectMeta,
    ResourcePool,
    ResourceSlice,
    ResourceSliceSpec,
)
from fishplate.topology.attributes import Value, device_attributes
from fishplate.topology.inventory import Inventory

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
) -> tuple[ResourceSlice, ...]:
    """One pool per node, named after it; split where one slice cannot hold all devices; empty rather than absent."""
    uuids = {gpu.pci.address: gpu.uuid for gpu in inventory.gpus} if publish_uuid else {}
    devices = [
        Device(
            name=nic.id,
            attributes=device_attributes(nic, node=node_attributes, gpu_uuid=uuids.get(nic.paired_gpu, "")),
        )
        for nic in inventory.nics
        if not nic.excluded
    ]
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
