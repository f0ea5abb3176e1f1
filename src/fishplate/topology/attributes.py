"""The attributes of one device in a ResourceSlice.

Names, types and values of DRANET are kept, because published templates select on them. Beside them stand:
- the standard names under `resource.kubernetes.io`, always true: the NIC's own bus id and root, its NUMA node;
- `gpu.amd.com/numaNode`, the same number again: AMD's GPU driver publishes its NUMA node under that name only, and a
  `matchAttribute` constraint needs one name on both sides. No rule ties a domain to a driver;
- `gpu.nvidia.com/uuid` on request: the one GPU paired with this NIC, for NVIDIA drivers before 0.5, without NUMA;
- what selectors want and DRANET lacks: link layer, port state, rate, GUIDs, LID, P_Key, rail.

A value that is not known is left out: never zero, never -1. Nothing here depends on whether a pod uses the device.
"""

from collections.abc import Mapping

from fishplate.k8s.resource import MAX_ATTRIBUTES_PER_DEVICE, MAX_STRING_BYTES, DeviceAttribute
from fishplate.topology.inventory import Netdev, Nic, PciFunction, RdmaDevice

Value = bool | int | str


class Version(str):
    """A semantic version; the API keeps them apart from strings. Only a webhook speaks of them."""

    __slots__ = ()


# What goes first when a device has more attributes than the API takes. Standard names never go.
_DROP_ORDER = (
    "dra.net/alias",
    "dra.net/firmware",
    "dra.net/lid",
    "dra.net/nodeGuid",
    "dra.net/virtual",
    "dra.net/encapsulation",
    "dra.net/pkey",
    "dra.net/portGuid",
    "dra.net/tcFilterNames",
    "dra.net/tcxProgramNames",
    "dra.net/ipv6",
    "dra.net/ipv4",
    "dra.net/mac",
    "dra.net/pciSubsystem",
    "gpu.nvidia.com/uuid",
    "gpu.amd.com/numaNode",
)


def device_attributes(
    nic: Nic, *, node: Mapping[str, Value] | None = None, gpu_uuid: str = ""
) -> dict[str, DeviceAttribute]:
    """All attributes of a NIC, sorted by name, within the API's limits. `node` holds what a cloud says of the node;
    `gpu_uuid` is the paired GPU's, given only where it shall be published."""
    values: dict[str, Value] = {"dra.net/rdma": nic.is_rdma}
    if nic.pci:
        values |= _pci_values(nic, nic.pci)
    if nic.interface:
        values |= _netdev_values(nic.interface)
    if nic.rdma:
        values |= _rdma_values(nic.rdma[0])
    if nic.rail is not None:
        values["dra.net/rail"] = nic.rail
    if nic.paired_gpu:
        values["dra.net/pairedGpu"] = nic.paired_gpu
    if gpu_uuid:
        values["gpu.nvidia.com/uuid"] = gpu_uuid
    values |= node or {}
    return {name: _attribute(values[name]) for name in sorted(_within_limit(values))}


def _pci_values(nic: Nic, pci: PciFunction) -> dict[str, Value]:
    values: dict[str, Value] = {
        "dra.net/pciAddress": pci.address,
        "dra.net/pciVendor": nic.vendor_name or "unknown",
        "dra.net/pciDevice": nic.device_name or "unknown",
        "resource.kubernetes.io/pciBusID": pci.address,
    }
    if pci.subsystem_device:
        values["dra.net/pciSubsystem"] = pci.subsystem_device
    if pci.root is not None:
        values["resource.kubernetes.io/pcieRoot"] = pci.root
    if pci.numa_node is not None:
        for name in ("dra.net/numaNode", "resource.kubernetes.io/numaNode", "gpu.amd.com/numaNode"):
            values[name] = pci.numa_node
    if pci.physfn:
        values["dra.net/isSriovVf"] = True
    if nic.interface:
        values["dra.net/sriov"] = bool(pci.sriov_totalvfs)
        if pci.sriov_totalvfs:
            values["dra.net/sriovVfs"] = pci.sriov_numvfs or 0
    return values


def _netdev_values(netdev: Netdev) -> dict[str, Value]:
    values: dict[str, Value] = {
        "dra.net/ifName": netdev.name,
        "dra.net/alias": netdev.alias,  # DRANET publishes an empty one, too
        "dra.net/virtual": netdev.virtual,
        "dra.net/ebpf": bool(netdev.tc_filters or netdev.tcx_programs),
    }
    known = {"mac": netdev.mac, "encapsulation": netdev.encapsulation, "state": netdev.state, "type": netdev.kind}
    values |= {f"dra.net/{name}": text for name, text in known.items() if text}
    for name, programs in (("tcFilterNames", netdev.tc_filters), ("tcxProgramNames", netdev.tcx_programs)):
        if joined := join_whole(sorted(programs)):
            values[f"dra.net/{name}"] = joined
    if netdev.mtu is not None:
        values["dra.net/mtu"] = netdev.mtu
    for family, separator in (("ipv4", "."), ("ipv6", ":")):
        own = sorted(address for address in netdev.addresses if separator in address)
        if joined := join_whole(own):
            values[f"dra.net/{family}"] = joined
    return values


def _rdma_values(device: RdmaDevice) -> dict[str, Value]:
    values: dict[str, Value] = {"dra.net/rdmaDevice": device.name}
    if device.node_guid:
        values["dra.net/nodeGuid"] = device.node_guid
    if device.firmware:
        values["dra.net/firmware"] = device.firmware
    if not device.ports:
        return values
    # Devices with several ports are described by their first; `ports` says that there are more.
    port = device.ports[0]
    if len(device.ports) > 1:
        values["dra.net/ports"] = len(device.ports)
    if port.link_layer != "unknown":
        values["dra.net/linkLayer"] = port.link_layer
    if port.state:
        values["dra.net/portState"] = port.state
    if port.rate_gbps is not None:
        values["dra.net/rateGbps"] = int(port.rate_gbps)
    if port.guid:
        values["dra.net/portGuid"] = port.guid
    if port.lid:
        values["dra.net/lid"] = port.lid
    if port.link_layer == "InfiniBand" and port.pkeys:
        values["dra.net/pkey"] = port.pkeys[0]
    return values


def _within_limit(values: dict[str, Value]) -> dict[str, Value]:
    surplus = len(values) - MAX_ATTRIBUTES_PER_DEVICE
    dropped = [name for name in _DROP_ORDER if name in values][: max(surplus, 0)]
    kept = {name: value for name, value in values.items() if name not in dropped}
    # A cloud or webhook could still bring more than fits: its names go next, last ones first.
    foreign = sorted(name for name in kept if not name.startswith(("dra.net/", "resource.kubernetes.io/")))
    while len(kept) > MAX_ATTRIBUTES_PER_DEVICE and foreign:
        del kept[foreign.pop()]
    return kept


def _attribute(value: Value) -> DeviceAttribute:
    if isinstance(value, bool):
        return DeviceAttribute(bool_=value)
    if isinstance(value, int):
        return DeviceAttribute(int_=value)
    if isinstance(value, Version):
        return DeviceAttribute(version=str(value))
    return DeviceAttribute(string=cap(value))


def cap(text: str) -> str:
    """Cut to the API's 64 bytes without cutting a character in two."""
    return text.encode()[:MAX_STRING_BYTES].decode(errors="ignore")


def join_whole(items: list[str]) -> str:
    """Join by commas as many whole items as fit: half an address would be a lie."""
    joined = ""
    for item in items:
        longer = f"{joined},{item}" if joined else item
        if len(longer.encode()) > MAX_STRING_BYTES:
            break
        joined = longer
    return joined
