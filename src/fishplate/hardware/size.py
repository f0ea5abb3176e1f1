"""What the catalogue says about one VM size or server.

These Structs are also the form of a catalogue file: a file decodes straight into them, unknown fields are refused, and
what a file may leave out has its default here. PCI identifiers are lower-case hex text without `0x`, because YAML would
read `0101` as an octal number and `1e00` as a float.
"""

from typing import Literal

import msgspec

Provider = Literal["azure", "bare-metal"]
Architecture = Literal["x86_64", "aarch64"]
Basis = Literal["documented", "inferred"]
Status = Literal["current", "retiring", "retired", "legacy"]
Medium = Literal["", "infiniband", "ipoib", "ethernet", "nvlink", "xgmi", "pcie", "memory"]


class Part(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """The manners all Structs of this module share."""


class GpuSpec(Part, frozen=True, kw_only=True):
    model: str
    product_name: str
    vendor: Literal["nvidia", "amd"]
    count: int
    memory_gib: float
    pci_vendor: str
    pci_device: str
    link: str
    """How GPUs of one node reach each other: NV18, NV12, XGMI, none, unknown."""
    c2c: bool = False
    """Whether the GPU hangs on a Grace CPU by its coherent link."""
    note: str = ""


class NicSpec(Part, frozen=True, kw_only=True):
    model: str
    generation: Literal["FDR", "EDR", "HDR", "NDR", "XDR", "Ethernet"]
    count: int
    rate_gbps: float
    link_layer: Literal["InfiniBand", "Ethernet"]
    pci_vendor: str
    pci_device: str
    pci_subsystem: str = ""
    pci_name: str = ""
    pcie_gbps: float | None = None
    """What the path between the NIC and a GPU of its NUMA node was seen to carry, where that is below the line rate."""
    note: str = ""


class Place(Part, frozen=True, kw_only=True):
    address: str
    numa: int | None = None
    root: str = ""
    """The PCI root as sysfs names it; when left out, the bus of the outermost bridge, or of the device itself."""
    bridges: tuple[str, ...] = ()
    """Bridges between the root and the device, outermost first."""
    vmbus: bool = False
    """Below Hyper-V's VMBUS, where no PCI root can be found by walking up the ACPI tree."""
    pair: str | None = None
    """The one device of the other kind that is documented as belonging to this one."""
    switch: str = ""
    """The physical PCIe switch, where a published topology names it though the guest cannot see it."""

    def __post_init__(self) -> None:
        if not self.root:
            outermost = self.bridges[0] if self.bridges else self.address
            msgspec.structs.force_setattr(self, "root", "pci" + outermost.rpartition(":")[0])


class Layout(Part, frozen=True, kw_only=True):
    basis: Basis
    basis_note: str
    sources: tuple[str, ...]
    hyperv: bool = False
    """Whether the NICs sit below VMBUS."""
    gpus: tuple[Place, ...] = ()
    nics: tuple[Place, ...] = ()


class Expectation(Part, frozen=True, kw_only=True):
    """A published number: what a healthy machine shows, and where its publisher draws the line."""

    test: str
    metric: str
    unit: str
    expect: float | None = None
    warn_below: float | None = None
    fail_below: float | None = None
    fail_above: float | None = None
    nodes: int | None = None
    message_bytes: int | None = None
    over: Medium = ""
    note: str = ""
    source: str


class AksPreconditions(Part, frozen=True, kw_only=True):
    infiniband_feature: Literal["registered", "unregistered"]
    """The state that the subscription-wide feature AKSInfinibandSupport must have before the pool is made."""
    os_skus: tuple[str, ...]
    gpu_driver: Literal["none", "install", "any"]
    notes: tuple[str, ...] = ()
    sources: tuple[str, ...]


class Size(Part, frozen=True, kw_only=True):
    name: str
    provider: Provider
    rdma: bool
    why_not_rdma: str = ""
    vcpus: int | None = None
    memory_gib: float | None = None
    architecture: Architecture
    gpu: GpuSpec | None = None
    nic: NicSpec | None = None
    numa_nodes: int | None = None
    numa_note: str = ""
    layout: Layout | None = None
    expected: tuple[Expectation, ...] = ()
    aks: AksPreconditions | None = None
    status: Status = "current"
    retires: str = ""
    """The day of retirement, past or to come, as YYYY-MM-DD."""
    sriov: bool = False
    notes: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    constrained_from: str = ""
    """The full size this one is cut from: same NIC, memory and NUMA nodes, fewer vCPUs."""
    dmi_products: tuple[str, ...] = ()
    """For servers: what /sys/class/dmi/id/product_name says, with `*` for any run of characters."""


class Entry(Size, frozen=True, kw_only=True):
    """A size as a file writes it: constrained sizes are a list of vCPU counts, not entries of their own."""

    constrained: tuple[int, ...] = ()


class Document(Part, frozen=True, kw_only=True):
    """A catalogue file."""

    sources: dict[str, str]
    sizes: tuple[Entry, ...]
    shared: dict[str, object] = msgspec.field(default_factory=dict)
    """Read by nobody: a place for YAML anchors that several sizes refer to."""
