"""Everything Fishplate knows about one host, as plain values.

A live host, a captured tree and a synthetic one all yield the same Inventory; nothing else in the system has a second
model of a host. Identity is the PCI address: names such as `mlx5_0` or `eth1` are facts about a device, never its key,
because the kernel hands them out in probe order and containers rename them.
"""

import re
from typing import Literal

import msgspec

from fishplate.findings import Finding

LinkLayer = Literal["InfiniBand", "Ethernet", "unknown"]
CharKind = Literal["uverbs", "umad", "issm", "ucm", "rdma_cm"]
GpuVendor = Literal["nvidia", "amd"]
# Where a NUMA node number comes from. "kernel" is the device's own file; the others stand in when that says -1.
NumaSource = Literal["kernel", "bridge", "cpus", "single-node", "unknown"]


_REPRESENTOR = re.compile(r"(c\d+)?pf\d+(vf\d+|sf\d+|hpf)?\Z")


class Fact(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """What the values below have in common: frozen, named fields, defaults left out of the JSON."""


class CharDevice(Fact, frozen=True, kw_only=True):
    path: str
    kind: CharKind
    major: int
    minor: int
    mode: int | None = None  # permission bits of the node in /dev; None when there is no node
    port: int | None = None


class Gid(Fact, frozen=True, kw_only=True):
    index: int
    value: str
    type: str = ""  # "IB/RoCE v1" or "RoCE v2", as the kernel says
    netdev: str = ""


class Port(Fact, frozen=True, kw_only=True):
    number: int
    link_layer: LinkLayer = "unknown"
    state: str = ""  # ACTIVE, INIT, DOWN, ARMED
    phys_state: str = ""  # LinkUp, Polling, Disabled, …
    rate_gbps: float | None = None
    rate: str = ""
    lid: int | None = None
    sm_lid: int | None = None
    guid: str = ""
    pkeys: tuple[str, ...] = ()
    gids: tuple[Gid, ...] = ()


class RdmaDevice(Fact, frozen=True, kw_only=True):
    name: str
    node_guid: str = ""
    sys_image_guid: str = ""
    firmware: str = ""
    node_type: str = ""
    board_id: str = ""
    ports: tuple[Port, ...] = ()
    char_devices: tuple[CharDevice, ...] = ()
    netdevs: tuple[str, ...] = ()
    soft: bool = False  # Soft-RoCE, siw: a device below devices/virtual


class Netdev(Fact, frozen=True, kw_only=True):
    name: str
    ifindex: int | None = None
    mac: str = ""
    mtu: int | None = None
    encapsulation: str = ""  # ether, infiniband, …
    kind: str = ""  # device, ipoib, bond, vlan, veth, dummy, …
    state: str = ""
    alias: str = ""
    port_name: str = ""  # the switch's name for it, where there is one: p0, pf0vf3
    master: str = ""
    lowers: tuple[str, ...] = ()
    virtual: bool = False
    default_route: bool = False
    # Only where the kernel could be asked, on a live host:
    addresses: tuple[str, ...] = ()  # CIDRs
    tc_filters: tuple[str, ...] = ()
    tcx_programs: tuple[str, ...] = ()


class PciFunction(Fact, frozen=True, kw_only=True):
    address: str
    vendor: str = ""
    device: str = ""
    subsystem_vendor: str = ""
    subsystem_device: str = ""
    class_code: str = ""
    driver: str = ""
    root: str | None = None  # "pci0000:26", also through Hyper-V's VMBUS
    bridges: tuple[str, ...] = ()  # from the root down to the device, the device left out
    numa_node: int | None = None
    numa_source: NumaSource = "unknown"
    vmbus: str = ""  # GUID of the Hyper-V channel the function came through
    link_speed: str = ""
    link_width: int | None = None
    physfn: str = ""  # of a VF: its PF
    virtfns: tuple[str, ...] = ()  # of a PF: its VFs
    sriov_totalvfs: int | None = None
    sriov_numvfs: int | None = None


class Nic(Fact, frozen=True, kw_only=True):
    """A network function. `pci` is None only for interfaces that stand on no PCI device."""

    id: str  # the name of the device in a ResourceSlice
    pci: PciFunction | None = None
    vendor_name: str = ""
    device_name: str = ""
    rdma: tuple[RdmaDevice, ...] = ()
    netdevs: tuple[Netdev, ...] = ()
    uplink: bool = False  # part of the node's own way out
    rail: int | None = None
    paired_gpu: str = ""  # PCI address of the one GPU that belongs to this NIC, where exactly one does
    excluded: str = ""  # why it is not offered to pods; empty when it is

    @property
    def is_rdma(self) -> bool:
        return bool(self.rdma)

    @property
    def numa_node(self) -> int | None:
        return self.pci.numa_node if self.pci else None

    @property
    def interface(self) -> Netdev | None:
        """The netdev a pod would get. IPoIB interfaces are left alone: they belong to the fabric, not to a pod. So are
        representors: they are a switch's end of somebody else's function."""
        own = (netdev for netdev in self.netdevs if not _REPRESENTOR.match(netdev.port_name))
        return next((netdev for netdev in own if netdev.kind != "ipoib"), None)

    @property
    def link_layer(self) -> LinkLayer:
        layers = {port.link_layer for device in self.rdma for port in device.ports}
        return layers.pop() if len(layers) == 1 else "unknown"


class Gpu(Fact, frozen=True, kw_only=True):
    pci: PciFunction
    vendor: GpuVendor
    model: str = ""
    uuid: str = ""
    driver_version: str = ""
    card: int | None = None  # /dev/dri/cardN
    render: int | None = None  # /dev/dri/renderDN
    coherent: bool = False  # joined to the CPU by NVLink-C2C, as on Grace boards

    @property
    def numa_node(self) -> int | None:
        return self.pci.numa_node


class GpuLink(Fact, frozen=True, kw_only=True):
    """How two GPUs talk to each other, by the word of whoever knows (`source`)."""

    a: str
    b: str
    word: str  # NV18, XGMI, or a PCIe word when it is known that nothing better joins them
    source: str


class NumaNode(Fact, frozen=True, kw_only=True):
    id: int
    cpus: str = ""  # as the kernel lists them: 0-47,96-143
    cpu_count: int = 0
    memory_bytes: int | None = None
    distances: tuple[int, ...] = ()


class Host(Fact, frozen=True, kw_only=True):
    name: str = ""
    architecture: str = ""
    kernel: str = ""
    vendor: str = ""
    product: str = ""
    cloud: str = ""  # "azure" where the firmware says so
    sizes: tuple[str, ...] = ()  # the catalogue's names for this machine; several where only the name differs
    rdma_netns: Literal["shared", "exclusive", ""] = ""


class Inventory(Fact, frozen=True, kw_only=True):
    host: Host = Host()
    numa_nodes: tuple[NumaNode, ...] = ()
    gpus: tuple[Gpu, ...] = ()
    nics: tuple[Nic, ...] = ()
    gpu_links: tuple[GpuLink, ...] = ()
    rdma_cm: CharDevice | None = None
    problems: tuple[Finding, ...] = ()

    @property
    def rdma_nics(self) -> tuple[Nic, ...]:
        return tuple(nic for nic in self.nics if nic.is_rdma)

    def nic(self, id_or_address: str) -> Nic | None:
        return next((n for n in self.nics if n.id == id_or_address or (n.pci and n.pci.address == id_or_address)), None)
