"""How two devices reach each other, in the words of `nvidia-smi topo -m`.

    PIX   at most one PCIe switch between them
    PXB   several switches, no host bridge
    PHB   one host bridge (root complex)
    NODE  several host bridges of one NUMA node
    SYS   across NUMA nodes
    NV#   that many NVLinks;  XGMI  AMD's Infinity Fabric;  X  itself;  ?  nobody knows

Azure gives every device a PCI domain of its own, so inside such a VM no two devices share a root: same NUMA node is
NODE, another one SYS, and the real switches below stay hidden.

Two GPUs are special: what joins them is usually not PCIe, and the PCI tree says nothing about it. Their word comes from
whoever knows (catalogue, kernel, the vendor's tool); where nobody does it is `?`, never SYS by default.
"""

from enum import StrEnum
from itertools import combinations

import msgspec

from fishplate.topology.inventory import Gpu, Inventory, Nic, PciFunction


class Pcie(StrEnum):
    SELF = "X"
    PIX = "PIX"
    PXB = "PXB"
    PHB = "PHB"
    NODE = "NODE"
    SYS = "SYS"
    UNKNOWN = "?"


# From near to far; a device of unknown place is never near.
NEARNESS = {
    Pcie.SELF: 0,
    Pcie.PIX: 1,
    Pcie.PXB: 2,
    Pcie.PHB: 3,
    Pcie.NODE: 4,
    Pcie.SYS: 5,
    Pcie.UNKNOWN: 6,
}


class Relation(msgspec.Struct, frozen=True, kw_only=True):
    a: str
    b: str
    relation: str


def relate_functions(a: PciFunction, b: PciFunction) -> Pcie:
    if a.address == b.address:
        return Pcie.SELF
    if a.root is not None and a.root == b.root:
        return _relate_below_one_root(a.bridges, b.bridges)
    if a.numa_node is None or b.numa_node is None:
        return Pcie.UNKNOWN
    return Pcie.NODE if a.numa_node == b.numa_node else Pcie.SYS


def _relate_below_one_root(a: tuple[str, ...], b: tuple[str, ...]) -> Pcie:
    shared = 0
    while shared < min(len(a), len(b)) and a[shared] == b[shared]:
        shared += 1
    if not shared:
        return Pcie.PHB
    # A switch is an upstream bridge with one downstream bridge per slot, so two devices on one switch have at most one
    # bridge each beyond the bridge they share. More means a second switch in between.
    beyond = max(len(a), len(b)) - shared
    return Pcie.PIX if beyond <= 1 else Pcie.PXB


def gpu_labels(inventory: Inventory) -> dict[str, str]:
    """PCI address → `GPU0`…, in address order as nvidia-smi counts them."""
    return {gpu.pci.address: f"GPU{i}" for i, gpu in enumerate(inventory.gpus)}


def nic_labels(nics: tuple[Nic, ...]) -> dict[str, str]:
    """Device id → `NIC0`…, in the order given (an inventory's order: by PCI address)."""
    return {nic.id: f"NIC{i}" for i, nic in enumerate(nics)}


def relate_gpu_and_nic(gpu: Gpu, nic: Nic) -> Pcie:
    return relate_functions(gpu.pci, nic.pci) if nic.pci else Pcie.UNKNOWN


def relate_gpus(inventory: Inventory, a: str, b: str) -> str:
    """The word for two GPUs, given by PCI address."""
    if a == b:
        return Pcie.SELF
    for link in inventory.gpu_links:
        if {link.a, link.b} == {a, b}:
            return link.word
    return Pcie.UNKNOWN


def relate_nics(a: Nic, b: Nic) -> Pcie:
    if a.id == b.id:
        return Pcie.SELF
    return relate_functions(a.pci, b.pci) if a.pci and b.pci else Pcie.UNKNOWN


def relate_all(inventory: Inventory) -> tuple[Relation, ...]:
    """Every pair once: GPUs among each other, GPUs with RDMA NICs, RDMA NICs among each other."""
    gpus = gpu_labels(inventory)
    nics = nic_labels(inventory.rdma_nics)
    relations = [
        Relation(a=gpus[a], b=gpus[b], relation=relate_gpus(inventory, a, b)) for a, b in combinations(gpus, 2)
    ]
    relations += [
        Relation(a=gpus[gpu.pci.address], b=nics[nic.id], relation=relate_gpu_and_nic(gpu, nic))
        for gpu in inventory.gpus
        for nic in inventory.rdma_nics
    ]
    relations += [
        Relation(a=nics[a.id], b=nics[b.id], relation=relate_nics(a, b))
        for a, b in combinations(inventory.rdma_nics, 2)
    ]
    return tuple(relations)
