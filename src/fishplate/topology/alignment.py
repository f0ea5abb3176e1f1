"""Which NICs line up with which GPU, and whether NCCL would use GPUDirect RDMA between them.

NCCL does not decide by nvidia-smi's words. It has no NODE level: everything inside one NUMA node that needs a host
bridge is PHB to it, everything across is SYS. Left alone it uses GPUDirect up to PXB, or up to P2C (coherent link to
the CPU, then PCIe) where it sees such a link; both lie below PHB (src/graph/paths.cc, NCCL 2.30). On Azure, where the
PCI tree is flat, GPUDirect therefore needs NCCL_NET_GDR_LEVEL=PHB or a topology file even on the right NUMA node.
"""

from typing import Literal

import msgspec

from fishplate.topology.inventory import Gpu, Inventory, Nic
from fishplate.topology.relations import NEARNESS, Pcie, gpu_labels, nic_labels, relate_gpu_and_nic

NcclPath = Literal["PIX", "PXB", "P2C", "PHB", "SYS", "?"]

_NCCL_PATH: dict[Pcie, NcclPath] = {
    Pcie.PIX: "PIX",
    Pcie.PXB: "PXB",
    Pcie.PHB: "PHB",
    Pcie.NODE: "PHB",
    Pcie.SYS: "SYS",
}


class GpuDirect(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What NCCL makes of one GPU–NIC pair. `level` is the NCCL_NET_GDR_LEVEL that surely allows GPUDirect."""

    path: NcclPath
    by_default: Literal["yes", "no", "cannot-tell"]
    level: str
    why: str


class Alignment(msgspec.Struct, frozen=True, kw_only=True):
    """A GPU, the relation of its nearest RDMA NICs, those NICs, and which of them belong to this GPU alone."""

    gpu: str
    relation: str
    nics: tuple[str, ...]
    paired: tuple[str, ...]
    gpudirect: GpuDirect | None


def judge_gpudirect(relation: Pcie, *, coherent: bool) -> GpuDirect | None:
    path = _NCCL_PATH.get(relation)
    if path is None:
        return None
    if path in ("PIX", "PXB"):
        return GpuDirect(path=path, by_default="yes", level=path, why="within NCCL's default limit")
    if path == "PHB" and coherent:
        why = "P2C if NCCL sees the GPU's link to the CPU, else PHB, which is beyond the default limit"
        return GpuDirect(path="P2C", by_default="cannot-tell", level="PHB", why=why)
    if path == "PHB":
        why = "same NUMA node but no shared switch in sight: beyond NCCL's default limit without a topology file"
        return GpuDirect(path=path, by_default="no", level="PHB", why=why)
    why = "crosses NUMA nodes: NCCL stages through host memory"
    return GpuDirect(path=path, by_default="no", level="SYS", why=why)


def align(inventory: Inventory, gpu: Gpu) -> tuple[Pcie, tuple[Nic, ...]]:
    """The nearest relation any offered RDMA NIC has to this GPU, and all NICs that have it. SYS is not alignment."""
    offered = [nic for nic in inventory.rdma_nics if not nic.excluded]
    relations = [(relate_gpu_and_nic(gpu, nic), nic) for nic in offered]
    near = [(relation, nic) for relation, nic in relations if NEARNESS[relation] < NEARNESS[Pcie.SYS]]
    if not near:
        far = min((relation for relation, _ in relations), key=NEARNESS.__getitem__, default=Pcie.UNKNOWN)
        return far, ()
    best = min((relation for relation, _ in near), key=NEARNESS.__getitem__)
    return best, tuple(nic for relation, nic in near if relation == best)


def align_all(inventory: Inventory) -> tuple[Alignment, ...]:
    gpus, nics = gpu_labels(inventory), nic_labels(inventory.rdma_nics)
    alignments = []
    for gpu in inventory.gpus:
        relation, near = align(inventory, gpu)
        gpudirect = judge_gpudirect(relation, coherent=gpu.coherent)
        labels = tuple(nics[nic.id] for nic in near)
        paired = tuple(nics[nic.id] for nic in near if nic.paired_gpu == gpu.pci.address)
        alignments.append(
            Alignment(gpu=gpus[gpu.pci.address], relation=relation, nics=labels, paired=paired, gpudirect=gpudirect)
        )
    return tuple(alignments)
